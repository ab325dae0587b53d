"""Conversations as chat templates get them: a matrix of messages, tools and switches."""

TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "What the <weather> is & will be \"there\"",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Name of the city, e.g. Zürich"},
                "days": {"type": "integer", "description": "how many", "default": 3, "minimum": 1},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "description": "unit"},
                "where": {
                    "type": "object",
                    "properties": {"lat": {"type": "number"}, "names": {"type": "array", "items": {"type": "string"}}},
                    "required": ["lat"],
                },
                "any": {"type": ["string", "null"], "nullable": True},
            },
            "required": ["city"],
        },
        "return": {"type": "string"},
    },
}
BARE_TOOL = {"type": "function", "function": {"name": "now", "description": "time", "parameters": {"type": "object", "properties": {}}}}

USER = {"role": "user", "content": "Hello, how are you?"}
SYSTEM = {"role": "system", "content": "You are  helpful.\n"}
ASSISTANT = {"role": "assistant", "content": "Fine, thanks."}
UNICODE = {"role": "user", "content": "Grüße 你好 🙂 <|im_end|> 'q' \"d\" \\ \t\u2028\x00 é"}
THOUGHT = {"role": "assistant", "content": "<think>\nhm\n</think>\n\nanswer"}
REASONED = {"role": "assistant", "content": "yes", "reasoning_content": "because\n", "reasoning": "because\n", "thinking": "so"}
PARTS = {"role": "user", "content": [{"type": "text", "text": "What is this?"}, {"type": "text", "text": " And that?"}]}
IMAGE = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {"url": "u"}}]}


def call(arguments, identifier="abcdef123", name="get_weather", content=None, **more):
    function = {"name": name, "arguments": arguments}
    return {"role": "assistant", "content": content, "tool_calls": [{"id": identifier, "type": "function", "function": function}], **more}


def answer(content, identifier="abcdef123", name="get_weather"):
    return {"role": "tool", "content": content, "tool_call_id": identifier, "name": name}


ARGUMENTS = {"city": "Zürich", "days": 2, "deep": {"a": [1, 2.5, None, True], "b": "x'y"}, "ratio": 1e-7}
TWO_CALLS = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {"id": "call00001", "type": "function", "function": {"name": "now", "arguments": {}}},
        {"id": "call00002", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Bern"}}},
    ],
}

MESSAGES = {
    "one": [USER],
    "system": [SYSTEM, USER],
    "turns": [SYSTEM, USER, ASSISTANT, USER, ASSISTANT, UNICODE],
    "ends_with_assistant": [USER, ASSISTANT],
    "thought": [USER, THOUGHT, USER],
    "thought_last": [USER, THOUGHT],
    "reasoned": [USER, REASONED, USER, REASONED],
    "unicode": [{"role": "system", "content": "Ünïcödé"}, UNICODE],
    "empty_content": [{"role": "system", "content": ""}, {"role": "user", "content": ""}, {"role": "assistant", "content": ""}],
    "none_content": [USER, {"role": "assistant", "content": None}, USER],
    "no_content": [{"role": "user"}],
    "no_role": [{"content": "x"}],
    "nothing": [],
    "unknown_role": [{"role": "wizard", "content": "x"}],
    "developer": [{"role": "developer", "content": "be brief"}, USER],
    "two_users": [USER, USER],
    "system_late": [USER, SYSTEM, USER],
    "call": [USER, call(ARGUMENTS), answer("sunny"), ASSISTANT],
    "call_open": [SYSTEM, USER, call(ARGUMENTS)],
    "call_answered": [USER, call(ARGUMENTS), answer("sunny\n")],
    "call_as_text": [USER, call('{"city": "Bern"}'), answer('{"t": 20}')],
    "call_with_content": [USER, call({"city": "Bern"}, content="let me see"), answer("rain"), USER],
    "call_reasoned": [USER, call({"city": "Bern"}, content="", reasoning_content="think", thinking="think"), answer("rain")],
    "call_ids": [USER, call({}, "functions.now:0", "now"), answer("12", "functions.now:0", "now"), USER],
    "two_calls": [USER, TWO_CALLS, answer("12", "call00001", "now"), answer("sunny", "call00002"), ASSISTANT, USER],
    "answer_as_object": [USER, call(ARGUMENTS), answer({"t": 20, "list": [1, "x"]})],
    "answer_in_parts": [USER, call(ARGUMENTS), answer([{"type": "text", "text": "sunny"}])],
    "answer_alone": [USER, answer("sunny")],
    "parts": [SYSTEM, PARTS, ASSISTANT],
    "image": [IMAGE],
    "not_objects": ["hello"],
    "spaces": [{"role": "user", "content": "  \n padded \n\n"}, {"role": "assistant", "content": "\n\n x \n"}],
}

SWITCHES = {
    "plain": {},
    "prompt": {"add_generation_prompt": True},
    "no_prompt": {"add_generation_prompt": False},
    "thinks": {"add_generation_prompt": True, "enable_thinking": True, "thinking": True, "reasoning_effort": "high"},
    "does_not_think": {"add_generation_prompt": True, "enable_thinking": False, "thinking": False, "thinking_budget": 512},
    "dates": {"date_string": "26 Jul 2024", "keep_past_thinking": True, "model_identity": "I am.", "builtin_tools": ["browser", "python"]},
}

TOOLS = {
    "no_tools": {},
    "null_tools": {"tools": None},
    "empty_tools": {"tools": []},
    "one_tool": {"tools": [TOOL]},
    "two_tools": {"tools": [TOOL, BARE_TOOL]},
}

TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


def conversations():
    """(name, variables): every message list with every set of tools and every switch, less the rarest pairs of these two."""
    for messages_name, messages in MESSAGES.items():
        for switch_name, switches in SWITCHES.items():
            for tools_name, tools in TOOLS.items():
                if switch_name not in ("plain", "prompt") and tools_name not in ("no_tools", "one_tool"):
                    continue
                name = f"{messages_name}/{switch_name}/{tools_name}"
                yield name, {"messages": messages, **TOKENS, **switches, **tools}
