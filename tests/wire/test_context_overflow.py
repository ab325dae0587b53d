"""A prompt that is too long is told in the words by which programs know it: they shorten the talk and ask again, instead of giving up."""

import re

import pytest

SURFACES = {  # path → (what asks with so many words, the field that has too many)
    "/v1/chat/completions": (lambda words: {"messages": [{"role": "user", "content": "word " * words}], "max_tokens": 16}, "messages"),
    "/v1/completions": (lambda words: {"prompt": "word " * words, "max_tokens": 16}, "prompt"),
    "/v1/responses": (lambda words: {"input": "word " * words, "max_output_tokens": 16}, "input"),
    "/v1/messages": (lambda words: {"messages": [{"role": "user", "content": "word " * words}], "max_tokens": 16}, "messages"),
}
OPENAI = [path for path in SURFACES if path != "/v1/messages"]
# The model of the tests takes 512 tokens. A prompt far past that is not counted to its end.
LENGTHS = {"a little": 600, "far": 40_000}

# What a program reads of the refusal and what it looks for there, in our words: one of its places is enough. `code`, `type` and `message` are the
# error's; `whole` is the text of the exception with the whole body in it, as openai before 3.38 and anthropic write it. openai from 3.38 writes
# the message alone, so who tests that exception's text for a code finds it there or nowhere. (?i): the program lowers the text first.
CODE = {"code": r"\Acontext_length_exceeded\Z"}
CREW = r"(?i)maximum context length|context length exceeded|context_length_exceeded|context window full|too many tokens|input is too long"
TABLE = (r"(?i)prompt is too long|exceeds the context window|reduce the length of the messages|maximum context length is \d+ tokens"
         r"|context[_ ]length[_ ]exceeded|too many tokens")  # opencode's, which began as pi's
CLINE = r"(?i)context (length|window|limit)|maximum context|too many tokens|(input|prompt) is too long"
RULES = {  # programs as of November 2026
    "LangChain": {"message": r"context_length_exceeded|prompt is too long|Input tokens exceed the configured limit|ContextWindowExceededError"},
    "LiteLLM": {"message": r"(?i)this model's maximum context length is|model's maximum context limit|exceed context limit"},
    "CrewAI": {"whole": CREW},
    "Strands Agents": {**CODE, "whole": r"(?i)context length|context_length_exceeded|too many tokens|exceeds? model maximum"},
    "Pydantic AI": {**CODE, "message": r"(?i)maximum context length|reduce the length of the messages"},
    "Inspect": CODE,
    "Inspect, of vLLM": {"message": r"maximum context length"},
    "Inspect, of SGLang": {"message": r"context length"},
    "opencode": {**CODE, "message": TABLE},
    "pi": {"message": TABLE},
    "Cline": {**CODE, "message": CLINE},
    "Roo Code": {"message": r"(?i)context (length|window)|maximum context|tokens? exceed|too many tokens"},
    "readers of both numbers": {"message": r"(?i)maximum context length is \d+ tokens.*?requested \d+ tokens"},
}  # fmt: skip
MESSAGES_RULES = {
    "LangChain": {"message": r"prompt is too long"},
    "LiteLLM": {"whole": r"prompt is too long|prompt: length"},
    "CrewAI": {"whole": CREW},
    "Strands Agents": {"whole": r"(?i)prompt is too long:|input is too long|input length exceeds context window"},
    "Pydantic AI": {"message": r"(?i)prompt is too long"},
    "Inspect": {"whole": r"(?i)prompt is too long|input is too long|input length and `max_tokens` exceed context limit"},
    "opencode": {**CODE, "message": TABLE},
    "pi": {"message": TABLE},
    "Cline": {**CODE, "message": CLINE},
    "Roo Code": {"message": r"(?i)prompt is too long|exceeds.*context|maximum.*tokens|context_length_exceeded"},
    "Zed": {"message": r"\Aprompt is too long: \d+ tokens"},
    "readers of the whole message": {"message": r"\Aprompt is too long: \d+ tokens > \d+ maximum\Z"},
}  # fmt: skip
# What reads so is waited out and sent again as it is, by LiteLLM, CrewAI, Strands Agents, opencode, pi and Cline.
THROTTLED = r"(?i)rate[\s_-]*limit|too many requests|throttled|resource exhausted|per[\s_-]?minute"


