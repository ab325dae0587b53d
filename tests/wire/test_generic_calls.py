"""Calls of tools by a model whose template teaches none: the server teaches them, and holds the model to what it taught."""
import json

import pytest

from conftest import HERMES, THINKING

# Templates as models of before tools have them: one that keeps all roles, one that refuses what it does not know.
PLAIN = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: "
TURNS = ("{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) or m.tool_calls %}"
         "{{ raise_exception('roles must alternate') }}{% endif %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: ")
LOOK = {"name": "look", "description": "Look at it", "parameters": {
    "type": "object", "properties": {"at": {"type": "string", "enum": ["sky", "sea"]}}, "required": ["at"], "additionalProperties": False}}
TALK = [{"role": "user", "content": "Lily looked at the"}]
MARKS = ("<tool_call>", "tool_call", '{"name"', "[TOOL_CALLS]")


@pytest.fixture(scope="module", params=[PLAIN, TURNS, HERMES, THINKING], ids=["plain", "turns", "hermes", "thinking"])
def any_server(request, tmp_path_factory):
    from conftest import server_of
    yield from server_of(request.param, tmp_path_factory.mktemp("any"))


@pytest.fixture(scope="module", params=[PLAIN, TURNS], ids=["plain", "turns"])
def untaught(request, tmp_path_factory):
    from conftest import server_of
    yield from server_of(request.param, tmp_path_factory.mktemp("untaught"))


def sent(server, path, fields):
    answer = server.post_to(path, {"model": "stories", "seed": 5, **fields})
    assert answer.status == 200, answer.text
    return answer


def events(answer):
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ") and line != "data: [DONE]"]


# Each surface: what forces a call, and what an answer says: its text, and its calls as (name, arguments).

def chat(server, stream, choice, max_tokens, messages=TALK):
    answer = sent(server, "/v1/chat/completions", {"messages": messages, "tools": [{"type": "function", "function": LOOK}],
                                                   "tool_choice": choice, "max_tokens": max_tokens, "stream": stream})
    if not stream:
        message = answer.json["choices"][0]["message"]
        return message["content"] or "", [(c["function"]["name"], c["function"]["arguments"]) for c in message.get("tool_calls") or []]
    content, calls = "", {}
    for event in events(answer):
        for one in event["choices"]:
            content += one["delta"].get("content") or ""
            for call in one["delta"].get("tool_calls") or []:
                name, arguments = calls.get(call["index"], ("", ""))
                calls[call["index"]] = (name + (call["function"].get("name") or ""), arguments + (call["function"].get("arguments") or ""))
    return content, list(calls.values())


def messages(server, stream, choice, max_tokens):
    choice = {"auto": {"type": "auto"}, "required": {"type": "any"}}[choice] if isinstance(choice, str) else {"type": "tool", "name": "look"}
    tool = {"name": LOOK["name"], "description": LOOK["description"], "input_schema": LOOK["parameters"]}
    answer = sent(server, "/v1/messages", {"messages": TALK, "tools": [tool], "tool_choice": choice,
                                           "max_tokens": max_tokens, "stream": stream})
    if not stream:
        blocks = answer.json["content"]
        return ("".join(b["text"] for b in blocks if b["type"] == "text"),
                [(b["name"], json.dumps(b["input"])) for b in blocks if b["type"] == "tool_use"])
    content, calls = "", {}
    for event in events(answer):
        if event["type"] == "content_block_start" and event["content_block"]["type"] == "tool_use":
            calls[event["index"]] = (event["content_block"]["name"], "")
        if event["type"] == "content_block_delta":
            content += event["delta"].get("text", "")
            if "partial_json" in event["delta"]:
                name, arguments = calls[event["index"]]
                calls[event["index"]] = (name, arguments + event["delta"]["partial_json"])
    return content, list(calls.values())


