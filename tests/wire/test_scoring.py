"""Prompts that are scored: echo with logprobs, prompt_logprobs, and scoring without a single token."""

import json

import pytest
import tokenizers

from conftest import ROOT, idle

PROMPT = "Once upon a time there was a dragon"
TOKENIZER = tokenizers.Tokenizer.from_file(str(ROOT / "models" / "stories" / "tokenizer.json"))


def test_scoring_decodes_nothing(server):
    server.wait_until(idle, "an idle engine")
    before = server.metrics()["vllm:generation_tokens_total"]
    answer = server.complete(PROMPT, max_tokens=0, echo=True, logprobs=1)
    choice = answer["choices"][0]
    assert choice["text"] == PROMPT and choice["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 0
    assert answer["usage"]["prompt_tokens"] == len(TOKENIZER.encode(PROMPT).ids)
    assert server.wait_until(idle, "an idle engine")["vllm:generation_tokens_total"] == before
    lists = choice["logprobs"]
    assert lists["token_logprobs"][0] is None and lists["top_logprobs"][0] is None
    assert all(score <= 0 for score in lists["token_logprobs"][1:])
    assert "".join(lists["tokens"]) == PROMPT
    assert [PROMPT[i] for i in lists["text_offset"]] == [token[0] for token in lists["tokens"]]


@pytest.mark.parametrize("fields", [dict(max_tokens=0), dict(max_tokens=0, n=2), dict(max_tokens=1), dict(max_tokens=7, n=2)], ids=str)
def test_a_prompt_has_the_same_scores_however_it_is_asked(server, fields):
    alone = server.complete(PROMPT, max_tokens=0, echo=True, logprobs=2)["choices"][0]["logprobs"]
    answer = server.complete([PROMPT, "The king", PROMPT], echo=True, logprobs=2, **fields)
    n = fields.get("n", 1)
    assert len(answer["choices"]) == 3 * n
    for choice in answer["choices"][:n] + answer["choices"][2 * n:]:
        assert {name: values[:len(alone["tokens"])] for name, values in choice["logprobs"].items()} == alone


def test_scores_of_a_prompt_that_the_cache_holds_are_the_same(start_server):
    server = start_server()
    ids = list(range(100, 300))
    fields = dict(max_tokens=0, echo=True, logprobs=3)
    first = server.complete(ids, **fields)
    again = server.complete(ids, **fields)
    assert again["choices"] == first["choices"]
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert server.complete(ids, max_tokens=1)["usage"]["prompt_tokens_details"]["cached_tokens"] > 0, "it may publish"


def test_scores_do_not_depend_on_how_the_prompt_is_chunked(start_server):
    wide, narrow = start_server(), start_server("--max-num-batched-tokens", 33, "--max-num-seqs", 8)
    ids = list(range(7, 407))
    fields = dict(max_tokens=2, echo=True, logprobs=4, prompt_logprobs=2, seed=1)
    assert wide.complete(ids, **fields)["choices"] == narrow.complete(ids, **fields)["choices"]


def test_prompt_logprobs_are_returned_by_token_id(server):
    choice = server.complete(PROMPT, max_tokens=2, prompt_logprobs=2, return_token_ids=True)["choices"][0]
    assert choice["logprobs"] is None
    first, *others = choice["prompt_logprobs"]
    assert first is None
    for token, entry in zip(choice["prompt_token_ids"][1:], others):
        own = entry[str(token)]
        assert own["rank"] >= 1 and own["decoded_token"] == TOKENIZER.decode([token])
        assert len(entry) == (2 if own["rank"] <= 2 else 3)
        assert sorted(e["rank"] for e in entry.values())[:2] == [1, 2]
    alone = server.complete(PROMPT, max_tokens=0, prompt_logprobs=0)["choices"][0]
    assert alone["text"] == "" and [len(entry) for entry in alone["prompt_logprobs"][1:]] == [1] * len(others)


def test_a_stream_returns_the_scores_first(server):
    whole = server.complete(PROMPT, max_tokens=4, prompt_logprobs=1, seed=2)["choices"][0]
    with server.stream(PROMPT, max_tokens=4, prompt_logprobs=1, seed=2) as events:
        pieces = [json.loads(event)["choices"][0] for event in events if event != "[DONE]"]
    assert pieces[0]["prompt_logprobs"] == whole["prompt_logprobs"]
    assert not any("prompt_logprobs" in piece for piece in pieces[1:])


def test_an_echo_begins_the_text(server):
    plain = server.text(PROMPT, max_tokens=5, seed=2)
    assert server.text(PROMPT, max_tokens=5, seed=2, echo=True) == PROMPT + plain
    ids = TOKENIZER.encode(PROMPT).ids
    assert server.text(ids, max_tokens=5, seed=2, echo=True) == PROMPT + plain
    assert server.text(PROMPT, max_tokens=0, echo=True) == PROMPT


def test_as_lm_eval_asks(server):
    """local-completions sends token ids with max_tokens 1 and takes the sum of the continuation's log probabilities."""
    context, continuation = TOKENIZER.encode(PROMPT).ids, TOKENIZER.encode(" and a king").ids
    answer = server.complete(context + continuation, max_tokens=1, echo=True, logprobs=1, temperature=0)
    lists = answer["choices"][0]["logprobs"]
    assert len(lists["tokens"]) == len(context + continuation) + 1
    scores = lists["token_logprobs"][len(context):-1]
    assert len(scores) == len(continuation) and sum(scores) < 0
    for token, top in zip(lists["tokens"][len(context):-1], lists["top_logprobs"][len(context):-1]):
        assert token in top and 1 <= len(top) <= 2


@pytest.mark.parametrize("body, param", [
    (dict(max_tokens=0), "max_tokens"),
    (dict(max_tokens=0, logprobs=1), "max_tokens"),
    (dict(max_tokens=0, echo=True, logprobs=21), "logprobs"),
    (dict(prompt_logprobs=21), "prompt_logprobs"),
    (dict(prompt_logprobs=-1), "prompt_logprobs"),
    (dict(echo=True, logprobs=1, use_beam_search=True, temperature=0), "logprobs"),
    (dict(prompt_logprobs=1, use_beam_search=True, temperature=0), "prompt_logprobs"),
    (dict(prompt_logprobs=1, kv_policy={"type": "sink_window", "sinks": 16, "window": 256}), "kv_policy"),
], ids=str)
def test_what_cannot_be_scored_is_refused(server, body, param):
    answer = server.post({"prompt": PROMPT, **body})
    assert answer.status == 400 and answer.error["param"] == param