class Refusal:
    """A refusal, and the texts in which client libraries hand it on."""

    def __init__(self, answer):
        self.status = answer.status
        self.said = answer.error
        self.read = {name: str(self.said.get(name)) for name in ("code", "type", "message")}
        self.read["whole"] = f"Error code: {answer.status} - {answer.json}"

    def is_overflow_to(self, rule):
        assert self.status == 400 and self.read["type"] == "invalid_request_error", self.read
        throttled = re.search(THROTTLED, self.read["whole"])
        return not throttled and any(re.search(sought, self.read[place], re.DOTALL) for place, sought in rule.items())


@pytest.fixture(scope="module")
def refusals(server):
    """path → [what a prompt that is too long is told]: a little and far too long, whole and streamed."""
    return {path: [Refusal(server.post_to(path, {**ask(words), "stream": stream})) for words in LENGTHS.values() for stream in (False, True)]
            for path, (ask, _) in SURFACES.items()}


@pytest.mark.parametrize("path", OPENAI)
@pytest.mark.parametrize("program", RULES)
def test_a_prompt_that_is_too_long_is_recognised(refusals, program, path):
    for refusal in refusals[path]:
        assert refusal.is_overflow_to(RULES[program]), refusal.read["whole"]


@pytest.mark.parametrize("program", MESSAGES_RULES)
def test_messages_that_are_too_long_are_recognised(refusals, program):
    for refusal in refusals["/v1/messages"]:
        assert refusal.is_overflow_to(MESSAGES_RULES[program]), refusal.read["whole"]


@pytest.mark.parametrize("path", OPENAI)
def test_the_numbers_are_plain_and_add_up(server, refusals, path):
    limit = server.get("/v1/models").json["data"][0]["max_model_len"]
    sentence = r"This model's maximum context length is (\d+) tokens\. However, you requested (\d+) tokens \((\d+) in the \w+, (\d+) in the "
    for refusal in refusals[path]:
        message = refusal.read["message"]
        told = re.match(sentence, message)
        assert told, message
        most, requested, prompt, completion = map(int, told.groups())
        assert most == limit and completion == 16 and requested == prompt + completion and prompt > limit, message


def test_the_numbers_of_messages_are_the_prompts_and_the_models(server, refusals):
    limit = server.get("/v1/models").json["data"][0]["max_model_len"]
    ask, _ = SURFACES["/v1/messages"]
    counted = server.post_to("/v1/messages/count_tokens", {"messages": ask(LENGTHS["a little"])["messages"]}).json["input_tokens"]
    for nth, refusal in enumerate(refusals["/v1/messages"]):
        told = re.match(r"prompt is too long: (\d+) tokens > (\d+) maximum", refusal.read["message"])
        assert told, refusal.read["message"]
        assert int(told[2]) == limit
        assert int(told[1]) == counted if nth < 2 else counted < int(told[1]) <= LENGTHS["far"] * 2  # of the far one, a lower bound


@pytest.mark.parametrize("path", SURFACES)
def test_the_field_that_is_too_long_is_named_all_the_same(refusals, path):
    for refusal in refusals[path]:
        assert refusal.said["param"] == SURFACES[path][1]


@pytest.mark.parametrize("path", SURFACES)
def test_another_refusal_is_not_taken_for_one(server, path):
    ask, field = SURFACES[path]
    for wrong in ({"temperature": 3}, {field: 5}, {"top_p": 0}):
        refusal = Refusal(server.post_to(path, {**ask(1), **wrong}))
        for program, rule in (MESSAGES_RULES if path == "/v1/messages" else RULES).items():
            assert not refusal.is_overflow_to(rule), (program, refusal.read["whole"])
