"""Guessing ahead as clients and operators ask for it: the field, the flag, and what is told of it. No answer depends on it."""

import json
import re
import subprocess

import pytest

from conftest import BINARY, PATIENCE_S, Server, idle

KEY = "a-key-of-my-own-00"
# What repeats itself is what n-grams guess: tokens that a model says over and over, and a prompt that shows it how.
REPEATING = [17, 23, 42, 99] * 12
PROMPTS = ["Once upon a time", REPEATING, "The cat sat on the mat. The cat sat on the mat. The cat"]
WAYS = [None, True, False, {}, {"method": "ngram"}, {"method": "none"}, {"num_speculative_tokens": 1},
        {"num_speculative_tokens": 64}, {"method": "ngram", "num_speculative_tokens": 3}]
REFUSED = [
    (1, "speculative"), ("ngram", "speculative"), ([], "speculative"),
    ({"method": "eagle9"}, "speculative.method"), ({"method": 3}, "speculative.method"), ({"method": ""}, "speculative.method"),
    ({"num_speculative_tokens": -1}, "speculative.num_speculative_tokens"),
    ({"num_speculative_tokens": 65}, "speculative.num_speculative_tokens"),
    ({"num_speculative_tokens": "4"}, "speculative.num_speculative_tokens"),
    ({"num_speculative_tokens": 1.5}, "speculative.num_speculative_tokens"),
    ({"topk": 4}, "speculative.topk"),
]  # fmt: skip
# Each endpoint with a body that it answers.
BODIES = {
    "/v1/completions": {"prompt": "Once", "max_tokens": 4},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "Once"}], "max_tokens": 4},
    "/v1/responses": {"input": "Once", "max_output_tokens": 4},
    "/v1/messages": {"messages": [{"role": "user", "content": "Once"}], "max_tokens": 4},
}


@pytest.fixture(scope="module")
def guesser(tmp_path_factory):
    """One that guesses as many tokens as it is told to, each step."""
    template = tmp_path_factory.mktemp("guessing") / "t.jinja"
    template.write_text("{% for m in messages %}{{ m.content }} {% endfor %}")
    config = {"method": "ngram", "num_speculative_tokens": 8, "prompt_lookup_min": 1, "adaptive": False}
    running = Server("--chat-template", template, "--speculative-config", json.dumps(config))
    yield running
    assert running.stop() == 0, running.log[-4000:]


def said(server, prompt, **fields):
    return server.complete(prompt, max_tokens=48, ignore_eos=True, return_token_ids=True, **fields)


def explained(server, answer):
    """Of a request that has ended, which it has a little after the last byte of its answer."""
    def ask():
        return server.request("GET", f"/v1/requests/{answer['id']}/explain", headers={"X-Request-Key": KEY})

    server.wait_until(lambda _: ask().json.get("state") == "finished", "the end of the request")
    return ask().json["sequences"]


def ask(server, **fields):
    answer = server.post({"max_tokens": 48, "ignore_eos": True, "temperature": 0, **fields}, {"X-Request-Key": KEY})
    assert answer.status == 200, answer.text
    return answer.json


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("value, param", REFUSED)
def test_what_cannot_be_is_refused_by_name(guesser, path, value, param):
    answer = guesser.post_to(path, {**BODIES[path], "speculative": value})
    assert answer.status == 400, answer.text
    assert param in answer.error["message"]
    if path != "/v1/messages":  # whose errors have no param
        assert answer.error["param"] == param


@pytest.mark.parametrize("path", BODIES)
def test_every_way_to_say_it_is_taken(guesser, path):
    for way in WAYS:
        answer = guesser.post_to(path, {**BODIES[path], "speculative": way})
        assert answer.status == 200, (way, answer.text)
        assert "x-quire-warnings" not in answer.headers


@pytest.mark.parametrize("sampling", [{"temperature": 0}, {"temperature": 1, "top_p": 0.9}, {"temperature": 1.3, "n": 3}], ids=str)
def test_no_answer_depends_on_it(guesser, sampling):
    for prompt in PROMPTS:
        first = None
        for way in WAYS:
            answer = said(guesser, prompt, seed=11, speculative=way, **sampling)
            told = [choice["token_ids"] for choice in answer["choices"]]
            first = first or told
            assert told == first, (prompt, way)


def test_a_server_without_speculation_gives_the_same_answers(guesser, start_server):
    plain = start_server("--speculative-config", '{"method": "none"}')
    for prompt in PROMPTS:
        for temperature in (0, 1):
            fields = dict(seed=7, temperature=temperature)
            assert said(guesser, prompt, **fields)["choices"] == said(plain, prompt, **fields)["choices"]
    refused = plain.post({"prompt": "a", "speculative": {"method": "ngram"}})
    assert refused.status == 400 and refused.error["param"] == "speculative.method"
    assert plain.post({"prompt": "a", "max_tokens": 1, "speculative": True}).status == 200
    assert not any("spec_decode" in name for name in plain.metrics())
    assert "speculation:" not in plain.log and "speculation: ngram, up to 8 draft tokens" in guesser.log


