"""Schedules of loadtest/load.py: arrivals have the statistics they are named for, and the seed decides everything."""

import json
import math
import random

import numpy as np
import pytest
from driver import schedule
from driver.connection import target_of
from driver.prompts import WORDS, Asker, River
from driver.scenario import ScenarioError, checked

TARGET = target_of("http://127.0.0.1:1")


def planned(seed=1, **fields):
    return schedule.plan(checked(fields), seed)


def times(seed=1, **arrivals):
    return np.array([one.at_s for one in planned(seed, arrivals=arrivals)])


@pytest.mark.parametrize("seed", range(5))
def test_poisson_gaps_are_exponential(seed):
    gaps = np.diff(times(seed, kind="poisson", rate_per_s=40, duration_s=500))
    error = 5 / math.sqrt(len(gaps))  # five standard deviations
    assert abs(gaps.mean() * 40 - 1) < error
    assert abs(gaps.var() * 1600 - 1) < error * math.sqrt(8)  # of a sample's variance: sqrt(8 / n) for exponentials
    assert abs((gaps > math.log(2) / 40).mean() - 0.5) < error / 2
    assert abs(np.corrcoef(gaps[:-1], gaps[1:])[0, 1]) < error  # no memory


def test_poisson_counts_vary_as_much_as_their_mean():
    counts = [len(times(seed, kind="poisson", rate_per_s=20, duration_s=10)) for seed in range(400)]
    assert abs(np.mean(counts) - 200) < 5 * math.sqrt(200 / 400)
    assert abs(np.var(counts) / 200 - 1) < 5 * math.sqrt(2 / 400)


def test_times_ascend_within_the_duration():
    for arrivals in ({"kind": "poisson", "rate_per_s": 50}, {"kind": "constant", "rate_per_s": 50}, {"kind": "bursts", "size": 5, "every_s": 0.7}):
        at_s = times(**arrivals, duration_s=10)
        assert (np.diff(at_s) >= 0).all() and 0 <= at_s[0] and at_s[-1] < 10


def test_constant_arrivals_are_evenly_apart():
    assert times(kind="constant", rate_per_s=4, duration_s=2.5) == pytest.approx([i / 4 for i in range(10)])


@pytest.mark.parametrize("duration_s, bursts", [(19.9, 2), (20, 2), (20.1, 3)])
def test_a_burst_comes_at_once_and_again(duration_s, bursts):
    at_s = times(kind="bursts", size=7, every_s=10, duration_s=duration_s)
    assert at_s.tolist() == [10.0 * i for i in range(bursts) for _ in range(7)]


def test_a_closed_loop_has_as_many_requests_as_asked():
    assert len(planned(arrivals={"kind": "closed", "concurrency": 3, "requests": 11})) == 11


BUSY = {"kind": "poisson", "rate_per_s": 30, "duration_s": 20}
LENGTHS = {"tokens": {"lognormal": {"median": 100, "sigma": 1.0, "min": 10, "max": 900}}, "shared_prefix": {"groups": 8, "tokens": 64, "skew": 1}}


def test_a_seed_is_a_schedule():
    fields = {"arrivals": BUSY, "prompt": LENGTHS}
    assert planned(3, **fields) == planned(3, **fields) != planned(4, **fields)


def test_another_rate_leaves_lengths_and_prefixes_as_they_are():
    slow, fast = (planned(arrivals=BUSY | {"rate_per_s": rate}, prompt=LENGTHS, answer={"tokens": {"uniform": [1, 99]}}) for rate in (10, 40))
    what = lambda plan: [(one.shared, one.own_tokens, one.answer_tokens) for one in plan]
    assert what(fast)[: len(slow)] == what(slow) and len(fast) > 2 * len(slow)


def test_lengths_have_their_distributions():
    draw = random.Random(1)
    drawn = lambda lengths: np.array([schedule.length(lengths, draw) for _ in range(20000)])
    assert set(drawn(17)) == {17}
    uniform = drawn({"uniform": [5, 8]})
    assert set(uniform) == {5, 6, 7, 8} and abs(uniform.mean() - 6.5) < 0.05
    lognormal = drawn({"lognormal": {"median": 100, "sigma": 0.5, "min": 1, "max": 100000}})
    assert abs(np.median(lognormal) - 100) < 3 and abs(np.log(lognormal).std() - 0.5) < 0.02
    clamped = drawn({"lognormal": {"median": 100, "sigma": 2, "min": 50, "max": 200}})
    assert (clamped.min(), clamped.max()) == (50, 200)


def test_prefixes_are_wanted_as_zipf_says():
    fields = {"arrivals": {"kind": "closed", "concurrency": 1, "requests": 20000}}
    groups = [one.shared[0][0] for one in planned(**fields, prompt={"shared_prefix": {"groups": 4, "tokens": 9, "skew": 1}})]
    counts = [groups.count(f"prefix {k}") for k in range(4)]
    assert np.array(counts) / 20000 == pytest.approx(np.array([12, 6, 4, 3]) / 25, abs=0.02)


# ---- traces


def trace(tmp_path, lines, **arrivals):
    (tmp_path / "trace.jsonl").write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n")
    return checked({"arrivals": {"kind": "trace", "file": "trace.jsonl"} | arrivals}, directory=tmp_path)


def line(timestamp, prompt=1000, answer=5, ids=(1, 2)):
    return {"timestamp": timestamp, "input_length": prompt, "output_length": answer, "hash_ids": list(ids)}


