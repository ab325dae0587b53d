"""Log probabilities of completions: their shape, in whole answers and in streams, and what they are not allowed to change."""

import json

import pytest

from conftest import choices_of

PROMPT = "Once upon a time"
LISTS = ("tokens", "token_logprobs", "top_logprobs", "text_offset")


def one(server, **fields):
    return server.complete(PROMPT, **{"max_tokens": 20, "seed": 3, "temperature": 1.0, **fields})["choices"][0]


def streamed(server, prompt=PROMPT, **fields):
    """index → the choice that all pieces of a stream add up to."""
    sums = {}
    with server.stream(prompt, **{"max_tokens": 20, "seed": 3, "temperature": 1.0, **fields}) as events:
        for event in events:
            if event == "[DONE]":
                break
            for choice in json.loads(event)["choices"]:
                whole = sums.setdefault(choice["index"], {**choice, "text": "", "logprobs": {name: [] for name in LISTS}})
                whole["text"] += choice["text"]
                for name in LISTS:
                    whole["logprobs"][name] += choice["logprobs"][name]
                whole["finish_reason"] = choice["finish_reason"]
                whole["stop_reason"] = choice.get("stop_reason")
    return sums


@pytest.mark.parametrize("logprobs", [0, 1, 5, 19, 20])
def test_lists_have_one_length_and_tops_hold_the_token(server, logprobs):
    choice = one(server, logprobs=logprobs, ignore_eos=True)
    lists = choice["logprobs"]
    assert [len(lists[name]) for name in LISTS] == [20] * 4
    for token, score, top in zip(lists["tokens"], lists["token_logprobs"], lists["top_logprobs"]):
        assert top[token] == score <= 0
        assert max(1, logprobs) <= len(top) + 1 and len(top) <= logprobs + 1
    assert "".join(lists["tokens"]) == choice["text"]
    for token, begin, end in zip(lists["tokens"], lists["text_offset"], lists["text_offset"][1:] + [len(choice["text"])]):
        assert choice["text"][begin:end] == token


def test_asking_changes_no_token(server):
    plain = one(server)
    for fields in (dict(logprobs=0), dict(logprobs=20), dict(prompt_logprobs=3), dict(return_token_ids=True)):
        asked = one(server, **fields)
        assert (asked["text"], asked["finish_reason"]) == (plain["text"], plain["finish_reason"]), fields


@pytest.mark.parametrize("fields", [
    dict(logprobs=2), dict(logprobs=0, echo=True), dict(logprobs=3, n=3), dict(logprobs=1, n=2, echo=True),
    dict(logprobs=2, stop=["a ", "little"]), dict(logprobs=2, return_tokens_as_token_ids=True),
    dict(logprobs=1, stop=[" t"], include_stop_str_in_output=True, n=2),
], ids=str)
def test_a_stream_adds_up_to_the_whole(server, fields):
    expected = server.complete(PROMPT, max_tokens=20, seed=3, temperature=1.0, **fields)["choices"]
    pieces = streamed(server, **fields)
    assert [pieces[i] for i in range(len(expected))] == expected


def test_the_first_of_many_is_the_only_one(server):
    fields = dict(logprobs=3, echo=True, max_tokens=12, seed=8, temperature=1.0)
    many = server.complete(PROMPT, n=3, **fields)["choices"]
    assert server.complete(PROMPT, n=1, **fields)["choices"] == many[:1]


def test_logprobs_stop_where_the_text_does(server):
    full = one(server, logprobs=0, ignore_eos=True)
    stop = full["text"][10:14]
    cut = one(server, logprobs=0, ignore_eos=True, stop=stop, return_token_ids=True)
    length = len(cut["logprobs"]["tokens"])
    assert cut["logprobs"] == {name: values[:length] for name, values in full["logprobs"].items()}
    said = "".join(cut["logprobs"]["tokens"])
    assert stop in said and stop not in "".join(cut["logprobs"]["tokens"][:-1])
    assert len(cut["token_ids"]) == length


def test_the_best_are_returned_with_their_logprobs(server):
    answer = server.complete(PROMPT, n=2, best_of=5, max_tokens=10, seed=4, temperature=1.0, logprobs=0, ignore_eos=True)
    means = [sum(c["logprobs"]["token_logprobs"]) / 10 for c in answer["choices"]]
    every = server.complete(PROMPT, n=5, max_tokens=10, seed=4, temperature=1.0, logprobs=0, ignore_eos=True)
    all_means = sorted((sum(c["logprobs"]["token_logprobs"]) / 10 for c in every["choices"]), reverse=True)
    assert means == all_means[:2]


def test_token_ids_are_names_where_that_is_asked(server):
    named = one(server, logprobs=2, return_tokens_as_token_ids=True, return_token_ids=True)
    assert named["logprobs"]["tokens"] == [f"token_id:{i}" for i in named["token_ids"]]
    assert all(key.startswith("token_id:") for top in named["logprobs"]["top_logprobs"] for key in top)


def test_a_greedy_token_is_the_likeliest(server):
    lists = one(server, temperature=0, logprobs=1)["logprobs"]
    for token, top in zip(lists["tokens"], lists["top_logprobs"]):
        assert token == max(top, key=top.get)


def test_a_search_returns_the_tokens_it_chose(server):
    answer = server.complete(PROMPT, use_beam_search=True, n=2, temperature=0, max_tokens=8, logprobs=0, ignore_eos=True)
    scores = [sum(choice["logprobs"]["token_logprobs"]) for choice in answer["choices"]]
    assert scores[0] >= scores[1] and all(len(c["logprobs"]["tokens"]) == 8 for c in answer["choices"])


def test_usage_comes_with_every_event_where_asked(server):
    with server.stream(PROMPT, max_tokens=5, ignore_eos=True, stream_options={
            "include_usage": True, "continuous_usage_stats": True}) as events:
        seen = [json.loads(event)["usage"] for event in events if event != "[DONE]"]
    assert all(usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] for usage in seen)
    assert [usage["completion_tokens"] for usage in seen] == sorted(usage["completion_tokens"] for usage in seen)
    assert seen[-1]["completion_tokens"] == 5
    with server.stream(PROMPT, max_tokens=5, stream_options={"include_usage": True}) as events:
        choices_of(events)
