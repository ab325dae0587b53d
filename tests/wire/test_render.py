"""What a router is told of a prompt is what the model is given: /render beside the paths that generate."""

import json

import pytest

TALE = [{"role": "system", "content": "Tell a tale."}, {"role": "user", "content": "Once upon a time"}]
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
CALLS = [{"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]


def render(server, path, body):
    return server.post_to(path + "/render", body)


@pytest.mark.parametrize("prompt", ["Once upon a time", "", " naïve 日本語 👍🏽", ["One", "Two and three"], [1, 2, 3],
                                    [[4, 5], [6]], ["", "x"]], ids=repr)
@pytest.mark.parametrize("fields", [{}, {"add_special_tokens": False}, {"truncate_prompt_tokens": 2},
                                    {"truncate_prompt_tokens": -1}, {"n": 2, "best_of": 3}, {"echo": True}], ids=repr)
def test_a_completion_runs_the_ids_that_are_returned(server, prompt, fields):
    body = {"prompt": prompt, "max_tokens": 2, "seed": 3, **fields}
    told = render(server, "/v1/completions", body)
    real = server.post({**body, "return_token_ids": True})
    assert told.status == real.status == 200, told.text
    first_choices = real.json["choices"][::fields.get("n", 1)]
    assert [one["token_ids"] for one in told.json] == [choice["prompt_token_ids"] for choice in first_choices]
    assert sum(one["count"] for one in told.json) == real.json["usage"]["prompt_tokens"]


def test_it_returns_what_vllm_returns(server):
    body = {"prompt": "Once", "stream": True, "cache_salt": "s", "priority": 3, "temperature": 0.5, "top_k": 7, "seed": 9,
            "stop": ["x"], "stop_token_ids": [5], "max_tokens": 6, "request_id": "mine"}
    (told,) = render(server, "/v1/completions", body).json
    assert told["request_id"] == "cmpl-mine" and told["features"] is None
    assert (told["stream"], told["cache_salt"], told["priority"], told["model"]) == (True, "s", 3, "stories")
    expected = {"temperature": 0.5, "top_k": 7, "seed": 9, "stop": ["x"], "stop_token_ids": [5], "max_tokens": 6, "n": 1}
    assert {key: told["sampling_params"][key] for key in expected} == expected
    one, other = (render(server, "/v1/completions", {"prompt": "Once"}).json[0] for _ in range(2))
    assert one["request_id"] != other["request_id"] and one["cache_salt"] is None
    assert one["sampling_params"]["seed"] is None and one["sampling_params"]["max_tokens"] == 16


@pytest.mark.parametrize("fields", [
    {}, {"tools": [TOOL]}, {"tools": [TOOL], "tool_choice": "required"}, {"chat_template_kwargs": {"enable_thinking": True}},
    {"add_generation_prompt": False}, {"truncate_prompt_tokens": 5},
    {"messages": TALE + [{"role": "assistant", "content": None, "tool_calls": CALLS},
                         {"role": "tool", "tool_call_id": "call_1", "content": "a cat"}], "tools": [TOOL]},
    {"messages": TALE + [{"role": "assistant", "content": "She"}], "continue_final_message": True,
     "add_generation_prompt": False},
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]},
], ids=repr)
def test_a_chat_runs_the_ids_that_are_returned(talker, fields):
    body = {"messages": TALE, "max_tokens": 2, "seed": 3, **fields}
    told = render(talker, "/v1/chat/completions", body)
    assert told.status == 200, told.text
    real = talker.post_to("/v1/chat/completions", {**body, "return_token_ids": True}).json
    assert told.json["token_ids"] == real["choices"][0]["prompt_token_ids"]
    assert told.json["count"] == real["usage"]["prompt_tokens"] == len(told.json["token_ids"])
    assert told.json["request_id"].startswith("chatcmpl-")
    if "truncate_prompt_tokens" not in fields:
        assert told.json["token_ids"] == talker.post_to("/tokenize", {"prompt": told.json["prompt"],
                                                                      "add_special_tokens": False}).json["tokens"]


@pytest.mark.parametrize("path,body", [
    ("/v1/completions", {}),
    ("/v1/completions", {"prompt": 1}),
    ("/v1/completions", {"prompt": []}),
    ("/v1/completions", {"prompt": [[]]}),
    ("/v1/completions", {"prompt": [10 ** 6]}),
    ("/v1/completions", {"prompt": ["x"] * 129}),
    ("/v1/completions", {"prompt": "x", "max_tokens": -1}),
    ("/v1/completions", {"prompt": "x", "temperature": 3}),
    ("/v1/completions", {"prompt": "x", "model": "other"}),
    ("/v1/completions", {"prompt": "x", "min_tokens": 17}),
    ("/v1/completions", {"prompt": "x", "suffix": "y"}),
    ("/v1/completions", {"prompt": "x", "bad_words": [""]}),
    ("/v1/completions", {"prompt": "x", "max_tokens": 10 ** 6}),
    ("/v1/chat/completions", {}),
    ("/v1/chat/completions", {"messages": []}),
    ("/v1/chat/completions", {"messages": TALE, "max_completion_tokens": 0}),
    ("/v1/chat/completions", {"messages": TALE, "model": "other"}),
    ("/v1/chat/completions", {"messages": TALE, "chat_template": "{{ 1 }}"}),
], ids=repr)
def test_what_is_refused_there_is_refused_here(server, path, body):
    told, real = render(server, path, body), server.post_to(path, body)
    assert told.status == real.status >= 400 and told.error == real.error


def test_a_prompt_is_as_long_as_one_that_runs(server):
    limit = server.get("/v1/models").json["data"][0]["max_model_len"]
    for length, status in ((limit - 2, 200), (limit - 1, 200), (limit, 400), (limit + 1, 400)):
        body = {"prompt": [5] * length, "max_tokens": 1}
        told = render(server, "/v1/completions", body)
        assert told.status == status, f"{length} tokens"
        if status == 400:
            assert told.error == server.post(body).error and told.error["param"] == "prompt"
    told = render(server, "/v1/chat/completions", {"messages": [{"role": "user", "content": "word " * limit}]})
    assert told.status == 400 and told.error["param"] == "messages"


def test_broken_bodies_are_refused(server):
    for path in ("/v1/completions/render", "/v1/chat/completions/render"):
        for body in ("", "{", "[]", '"x"'):
            assert server.request("POST", path, body, {"Content-Type": "application/json"}).status == 400
        assert server.get(path).status == 405
        assert server.request("POST", path, "{}", {"Content-Type": "text/plain"}).status == 415


def test_the_engine_is_not_involved(start_server):
    server = start_server()
    for _ in range(20):
        assert render(server, "/v1/completions", {"prompt": ["Once upon a time"] * 8, "n": 4}).status == 200
        assert render(server, "/v1/chat/completions", {"messages": TALE}).status == 200
    metrics = server.metrics()
    assert metrics["quire:engine_steps_total"] == metrics["vllm:prompt_tokens_total"] == 0


def test_an_unknown_field_is_ignored_and_named(server):
    told = render(server, "/v1/completions", {"prompt": "x", "kv_transfer_params": None, "color": "red"})
    assert told.status == 200 and "color" in told.headers["x-quire-warnings"]
    assert json.loads(told.text)[0]["token_ids"]
