"""Whatever is asked, what a stream's pieces add up to is the answer that is not streamed."""

import http.client
import json
import random

import pytest

from conftest import PATIENCE_S, events_of
from test_chat import TOOL

LISTS = ("tokens", "token_logprobs", "top_logprobs", "text_offset")
WORDS = ("Once", " upon", " a", " time", "little", "dragon", " sea", "\n", " Lily", "é", "🙂", "the ", "“Oh!”", " said Tom")
CALL = r'<tool_call>\n?\{"name": "(look|nothing)", "arguments": \{"at": "(sky|sea|[a-zé\\u00e9]{3,9})", "for_s": [1-9][0-9]{0,2}\}\}\n?</tool_call>'
FORMS = {  # what the model may say
    "call": CALL,
    "talk_and_call": f"[a-z ]{{3,20}}{CALL}",
    "calls": f"({CALL}\\n?){{2,3}}",
    "broken_call": r'<tool_call>\{"name": "look", "arguments": \{"at": [a-z]{2,8}</tool_call>[a-z ]{2,9}',
    "no_call": r"<tool_cal[a-k ]{2,12}",
    "thoughts": r"[a-z ]{5,30}</think>\n?[a-z ]{5,30}",
}
SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer"}}, "required": ["name", "age"]}


class Asker:
    """Asks a body twice, whole and streamed."""

    def __init__(self, server, path):
        self.server, self.path = server, path

    def whole(self, body):
        answer = self.server.post_to(self.path, body)
        assert answer.status == 200, (body, answer.text)
        return answer.json

    def events(self, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S)
        try:
            connection.request("POST", self.path, json.dumps({**body, "stream": True, "stream_options": {"include_usage": True}}),
                               {"Content-Type": "application/json"})
            response = connection.getresponse()
            assert response.status == 200, (body, response.read())
            *events, done = events_of(response)
        finally:
            connection.close()
        assert done == "[DONE]"
        return [json.loads(event) for event in events]