def test_an_answer_reports_its_draft_tokens_and_the_accepted_ones(guesser):
    answer = ask(guesser, prompt=REPEATING, n=2)
    told = answer["timings"]
    sequences = explained(guesser, answer)
    assert told["draft_n"] == sum(one["drafted_tokens"] for one in sequences) > 0
    assert told["draft_n_accepted"] == sum(one["accepted_tokens"] for one in sequences)
    for one in sequences:
        assert one["drafts_not_kept"] == 0 and one["drafts"]
        assert one["drafted_tokens"] == sum(draft["drafted"] for draft in one["drafts"])
        assert one["accepted_tokens"] == sum(draft["accepted"] for draft in one["drafts"])
        assert all(0 <= draft["accepted"] <= draft["drafted"] <= 8 for draft in one["drafts"])
        assert one["accepted_tokens"] < one["generated_tokens"] == 48


@pytest.mark.parametrize("most", [1, 2, 7, 8])
def test_no_draft_has_more_than_was_asked_for(guesser, most):
    sequences = explained(guesser, ask(guesser, prompt=REPEATING, speculative={"num_speculative_tokens": most}))
    assert max(draft["drafted"] for draft in sequences[0]["drafts"]) <= most


@pytest.mark.parametrize("way", [False, {"method": "none"}, {"num_speculative_tokens": 0}], ids=str)
def test_a_request_can_turn_drafts_off(guesser, way):
    before = guesser.wait_until(idle, "idleness")
    answer = ask(guesser, prompt=REPEATING, speculative=way)
    assert "draft_n" not in answer["timings"]
    assert explained(guesser, answer)[0]["drafts"] == []
    after = guesser.wait_until(idle, "idleness")
    assert after["vllm:spec_decode_num_draft_tokens_total"] == before["vllm:spec_decode_num_draft_tokens_total"]


def test_the_metrics_add_up(guesser):
    before = guesser.wait_until(idle, "idleness")
    answer = ask(guesser, prompt=REPEATING)
    sequence = explained(guesser, answer)[0]
    after = guesser.wait_until(idle, "idleness")

    def more(name):
        return after[name] - before[name]

    assert more("vllm:spec_decode_num_drafts_total") == len(sequence["drafts"]) > 0
    assert more("vllm:spec_decode_num_draft_tokens_total") == sequence["drafted_tokens"]
    assert more("vllm:spec_decode_num_accepted_tokens_total") == sequence["accepted_tokens"]
    assert more("vllm:spec_decode_num_accepted_tokens_per_pos_total") == sequence["accepted_tokens"]
    assert more("quire:spec_decode_proposed_tokens_total") >= sequence["drafted_tokens"]
    positions = re.findall(r'accepted_tokens_per_pos_total\{[^}]*position="(\d+)"', guesser.get("/metrics").text)
    assert positions == [str(i) for i in range(8)]


@pytest.mark.parametrize("config, words", [
    ("ngram", "expected a JSON object"),
    ("{}", "method is missing"),
    ('{"method": "eagle9"}', 'unknown method "eagle9"'),
    ('{"method": "ngram", "num_speculative_tokens": 65}', "num_speculative_tokens must be a whole number from 1 to 64"),
    ('{"method": "ngram", "surprise": 1}', "unknown key surprise"),
    ('{"method": "ngram", "window": 1}', "window is a key of"),
    ('{"method": "ngram", "accept": "ratio", "adaptive": true}', 'accept "ratio" cannot be combined with adaptive true'),
])  # fmt: skip
def test_a_config_that_cannot_be_is_refused_at_start(config, words):
    done = subprocess.run([BINARY, "serve", "--port", "0", "--speculative-config", config], capture_output=True, text=True,
                          timeout=PATIENCE_S)
    assert done.returncode == 2 and "--speculative-config: " in done.stderr and words in done.stderr, done.stderr


def test_the_config_comes_in_parts_and_from_the_environment_too(start_server, monkeypatch):
    parts = start_server("--speculative-config.method", "ngram", "--spec-tokens", "3")
    assert "speculation: ngram, up to 3 draft tokens" in parts.log
    monkeypatch.setenv("QUIRE_SPECULATIVE_CONFIG", '{"method": "ngram", "num_speculative_tokens": 5}')
    assert "speculation: ngram, up to 5 draft tokens" in start_server().log
