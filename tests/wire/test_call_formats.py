"""Forced and strict calls in the formats of models, by a real engine: the parser reads what the grammar allows."""
import json

import pytest

from test_generic_calls import LOOK, NAMED, TALK, chat, messages, responses, sent

FORMATS = ("llama3_json", "pythonic", "mistral_args", "granite", "cohere_command", "apertus", "deepseek_v3",
           "deepseek_v4", "kimi_k2", "function_tag", "functionary_v3", "glm4", "glm45", "qwen3_coder", "seed_oss",
           "minimax_m2", "lfm2", "gemma4", "openai", "solar_open", "hy_v3", "hunyuan")
# Shows tools in few bytes, and drops calls, which the server then writes as text.
TEMPLATE = ("{% for t in tools or [] %}{{ t.function.name }} {% endfor %}"
            "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: ")
TRIP = {"name": "trip", "description": "Plan it", "strict": True, "parameters": {
    "type": "object", "additionalProperties": False, "required": ["to", "days", "note"], "properties": {
        "to": {"type": "string", "pattern": "^[a-z]{1,6}$"}, "days": {"type": "integer", "minimum": 1, "maximum": 9},
        "note": {"anyOf": [{"enum": ["wet", "dry"]}, {"type": "null"}]}}}}


@pytest.fixture(scope="module", params=FORMATS)
def server(request, tmp_path_factory):
    from conftest import server_of
    yield from server_of(TEMPLATE, tmp_path_factory.mktemp(request.param), "--tool-call-parser", request.param)


@pytest.mark.parametrize("surface", [chat, messages, responses])
def test_a_forced_call_is_whole_and_the_same_streamed(server, surface):
    for choice in ("required", NAMED):
        (text, calls), (same_text, same_calls) = (surface(server, stream, choice, 160) for stream in (False, True))
        assert text == same_text == "" and calls and all(name == "look" for name, _ in calls)
        assert len(calls) == len(same_calls)
        done = len(calls) - 1 or 1  # of those that follow, the last may be cut
        read, same = ([json.loads(arguments) for _, arguments in some[:done]] for some in (calls, same_calls))
        assert read == same and all(arguments["at"] in ("sky", "sea") for arguments in read)


def test_a_forced_call_that_is_cut_leaves_no_mark_in_the_text(server):
    for max_tokens in (*range(1, 16), 30):
        text, _ = chat(server, False, "required", max_tokens)
        assert text == "", max_tokens


def test_arguments_of_a_forced_call_have_the_types_and_limits_of_the_schema(server):
    for seed in range(4):
        answer = sent(server, "/v1/chat/completions", {
            "messages": TALK, "tools": [{"type": "function", "function": TRIP}], "seed": seed, "temperature": 1.0,
            "tool_choice": {"type": "function", "function": {"name": "trip"}}, "max_tokens": 440})
        (call,) = answer.json["choices"][0]["message"]["tool_calls"]
        arguments = json.loads(call["function"]["arguments"])
        assert set(arguments) == {"to", "days", "note"}
        assert arguments["to"].isalpha() and arguments["to"].islower() and 1 <= len(arguments["to"]) <= 6
        assert isinstance(arguments["days"], int) and 1 <= arguments["days"] <= 9
        assert arguments["note"] in ("wet", "dry", None)


def test_a_call_and_its_result_go_into_the_next_prompt(server):
    talk = [*TALK, {"role": "assistant", "content": None, "tool_calls": [
        {"id": "abcdef123", "type": "function", "function": {"name": "look", "arguments": '{"at": "sky"}'}}]},
        {"role": "tool", "tool_call_id": "abcdef123", "content": "blue"}]
    body = {"messages": talk, "tools": [{"type": "function", "function": LOOK}]}
    prompt = sent(server, "/v1/chat/completions/render", body).json["prompt"]
    assert prompt.replace("looked", "").count("look") == 2, prompt
    assert prompt.count("sky") == 1 and prompt.count("blue") == 1, prompt
    chat(server, False, "auto", 8, talk)
