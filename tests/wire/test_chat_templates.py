"""Published templates, given to the real server: what it renders is what transformers renders."""

import itertools
import json
import os
import pathlib

import pytest

TEMPLATES = pathlib.Path(os.environ.get("QUIRE_SHARED", "/nowhere")) / "data" / "templates"
SOME = ("Qwen-Qwen3-0.6B", "meta-llama-Llama-3.1-8B-Instruct", "mistralai-Mistral-Nemo-Instruct-2407", "google-gemma-2-2b-it",
        "llama-cpp-deepseek-r1", "HuggingFaceTB-SmolLM3-3B")
NAMES = sorted(path.stem for path in TEMPLATES.glob("*.jinja")) if TEMPLATES.is_dir() else []
TOKENS = {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}  # the embedded model's

TOOL = {"type": "function", "function": {"name": "get_weather", "description": "Say what <weather> it is", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "description": "Zürich, for example"}}, "required": ["city"]}}}
USER = {"role": "user", "content": "Hello, how are you?"}
SYSTEM = {"role": "system", "content": "You are  helpful.\n"}
ASSISTANT = {"role": "assistant", "content": "Fine, thanks."}
CALL = {"role": "assistant", "content": None, "tool_calls": [
    {"id": "abcdef123", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Zürich", "days": 2}'}}]}
RESULT = {"role": "tool", "tool_call_id": "abcdef123", "name": "get_weather", "content": "sunny"}
REASONED = {"role": "assistant", "content": "yes", "reasoning_content": "because"}

CONVERSATIONS = {
    "one": {"messages": [USER]},
    "turns": {"messages": [SYSTEM, USER, ASSISTANT, USER, ASSISTANT, {"role": "user", "content": "Grüße 你好 🙂 'q' \"d\" \\ \t"}]},
    "tools": {"messages": [SYSTEM, USER], "tools": [TOOL]},
    "call": {"messages": [USER, CALL, RESULT], "tools": [TOOL]},
    "call_then_turn": {"messages": [USER, CALL, RESULT, ASSISTANT, USER], "tools": [TOOL]},
    "reasoned": {"messages": [USER, REASONED, USER]},
    "no_thinking": {"messages": [USER], "chat_template_kwargs": {"enable_thinking": False}},
    "no_prompt": {"messages": [USER, ASSISTANT], "add_generation_prompt": False},
    "goes_on": {"messages": [USER, {"role": "assistant", "content": "Fine, and  "}], "continue_final_message": True},
}


def variants(messages):
    """A call as a template may want it: its arguments as an object or a text, its content absent, empty or null."""
    for as_object, content in itertools.product((True, False), ("absent", "", None)):
        shaped = json.loads(json.dumps(messages))
        for message in shaped:
            for call in message.get("tool_calls", []):
                if as_object:
                    call["function"]["arguments"] = json.loads(call["function"]["arguments"])
            if "tool_calls" in message:
                message.pop("content")
                if content != "absent":
                    message["content"] = content
        yield shaped


def references(source, body):
    from transformers.utils.chat_template_utils import render_jinja_template

    found = []
    for messages in variants(body["messages"]):
        goes_on = body.get("continue_final_message", False)
        try:
            (text,), _ = render_jinja_template(
                conversations=[messages], tools=body.get("tools"), chat_template=source, continue_final_message=goes_on,
                add_generation_prompt=body.get("add_generation_prompt", not goes_on),
                **TOKENS, **body.get("chat_template_kwargs", {}))
            found.append(text)
        except Exception:
            pass
    return found


@pytest.mark.parametrize("name", [name if name in SOME else pytest.param(name, marks=pytest.mark.full) for name in NAMES])
def test_a_published_template_renders_as_in_transformers(name, start_server):
    path = TEMPLATES / f"{name}.jinja"
    server = start_server("--chat-template", path, "--tool-call-parser", "hermes")
    for what, body in CONVERSATIONS.items():
        expected = references(path.read_text(), body)
        answer = server.post_to("/v1/chat/completions/render", body)
        if answer.status == 400 and answer.error["code"] == "context_length_exceeded":
            assert expected and len(expected[0]) > 512, (what, answer.error)  # a token is a byte at least
        elif answer.status == 400:
            assert not expected, (what, answer.error)
        elif not expected:  # refused as it is, and taken in another form: nothing of it is lost
            assert {message["role"] for message in body["messages"]} & {"system", "tool"}, what
            assert all(message["content"].strip() in answer.json["prompt"] for message in body["messages"] if message["content"]), (what, answer.text)
        elif any("tool_calls" in message for message in body["messages"]) and not any("days" in text for text in expected):
            assert "days" in answer.json["prompt"] and "sunny" in answer.json["prompt"], what  # the template drops calls
        else:
            assert answer.status == 200 and answer.json["prompt"] in expected, (what, answer.text, expected[:1])


# Those that are for conversations with tools alone, beside another one, and one that reads a variable of its own.
NOT_ALONE = {name for name in NAMES if name.endswith("-tool_use")} | {"MiroThinker"}


@pytest.mark.parametrize("name", [name if name in SOME else pytest.param(name, marks=pytest.mark.full) for name in NAMES if name not in NOT_ALONE])
def test_every_published_template_takes_tools_calls_and_results(name, start_server):
    """In the form that it teaches, or in the generic one; and a system message wherever it stands."""
    server = start_server("--chat-template", TEMPLATES / f"{name}.jinja", "--max-model-len", "512")
    for what in ("tools", "call", "call_then_turn", "turns"):
        answer = server.post_to("/v1/chat/completions/render", CONVERSATIONS[what])
        assert answer.status == 200 or answer.error["code"] == "context_length_exceeded", (what, answer.text)


def test_there_are_templates_to_render():
    if not NAMES:
        pytest.skip("published templates are not here: QUIRE_SHARED names their folder")
