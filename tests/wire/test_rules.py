"""What a request forbids and favours, seen in what the server says."""

import pytest
import tokenizers

from conftest import ROOT

PROMPT = "Once upon a time"
TOKENIZER = tokenizers.Tokenizer.from_file(str(ROOT / "models" / "stories" / "tokenizer.json"))
FIELDS = dict(max_tokens=30, seed=6, temperature=1.0, return_token_ids=True)


def ids(server, **fields):
    return server.complete(PROMPT, **{**FIELDS, **fields})["choices"][0]["token_ids"]


def test_neutral_values_change_nothing(server):
    plain = ids(server)
    for fields in (dict(presence_penalty=0, frequency_penalty=0, repetition_penalty=1), dict(logit_bias={}),
                   dict(bad_words=[]), dict(min_tokens=0), dict(typical_p=1), dict(stop_token_ids=[]),
                   dict(logit_bias={"5": 0}), dict(allowed_token_ids=list(range(4096)))):
        assert ids(server, **fields) == plain, fields


def test_a_bias_makes_and_unmakes_tokens(server):
    assert set(ids(server, logit_bias={"77": 100}, ignore_eos=True)) == {77}
    first = ids(server, temperature=0)[0]
    assert ids(server, temperature=0, logit_bias={str(first): -100})[0] != first


def test_only_allowed_tokens_are_generated(server):
    assert set(ids(server, allowed_token_ids=[70, 80, 90], ignore_eos=True)) <= {70, 80, 90}


def test_penalties_bring_variety(server):
    def variety(**fields):
        return len(set(ids(server, max_tokens=120, temperature=0, ignore_eos=True, **fields)))
    plain = variety()
    assert variety(presence_penalty=2) > plain
    assert variety(frequency_penalty=2) > plain
    assert variety(repetition_penalty=2) > plain
    assert variety(frequency_penalty=-2) <= plain


def test_bad_words_are_not_generated(server):
    said = TOKENIZER.decode(ids(server, max_tokens=60))
    words = sorted({word for word in said.split() if word.isalpha() and len(word) > 2})[:5]
    again = TOKENIZER.decode(ids(server, max_tokens=60, bad_words=words))
    for word in words:
        spelled = [TOKENIZER.encode(word).ids, TOKENIZER.encode(" " + word).ids]
        told = ids(server, max_tokens=60, bad_words=words)
        assert not any(told[i:i + len(one)] == one for one in spelled for i in range(len(told))), word
    assert again != said


def test_nothing_ends_before_min_tokens(server):
    ending = {"logit_bias": {"0": 100}}
    assert len(ids(server, **ending)) == 1
    for least in (1, 5, 29, 30):
        answer = server.complete(PROMPT, **FIELDS, **ending, min_tokens=least)
        assert answer["usage"]["completion_tokens"] == min(least + 1, 30)
        assert answer["choices"][0]["finish_reason"] == ("stop" if least < 30 else "length")


def test_a_stop_token_ends_the_answer_and_is_reported(server):
    plain = ids(server)
    stop = plain[10]
    answer = server.complete(PROMPT, **FIELDS, stop_token_ids=[stop])["choices"][0]
    assert answer["token_ids"] == plain[:plain.index(stop) + 1]
    assert answer["finish_reason"] == "stop" and answer["stop_reason"] == stop
    assert answer["text"] == TOKENIZER.decode(answer["token_ids"][:-1])
    kept = server.complete(PROMPT, **FIELDS, stop_token_ids=[stop], include_stop_str_in_output=True)["choices"][0]
    assert kept["text"] == TOKENIZER.decode(answer["token_ids"])


def test_typicality_narrows_the_tokens_generated(server):
    wide = {token for seed in range(40) for token in ids(server, max_tokens=1, seed=seed, temperature=2.0, top_p=1)}
    narrow = {token for seed in range(40) for token in ids(server, max_tokens=1, seed=seed, temperature=2.0, top_p=1, typical_p=0.1)}
    assert len(narrow) < len(wide)


@pytest.mark.parametrize("rules", [
    dict(presence_penalty=1.5), dict(repetition_penalty=1.3, frequency_penalty=0.5), dict(bad_words=["the", "a"]),
    dict(logit_bias={"77": 3, "100": -5}, min_tokens=20), dict(allowed_token_ids=list(range(0, 4096, 3))), dict(typical_p=0.5),
], ids=str)
def test_the_first_of_many_and_who_shares_the_batch_change_nothing(server, rules):
    alone = server.complete(PROMPT, **FIELDS, **rules)["choices"][0]
    crowd = server.complete([PROMPT, "The dragon", "A king"], n=3, **FIELDS, **rules)["choices"]
    assert {**crowd[0], "index": 0} == alone


@pytest.mark.parametrize("body, param", [
    (dict(logit_bias={"4096": 1}), "logit_bias"),
    (dict(logit_bias={"5": 1e39}), "logit_bias.5"),
    (dict(logit_bias={str(i): 1 for i in range(1025)}), "logit_bias"),
    (dict(allowed_token_ids=[4096]), "allowed_token_ids"),
    (dict(allowed_token_ids=[]), "allowed_token_ids"),
    (dict(stop_token_ids=[4096], min_tokens=1), "stop_token_ids"),
    (dict(stop_token_ids=[-1]), "stop_token_ids"),
    (dict(bad_words=[""]), "bad_words"),
    (dict(bad_words=["x"] * 129), "bad_words"),
    (dict(presence_penalty=2.1), "presence_penalty"),
    (dict(frequency_penalty=-2.1), "frequency_penalty"),
    (dict(repetition_penalty=0), "repetition_penalty"),
    (dict(repetition_penalty=2.1), "repetition_penalty"),
    (dict(typical_p=0), "typical_p"),
    (dict(min_tokens=31), "min_tokens"),
    (dict(min_tokens=-1), "min_tokens"),
    (dict(allowed_token_ids=[0], min_tokens=3), "allowed_token_ids"),
    (dict(use_beam_search=True, temperature=0, presence_penalty=1), "presence_penalty"),
    (dict(use_beam_search=True, temperature=0, logit_bias={"5": 1}), "logit_bias"),
], ids=lambda value: str(value)[:50])
def test_what_is_out_of_range_is_named(server, body, param):
    answer = server.post({"prompt": PROMPT, "max_tokens": 30, **body})
    assert answer.status == 400 and answer.error["param"] == param, answer.text