def test_a_trace_is_replayed_in_the_order_of_its_times(tmp_path):
    lines = [line(5000, answer=1), line(3000, answer=2), line(5000, answer=3), line(4500.5, answer=4)]
    plan = schedule.plan(trace(tmp_path, lines), 1)
    assert [(one.at_s, one.answer_tokens) for one in plan] == [(0, 2), (1.5005, 4), (2, 1), (2, 3)]
    assert [one.index for one in plan] == [0, 1, 2, 3]
    fast = schedule.plan(trace(tmp_path, lines, speed=4, requests=3), 1)
    assert [one.at_s for one in fast] == [0, 1.5005 / 4, 0.5]


def test_blocks_of_a_trace_are_cut_to_the_prompt_and_the_rest_is_its_own(tmp_path):
    lines = [line(0, 1000, ids=(7, 8)), line(0, 1100, ids=(7, 8)), line(0, 512, ids=(7, 8)), line(0, 20, ids=())]
    del lines[3]["hash_ids"]
    plan = schedule.plan(trace(tmp_path, lines), 1)
    assert [(one.shared, one.own_tokens) for one in plan] == [
        ((("block 7", 512), ("block 8", 488)), 0),
        ((("block 7", 512), ("block 8", 512)), 76),
        ((("block 7", 512),), 0),
        ((), 20),
    ]
    assert [one.prompt_tokens for one in plan] == [1000, 1100, 512, 20]


@pytest.mark.parametrize(
    "bad, told",
    [
        ("{", "trace.jsonl:2: not JSON"),
        ("[]", "trace.jsonl:2: expected an object"),
        (line(-1), "trace.jsonl:2: timestamp: -1 was given"),
        (line(True), "trace.jsonl:2: timestamp: True was given"),
        (line(0, prompt=0), "trace.jsonl:2: input_length: 0 was given, expected a number from 1 to 1,000,000"),
        (line(0, prompt=1_000_001), "input_length: 1000001 was given"),
        (line(0, answer=2.5), "output_length: 2.5 was given"),
        ({"timestamp": 0, "input_length": 1}, "output_length: None was given"),
        (line(0) | {"hash_ids": [[1]]}, "hash_ids: expected a list"),
    ],
    ids=range(9),
)
def test_a_bad_line_of_a_trace_is_refused_by_its_number(tmp_path, bad, told):
    with pytest.raises(ScenarioError, match=told):
        schedule.plan(trace(tmp_path, [line(0), bad]), 1)


def test_a_trace_that_is_not_there_or_empty_is_refused(tmp_path):
    with pytest.raises(ScenarioError, match="trace.jsonl has no requests"):
        schedule.plan(trace(tmp_path, []), 1)
    missing = checked({"arrivals": {"kind": "trace", "file": "none.jsonl"}}, directory=tmp_path)
    with pytest.raises(ScenarioError, match="arrivals.file: none.jsonl: No such file"):
        schedule.plan(missing, 1)


# ---- what is asked


def asked(planned_one, salt="1", **fields):
    """path, headers and body of the request."""
    scenario = checked({"arrivals": {"kind": "closed", "concurrency": 1, "requests": 1}} | fields)
    head, body = Asker(scenario, TARGET, "m", salt, "key").request(planned_one).decode().split("\r\n\r\n")
    first, *lines = head.split("\r\n")
    headers = dict(text.split(": ") for text in lines)
    assert int(headers["Content-Length"]) == len(body)
    return first.split()[1], headers, json.loads(body)


def test_a_request_asks_for_what_was_planned():
    one = schedule.Planned(3, 0.0, (("prefix 1", 20),), 30, 40)
    path, headers, body = asked(one, body={"temperature": 0, "seed": 5})
    assert path == "/v1/completions" and headers["Authorization"] == "Bearer key" and headers["Host"] == "127.0.0.1:1"
    assert len(body.pop("prompt").split()) == 50
    assert body == {"model": "m", "temperature": 0, "seed": 5, "stream": True, "stream_options": {"include_usage": True},
                    "ignore_eos": True, "max_tokens": 40}  # fmt: skip
    path, _, chat = asked(one, endpoint="chat", stream=False, answer={"ignore_eos": False})
    assert path == "/v1/chat/completions" and "stream_options" not in chat and "ignore_eos" not in chat
    assert [(message["role"], len(message["content"].split())) for message in chat["messages"]] == [("system", 20), ("user", 30)]


def test_token_ids_are_in_their_range_and_as_many_as_planned():
    _, _, body = asked(schedule.Planned(0, 0.0, (("prefix 1", 20),), 1000, 1), prompt={"as": "token_ids", "ids": [500, 800]})
    assert len(body["prompt"]) == 1020 and set(body["prompt"]) <= set(range(500, 800))


def test_prompts_begin_alike_where_their_passages_are_the_same_and_nowhere_else():
    one = schedule.Planned(0, 0.0, (("block 1", 512), ("block 2", 100)), 0, 1)
    other = schedule.Planned(1, 0.0, (("block 1", 512), ("block 2", 300)), 9, 1)
    text = lambda planned_one, **fields: asked(planned_one, **fields)[2]["prompt"].split()
    assert text(other)[:612] == text(one)
    assert text(one) == text(one) and text(one, salt="2")[:16] != text(one)[:16]
    alone = [text(schedule.Planned(index, 0.0, (), 64, 1))[:8] for index in range(200)]
    assert len({tuple(words) for words in alone}) == 200


@pytest.mark.parametrize("num_units", [1, 7, 8, 9, 65535, 65536, 65537, 200_000])
def test_a_passage_has_the_units_it_was_asked_for(num_units):
    river = River(WORDS, " ")
    words = river.passage("a", num_units).split(" ")
    assert len(words) == num_units and set(words) <= set(WORDS)
    assert river.passage("a", num_units + 5).split(" ")[:num_units] == words