def responses(server, stream, choice, max_tokens):
    choice = choice if isinstance(choice, str) else {"type": "function", "name": "look"}
    answer = sent(server, "/v1/responses", {"input": TALK, "tools": [{"type": "function", **LOOK}], "tool_choice": choice,
                                            "max_output_tokens": max_tokens, "stream": stream})
    said = answer.json if not stream else events(answer)[-1]["response"]
    text = "".join(part["text"] for item in said["output"] if item["type"] == "message" for part in item["content"])
    if stream:
        assert "".join(event["delta"] for event in events(answer) if event["type"] == "response.output_text.delta") == text
    return text, [(item["name"], item["arguments"]) for item in said["output"] if item["type"] == "function_call"]


NAMED = {"type": "function", "function": {"name": "look"}}


@pytest.mark.parametrize("surface", [chat, messages, responses])
@pytest.mark.parametrize("choice", ["required", NAMED], ids=["required", "named"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_forced_call_works_whatever_the_template_teaches(any_server, surface, choice, stream):
    text, calls = surface(any_server, stream, choice, 120)
    assert text == ""
    assert calls and all(name == "look" for name, _ in calls)
    assert all(json.loads(arguments)["at"] in ("sky", "sea") for _, arguments in calls[:-1] or calls)


@pytest.mark.parametrize("surface", [chat, messages, responses])
def test_a_forced_call_that_is_cut_leaves_no_mark_in_the_text(any_server, surface):
    for max_tokens in (*range(1, 24), 30, 40):
        for stream in (False, True):
            text, _ = surface(any_server, stream, "required", max_tokens)
            assert text == "", (max_tokens, stream)


@pytest.mark.parametrize("surface", [chat, messages, responses])
def test_tools_that_may_be_called_are_taken_and_what_begins_as_a_call_is_one(untaught, surface):
    for stream in (False, True):
        text, calls = surface(untaught, stream, "auto", 40)
        assert text or calls
        assert not any(mark in text for mark in MARKS[:1])


def test_a_forced_call_without_a_limit_ends(untaught):
    text, calls = chat(untaught, False, "required", None)
    assert text == "" and 1 <= len(calls) <= 16


def test_a_conversation_with_calls_and_results_goes_on(untaught):
    talk = [*TALK, {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "sky"}'}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "blue"}]
    rendered = untaught.post_to("/v1/chat/completions/render", {"model": "stories", "messages": talk, "tools": [{"type": "function", "function": LOOK}]})
    assert rendered.status == 200, rendered.text
    prompt = json.dumps(rendered.json)
    for part in ("Look at it", "<tool_call>\\\\n", "<tool_response>\\\\nblue\\\\n</tool_response>"):
        assert json.dumps(part.replace("\\\\n", "\n"))[1:-1] in prompt or part in prompt, part
    chat(untaught, False, "auto", 8, talk)


def test_systems_and_developers_anywhere_are_taken_by_a_template_that_refuses_them(untaught):
    talk = [{"role": "developer", "content": "Be kind."}, {"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Hi"}, {"role": "system", "content": "Be sad."}, {"role": "user", "content": "Why?"}]
    assert sent(untaught, "/v1/chat/completions", {"messages": talk, "max_tokens": 4}).json["usage"]["prompt_tokens"] > 10


def test_an_operator_may_switch_calls_off(start_server, tmp_path):
    (tmp_path / "t.jinja").write_text(PLAIN)
    server = start_server("--chat-template", tmp_path / "t.jinja", "--tool-call-parser", "none")
    answer = server.post_to("/v1/chat/completions", {"model": "stories", "messages": TALK, "tools": [{"type": "function", "function": LOOK}]})
    assert answer.status == 400 and "--tool-call-parser none" in answer.json["error"]["message"]


# ---- stop strings

def test_a_stop_string_does_not_count_inside_reasoning(thinking_server):
    def told(**more):
        answer = sent(thinking_server, "/v1/chat/completions", {"messages": TALK, "max_tokens": 24, **more}).json["choices"][0]
        return answer["message"].get("reasoning") or answer["message"]["content"], answer["finish_reason"]

    for thinks, end in ((True, "length"), (False, "stop")):  # with the same words
        thinking = {"chat_template_kwargs": {"enable_thinking": thinks}}
        free, _ = told(**thinking)
        word = free.split()[2]
        text, reason = told(**thinking, stop=[word])
        assert reason == end
        assert text == (free if thinks else free[:free.index(word)])
