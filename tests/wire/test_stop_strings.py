"""Stop strings: the text is cut before the first one, whole or streamed, wherever it falls between tokens and events."""

import random

import pytest

from conftest import choices_of, idle

PROMPT = "Once upon a time"


@pytest.mark.parametrize("seed", range(5))
def test_any_stop_string_cuts_the_full_text(server, seed):
    fields = dict(max_tokens=120, seed=seed, temperature=1.0, ignore_eos=True)
    full = server.text(PROMPT, **fields)
    chance = random.Random(seed)
    for _ in range(12):
        stops = []
        for _ in range(chance.choice([1, 1, 2, 3])):
            begin = chance.randrange(len(full) - 12)
            stops.append(full[begin:begin + chance.randrange(1, 12)])
        ends = min((full.find(stop) + len(stop), -len(stop), stop) for stop in stops)
        expected, stop = full[:ends[0] - len(ends[2])], ends[2]
        whole = server.complete(PROMPT, **fields, stop=stops)
        assert whole["choices"][0]["text"] == expected, (seed, stops)
        assert whole["choices"][0]["finish_reason"] == "stop"
        assert whole["choices"][0]["stop_reason"] == stop
        with server.stream(PROMPT, **fields, stop=stops, stream_options={"include_usage": True}) as events:
            streamed, usage = choices_of(events)
        assert streamed[0] == (expected, "stop", stop), (seed, stops)
        assert usage == whole["usage"]
        assert usage["completion_tokens"] <= 120


@pytest.mark.parametrize("seed", range(3))
def test_a_stop_string_stays_where_that_is_asked(server, seed):
    fields = dict(max_tokens=60, seed=seed, temperature=1.0, ignore_eos=True, include_stop_str_in_output=True)
    full = server.text(PROMPT, **fields)
    stop = full[30:34]
    kept = server.complete(PROMPT, **fields, stop=stop)["choices"][0]
    assert kept["text"] == full[:full.find(stop) + len(stop)] and kept["stop_reason"] == stop
    with server.stream(PROMPT, **fields, stop=stop) as events:
        assert choices_of(events)[0][0] == (kept["text"], "stop", stop)


def test_a_stop_string_that_never_comes_changes_nothing(server):
    fields = dict(max_tokens=40, seed=1, ignore_eos=True)
    full = server.complete(PROMPT, **fields)
    for stop in ("\u0000", full["choices"][0]["text"] + "x", ["never this", "nor that"]):
        assert server.complete(PROMPT, **fields, stop=stop)["choices"] == full["choices"]


def test_a_stop_ends_the_sequence_in_the_engine(server):
    before = server.wait_until(idle, "an idle engine")["vllm:generation_tokens_total"]
    answer = server.complete(PROMPT, max_tokens=500, seed=1, ignore_eos=True, stop=["a", "e", "i", "o", "u"])
    after = server.wait_until(idle, "an idle engine")["vllm:generation_tokens_total"]
    assert answer["usage"]["completion_tokens"] < 20
    assert after - before < 400, "it went on generating after the stop"
