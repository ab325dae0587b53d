"""What an OpenAI client gets: whole answers, streams, lists, token ids, usage."""

import json
import pathlib

import openai
import pytest
import tokenizers

from conftest import ROOT, choices_of

PROMPT = "Once upon a time"
TOKENIZER = tokenizers.Tokenizer.from_file(str(ROOT / "models" / "stories" / "tokenizer.json"))


def model_of(client):
    return client.models.list().data[0].id


def test_an_openai_client_completes(client):
    answer = client.completions.create(model=model_of(client), prompt=PROMPT, max_tokens=20, temperature=0)
    assert answer.object == "text_completion" and answer.id.startswith("cmpl-")
    assert answer.choices[0].text and answer.choices[0].logprobs is None
    assert answer.system_fingerprint
    usage = answer.usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert usage.prompt_tokens == len(TOKENIZER.encode(PROMPT).ids)
    assert 0 <= usage.prompt_tokens_details.cached_tokens < usage.prompt_tokens


def test_a_prompt_that_was_answered_before_is_found_and_reported(start_server):
    server = start_server()
    prompt = list(range(100, 150))
    first = server.complete(prompt, max_tokens=8, seed=1)
    again = server.complete(prompt, max_tokens=8, seed=1)
    assert first["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] == 49  # all but the last, which is run
    assert again["choices"] == first["choices"]
    metrics = server.metrics()
    assert metrics["vllm:prefix_cache_queries_total"] == 100 and metrics["vllm:prefix_cache_hits_total"] == 49


def test_without_prefix_caching_the_answer_is_the_same(start_server):
    cached, plain = start_server(), start_server("--no-enable-prefix-caching")
    for _ in range(2):
        assert cached.text(PROMPT * 20, max_tokens=20, seed=3) == plain.text(PROMPT * 20, max_tokens=20, seed=3)
    assert plain.complete(PROMPT * 20, max_tokens=1)["usage"]["prompt_tokens_details"]["cached_tokens"] == 0


def test_an_openai_client_streams_what_it_completes(client):
    fields = dict(model=model_of(client), prompt=PROMPT, max_tokens=40, seed=7)
    whole = client.completions.create(**fields)
    pieces = list(client.completions.create(**fields, stream=True, stream_options={"include_usage": True}))
    assert "".join(piece.choices[0].text for piece in pieces if piece.choices) == whole.choices[0].text
    assert [piece.choices[0].finish_reason for piece in pieces if piece.choices][-1] == whole.choices[0].finish_reason
    assert pieces[-1].choices == [] and pieces[-1].usage == whole.usage
    assert all(piece.usage is None for piece in pieces[:-1])


def test_models_are_listed_and_retrieved(client):
    name = model_of(client)
    assert client.models.retrieve(name).id == name
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("none")


def test_admin_routes_answer(server):
    for path in ("/live", "/ready", "/health", "/version", "/metrics", "/v1/models"):
        assert server.get(path).status == 200, path
    assert server.get("/version").json["version"]


def test_usage_counts_what_was_asked(server):
    for max_tokens in (1, 2, 17):
        answer = server.complete(PROMPT, max_tokens=max_tokens, ignore_eos=True)
        assert answer["usage"]["completion_tokens"] == max_tokens
        assert answer["choices"][0]["finish_reason"] == "length"


def test_missing_max_tokens_is_sixteen(server):
    assert server.complete(PROMPT, ignore_eos=True)["usage"]["completion_tokens"] == 16


def test_a_story_ends_by_itself(server):
    for seed in range(20):
        answer = server.complete(PROMPT, max_tokens=500, seed=seed)
        if answer["choices"][0]["finish_reason"] == "stop":
            break
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["choices"][0]["stop_reason"] is None
    assert "<|endoftext|>" not in answer["choices"][0]["text"]
    tokens = len(TOKENIZER.encode(answer["choices"][0]["text"]).ids)
    assert answer["usage"]["completion_tokens"] <= tokens + 50
    assert answer["usage"]["completion_tokens"] < 500


def test_prompts_of_a_list_are_answered_as_if_alone(server):
    prompts = ["Once upon a time", "The dragon", "", "One day, a little girl named Lily"]
    fields = dict(max_tokens=24, seed=5)
    together = server.complete(prompts, **fields)
    assert [choice["index"] for choice in together["choices"]] == [0, 1, 2, 3]
    alone = [server.complete(prompt, **fields) for prompt in prompts]
    assert [choice["text"] for choice in together["choices"]] == [one["choices"][0]["text"] for one in alone]
    for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
        assert together["usage"][name] == sum(one["usage"][name] for one in alone)
    with server.stream(prompts, **fields, stream_options={"include_usage": True}) as events:
        streamed, usage = choices_of(events)
    assert [streamed[i][0] for i in range(4)] == [choice["text"] for choice in together["choices"]]
    assert usage | {"prompt_tokens_details": 0} == together["usage"] | {"prompt_tokens_details": 0}
    assert usage["prompt_tokens_details"]["cached_tokens"] > together["usage"]["prompt_tokens_details"]["cached_tokens"]


def test_token_ids_are_the_text_they_spell(server):
    ids = TOKENIZER.encode(PROMPT).ids
    fields = dict(max_tokens=16, seed=9)
    assert server.text(ids, **fields) == server.text(PROMPT, **fields)
    answer = server.complete([ids, ids[:2]], **fields)
    assert answer["choices"][0]["text"] == server.text(PROMPT, **fields)
    assert answer["usage"]["prompt_tokens"] == len(ids) + 2


def test_a_seed_repeats_and_a_drawn_one_is_returned(server):
    drawn = server.complete(PROMPT, max_tokens=30, temperature=1.0)
    assert server.complete(PROMPT, max_tokens=30, temperature=1.0, seed=drawn["seed"])["choices"] == drawn["choices"]
    others = {server.text(PROMPT, max_tokens=30, temperature=1.0) for _ in range(5)}
    assert len(others) > 1, "requests without a seed all say the same"


def test_greedy_needs_no_seed(server):
    assert len({server.text(PROMPT, max_tokens=30, temperature=0) for _ in range(3)}) == 1
    assert server.text(PROMPT, max_tokens=30, temperature=1, top_k=1) == server.text(PROMPT, max_tokens=30, temperature=0)


def test_the_request_id_comes_back(server):
    answer = server.post({"prompt": PROMPT, "max_tokens": 1}, {"X-Request-Id": "abc-1"})
    assert answer.headers["x-request-id"] == "abc-1" and answer.json["id"] == "cmpl-abc-1"
    server.wait_for_log("id=abc-1")


def test_neutral_values_of_what_is_not_supported_are_accepted(client):
    client.completions.create(model=model_of(client), prompt=PROMPT, max_tokens=1, n=1, best_of=1, echo=False, suffix=None,
                              logprobs=None, presence_penalty=0, frequency_penalty=0, logit_bias={}, user="somebody",
                              extra_body={"repetition_penalty": 1.0, "min_tokens": 0, "skip_special_tokens": True})


def test_a_request_id_of_the_body_names_the_answer(server):
    assert server.complete(PROMPT, max_tokens=1, request_id="mine-1")["id"] == "cmpl-mine-1"


def test_prompts_are_never_logged(server):
    secret = "xyzzyplugh"
    server.complete(secret, max_tokens=1)
    server.post({"prompt": secret, "max_tokens": 0})
    server.post('{"prompt": "' + secret + '", "nonsense": "' + secret + '"}')
    assert secret not in server.log
