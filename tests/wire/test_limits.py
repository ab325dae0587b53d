"""Every limit on the length of a list or a text of a request: so many are taken, one more is refused by the field's name."""

import pytest

from test_chat import TOOL

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
USER = {"role": "user", "content": "Once"}


def tool(nth):
    return {"type": "function", "function": {**TOOL["function"], "name": f"look_{nth}"}}


def call(nth):
    return {"id": f"c{nth}", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def schema_of(length):
    """The JSON text of a schema, so long."""
    begin, end = '{"type":"integer","description":"', '"}'
    return begin + "x" * (length - len(begin) - len(end)) + end


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


# endpoint, field of the error, most, what becomes of a number, and what goes with it
LIMITS = [
    (COMPLETIONS, "prompt", 128, lambda n: {"prompt": ["a"] * n}),
    (COMPLETIONS, "prompt", 511, lambda n: {"prompt": [5] * n, "max_tokens": 1}),
    (COMPLETIONS, "n", 128, lambda n: {"n": n}),
    (COMPLETIONS, "best_of", 128, lambda n: {"best_of": n}),
    (COMPLETIONS, "stop", 16, lambda n: {"stop": ["x"] * n}),
    (COMPLETIONS, "stop", 512, lambda n: {"stop": "x" * n}),
    (COMPLETIONS, "stop", 512, lambda n: {"stop": ["x" * (n - 100), "y" * 100]}),
    (COMPLETIONS, "stop_token_ids", 128, lambda n: {"stop_token_ids": list(range(n))}),
    (COMPLETIONS, "allowed_token_ids", 4096, lambda n: {"allowed_token_ids": [7] * n}),
    (COMPLETIONS, "bad_words", 128, lambda n: {"bad_words": ["x"] * n}),
    (COMPLETIONS, "bad_words", 4096, lambda n: {"bad_words": ["x" * (n - 96), "y" * 96]}),
    (COMPLETIONS, "logit_bias", 1024, lambda n: {"logit_bias": {str(i): 1 for i in range(n)}}),
    (COMPLETIONS, "logit_bias.4095", 100, lambda n: {"logit_bias": {"4095": n}}),
    (COMPLETIONS, "logit_bias", 4095, lambda n: {"logit_bias": {str(n): 1}}),
    (COMPLETIONS, "logprobs", 20, lambda n: {"logprobs": n}),
    (COMPLETIONS, "prompt_logprobs", 20, lambda n: {"prompt_logprobs": n}),
    (COMPLETIONS, "cache_salt", 128, lambda n: {"cache_salt": "x" * n}),
    (COMPLETIONS, "request_id", 128, lambda n: {"request_id": "x" * n}),
    (COMPLETIONS, "user", 256, lambda n: {"user": "x" * n}),
    (COMPLETIONS, "guided_regex", 8192, lambda n: {"guided_regex": "[ab]" * ((n - 4) // 4) + "b" * (4 + n % 4)}),
    (COMPLETIONS, "guided_json", 65536, lambda n: {"guided_json": schema_of(n)}),
    (COMPLETIONS, "response_format.json_schema.schema", 65536, lambda n: {"response_format": {"type": "json_schema", "json_schema": {"schema": schema_of(n)}}}),
    (COMPLETIONS, "guided_choice", 65536, lambda n: {"guided_choice": ["x" * (n - 4)]}),  # with the brackets and quotes of its JSON text
    (COMPLETIONS, "max_tokens", 511, lambda n: {"prompt": [5], "max_tokens": n}),
    (CHAT, "messages", 4096, lambda n: {"messages": [{"role": "user", "content": ""}] * n}),
    (CHAT, "messages[0].content", 1024, lambda n: {"messages": [{"role": "user", "content": [{"type": "text", "text": ""}] * n}, USER]}),
    (CHAT, "messages[1].tool_calls", 128, lambda n: {"messages": [USER, {"role": "assistant", "tool_calls": [call(i) for i in range(n)]}]}),
    (CHAT, "tools", 128, lambda n: {"tools": [tool(i) for i in range(n)]}),
    (CHAT, "tools[0].function.name", 64, lambda n: {"tools": [{"type": "function", "function": {"name": "x" * n}}]}),
    (CHAT, "n", 128, lambda n: {"n": n}),
    (CHAT, "top_logprobs", 20, lambda n: {"logprobs": True, "top_logprobs": n}),
    (CHAT, "chat_template_kwargs.deep", 48, lambda n: {"chat_template_kwargs": {"deep": nested(n)}}),
    (CHAT, "documents", 48, lambda n: {"documents": [{"deep": nested(n - 2)}]}),
]  # fmt: skip


@pytest.fixture(scope="module")
def short_talker(tmp_path_factory):
    """Its template says the last message alone, so that the prompt is not what grows too long."""
    from conftest import Server

    template = tmp_path_factory.mktemp("template") / "t.jinja"
    template.write_text("Once {{ messages[-1].content }}{% if false %}{{ tools }}<tool_call>{% endif %}"
                        "{% if messages | length == 3 %}{{ messages[1].tool_calls }}{% endif %}")  # else calls would be added
    running = Server("--chat-template", template, "--tool-call-parser", "hermes")
    yield running
    assert running.stop() == 0, running.log[-4000:]


@pytest.mark.parametrize("path, param, most, fields_of", LIMITS, ids=[f"{param}-{most}" for _, param, most, _ in LIMITS])
def test_a_limit_is_where_the_docs_have_it(short_talker, path, param, most, fields_of):
    begin = {"prompt": "Once"} if path == COMPLETIONS else {"messages": [USER]}
    for length in (most - 1, most):
        answer = short_talker.post_to(path, {**begin, "max_tokens": 1, **fields_of(length)})
        assert answer.status == 200, (length, answer.text[:1000])
    answer = short_talker.post_to(path, {**begin, "max_tokens": 1, **fields_of(most + 1)})
    assert answer.status == 400 and answer.error["param"] == param, answer.text[:1000]
    assert len(answer.text) < 1500