def plain_usage(usage):
    return {name: usage[name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")}


def gathered(events, start, add):
    """The answer that a stream adds up to: its head, its choices in order, its usage."""
    heads = {(event["id"], event["model"], event["seed"], event["system_fingerprint"]) for event in events}
    assert len(heads) == 1
    choices = {}
    for event in events[:-1]:
        assert event["usage"] is None
        for piece in event["choices"]:
            choice = choices.setdefault(piece["index"], {"index": piece["index"], "logprobs": None, "finish_reason": None, **start()})
            assert choice["finish_reason"] is None, "a choice goes on after its end"
            add(choice, piece)
            for name in ("finish_reason", "stop_reason", "prompt_logprobs"):
                if name in piece:
                    choice[name] = piece[name]
            if "token_ids" in piece:
                choice["token_ids"] = choice.get("token_ids", []) + piece["token_ids"]
                choice.setdefault("prompt_token_ids", piece.get("prompt_token_ids"))
    assert events[-1]["choices"] == []
    return [choices[i] for i in sorted(choices)], plain_usage(events[-1]["usage"])


# ---- completions


def add_text(choice, piece):
    choice["text"] += piece["text"]
    if piece["logprobs"] is not None:
        lists = choice["logprobs"] or {name: [] for name in LISTS}
        choice["logprobs"] = {name: lists[name] + piece["logprobs"][name] for name in LISTS}


def random_rules(chance):
    """Fields that both endpoints have."""
    some = chance.random
    fields = {"seed": chance.randrange(2**40), "max_tokens": chance.randrange(1, 48), "temperature": chance.choice([0, 0.7, 1, 2])}
    if some() < 0.3:
        fields["top_p"] = chance.uniform(0.2, 1)
    if some() < 0.3:
        fields["stop"] = chance.choice([" the", ["a ", ". "], ["little", "e"], "never said"])
        fields["include_stop_str_in_output"] = some() < 0.5
    if some() < 0.2:
        fields["stop_token_ids"] = chance.sample(range(1, 4096), 30)
    if some() < 0.3:
        fields["return_token_ids"] = True
    if some() < 0.2:
        fields["return_tokens_as_token_ids"] = True
    if some() < 0.2:
        fields["ignore_eos"] = True
    if some() < 0.2:
        fields["min_tokens"] = chance.randrange(fields["max_tokens"] + 1)
    if some() < 0.2:
        fields.update(presence_penalty=chance.uniform(-2, 2), repetition_penalty=chance.uniform(0.8, 1.5))
    if some() < 0.2:
        fields["skip_special_tokens"] = False
    return fields


def random_form(chance):
    return chance.choice([
        {"guided_regex": "[a-c]{2,5}-\\d{3}"}, {"guided_choice": ["yes", "no", "maybe", "é🙂"]}, {"guided_json": SCHEMA},
        {"guided_grammar": 'root ::= "hello " ("world" | "you, " name)\nname ::= [A-Z] [a-z]*'}, {"response_format": {"type": "json_object"}},
    ])  # fmt: skip


def random_completion(chance):
    text = "".join(chance.choices(WORDS, k=chance.randrange(1, 12)))
    ids = chance.sample(range(1, 4096), chance.randrange(1, 12))
    fields = {"prompt": chance.choice([text, text, ids, [text, "The dog"], [ids, [5, 6]]]), **random_rules(chance)}
    if chance.random() < 0.4:
        fields["n"] = chance.randrange(1, 4)
    if chance.random() < 0.4:
        fields["echo"] = True
    if chance.random() < 0.5:
        fields["logprobs"] = chance.randrange(0, 6)
    if chance.random() < 0.2:
        fields["prompt_logprobs"] = chance.randrange(0, 4)
    if fields.get("echo") and chance.random() < 0.2:
        fields["max_tokens"] = fields["min_tokens"] = 0
    elif chance.random() < 0.3:
        fields.update(random_form(chance))
    return fields


@pytest.mark.parametrize("part", range(4))
def test_a_streamed_completion_is_the_whole_one(server, part):
    asker = Asker(server, "/v1/completions")
    for seed in range(40 * part, 40 * (part + 1)):
        body = random_completion(random.Random(seed))
        whole = asker.whole(body)
        choices, usage = gathered(asker.events(body), lambda: {"text": ""}, add_text)
        assert choices == whole["choices"], (seed, body)
        assert usage == plain_usage(whole["usage"]), (seed, body)


# ---- chat


def empty_message():
    return {"message": {"role": None, "content": None, "refusal": None}}


def add_delta(choice, piece):
    message, delta = choice["message"], piece["delta"]
    message["role"] = delta.get("role") or message["role"]
    for name in ("content", "reasoning", "reasoning_content"):
        if delta.get(name):
            message[name] = (message.get(name) or "") + delta[name]
    for part in delta.get("tool_calls", []):
        calls = message.setdefault("tool_calls", [])
        if part["index"] == len(calls):
            calls.append({"id": part["id"], "type": part["type"], "function": {"name": part["function"]["name"], "arguments": ""}})
        assert part["index"] == len(calls) - 1, "calls come one after the other"
        calls[-1]["function"]["arguments"] += part["function"]["arguments"]
    if piece["logprobs"] is not None:
        tokens = choice["logprobs"] or {"content": [], "refusal": None}
        choice["logprobs"] = {**tokens, "content": tokens["content"] + piece["logprobs"]["content"]}


def random_chat(chance):
    talk = [{"role": chance.choice(["user", "assistant", "system"]), "content": "".join(chance.choices(WORDS, k=6))} for _ in range(chance.randrange(4))]
    fields = {"messages": talk + [{"role": "user", "content": "Look at the sea."}], **random_rules(chance)}
    if chance.random() < 0.4:
        fields["n"] = chance.randrange(1, 4)
    if chance.random() < 0.5:
        fields.update(logprobs=True, top_logprobs=chance.randrange(0, 6))
    if chance.random() < 0.2:
        fields["include_reasoning"] = False
    if chance.random() < 0.2:
        fields["parallel_tool_calls"] = False
    fields.pop("min_tokens", None)  # a form may be at its end before
    kind = chance.choice(["free", "form", "forced", "forced", *FORMS, *FORMS])
    if kind == "form":
        fields.update(random_form(chance))
    elif kind in FORMS:
        fields["structured_outputs"] = {"regex": FORMS[kind]}
    elif kind == "forced":
        fields["tool_choice"] = chance.choice(["required", {"type": "function", "function": {"name": "look"}}])
    if kind in FORMS or kind == "forced":
        fields["max_tokens"] = chance.choice([20, 60, 150, 150])
        fields.pop("stop", None)
    if "call" in kind or kind == "forced" or chance.random() < 0.2:
        fields["tools"] = [TOOL]
    if chance.random() < 0.2:
        fields["chat_template_kwargs"] = {"enable_thinking": True}
    return fields


def same_chat(server, body):
    """The choices of a chat, once it is found to be the same streamed and whole."""
    asker = Asker(server, "/v1/chat/completions")
    whole = asker.whole(body)
    choices, usage = gathered(asker.events(body), empty_message, add_delta)
    for choice in choices + whole["choices"]:  # nothing said is "" or null: the head of a stream cannot know which
        choice["message"]["content"] = choice["message"]["content"] or None
    assert choices == whole["choices"], body
    assert usage == plain_usage(whole["usage"]), body
    return choices


def test_a_streamed_chat_is_the_whole_one(talker):
    seen = {"calls": 0, "several calls": 0, "content and call": 0, "reasoning": 0, "cut call": 0, "logprobs": 0}
    for seed in range(120):
        for choice in same_chat(talker, random_chat(random.Random(seed))):
            message = choice["message"]
            calls = message.get("tool_calls", [])
            seen["calls"] += bool(calls)
            seen["several calls"] += len(calls) > 1
            seen["content and call"] += bool(calls and message["content"])
            seen["reasoning"] += "reasoning" in message
            seen["cut call"] += bool(calls and choice["finish_reason"] == "length")
            seen["logprobs"] += choice["logprobs"] is not None
    assert min(seen.values()) >= 1, seen


def test_marks_are_found_among_their_own_pieces(talker):
    """Nothing but the pieces of a mark is said, in any order: now and then they make one, and often nearly."""
    pieces = talker.post_to("/tokenize", {"prompt": "</think>"}).json["tokens"]
    found = 0
    for seed in range(6):
        choices = same_chat(talker, {
            "messages": [{"role": "user", "content": "Look"}], "chat_template_kwargs": {"enable_thinking": True}, "allowed_token_ids": pieces,
            "n": 8, "seed": seed, "max_tokens": 300, "temperature": 2, "top_p": 1, "frequency_penalty": 2, "logprobs": seed % 2 == 0})  # fmt: skip
        found += sum(choice["message"]["content"] is not None for choice in choices)
    assert found >= 2
