"""What requests ask: text of a wanted number of tokens, equal where its keys are equal, and the bytes of a request."""

import hashlib
import json
import random

# Words that vocabularies hold whole, with a space before them: as many words, about as many tokens.
WORDS = (
    "the and was said day time little girl boy dog cat big red blue tree house park ball happy sad play friend mom dad saw "
    "went home good new old like look come make help find water food fun sun bird fish car toy box book name love eat run "
    "walk jump sing sleep door bed hand head eye small nice long way man one two three first again"
).split()
RIVER_UNITS = 65536
TAG_UNITS = 8  # drawn from the key alone, so that no two passages begin alike by chance


class River:
    """A long row of random units; a passage is a cut of it behind a tag of its own: long texts cost a copy, not a draw."""

    def __init__(self, units, separator):
        self.units, self.separator = units, separator
        drawn = random.Random("river").choices(units, k=RIVER_UNITS)
        self.text = separator.join(drawn) + separator
        self.starts, at = [], 0
        for unit in drawn:
            self.starts.append(at)
            at += len(unit) + len(separator)
        self.starts.append(at)

    def passage(self, key, num_units):
        """A function of both; of one key, a shorter passage is the beginning of a longer one."""
        digest = hashlib.sha256(key.encode()).digest()
        tag = [self.units[int.from_bytes(digest[2 * i : 2 * i + 2], "big") % len(self.units)] for i in range(TAG_UNITS)]
        parts, left = [self.separator.join(tag[:num_units])], num_units - TAG_UNITS
        at = int.from_bytes(digest[-4:], "big") % RIVER_UNITS
        while left > 0:
            end = min(at + left, RIVER_UNITS)
            parts.append(self.text[self.starts[at] : self.starts[end] - len(self.separator)])
            left -= end - at
            at = 0
        return self.separator.join(parts)


class Asker:
    """Writes requests. Texts are a function of the salt (seed and round) and the plan; who is asked has no part in them."""

    def __init__(self, scenario, target, model, salt, api_key=""):
        self.scenario, self.salt = scenario, salt
        if scenario.prompt_as == "token_ids":
            self.river = River([str(i) for i in range(*scenario.token_ids)], ",")
        else:
            self.river = River(WORDS, " ")
        fields = dict(scenario.body) | {"model": model, "stream": scenario.stream}
        if scenario.stream:
            fields["stream_options"] = {"include_usage": True}
        if scenario.ignore_eos:
            fields["ignore_eos"] = True
        self.fields = json.dumps(fields)[:-1]
        path = target.path + ("/v1/chat/completions" if scenario.endpoint == "chat" else "/v1/completions")
        head = [
            f"POST {path} HTTP/1.1", f"Host: {target.authority}", "Content-Type: application/json",
            f"Accept: {'text/event-stream' if scenario.stream else 'application/json'}", "User-Agent: quire-load",
        ]  # fmt: skip
        if api_key:
            head.append(f"Authorization: Bearer {api_key}")
        self.head = "\r\n".join(head) + "\r\nContent-Length: "

    def request(self, planned):
        """The bytes that ask for it."""
        body = f'{self.fields}, "max_tokens": {planned.answer_tokens}, {self.question(planned)}}}'.encode()
        return f"{self.head}{len(body)}\r\n\r\n".encode() + body

    def question(self, planned):
        shared = [self.river.passage(f"{self.salt} {key}", tokens) for key, tokens in planned.shared]
        own = [self.river.passage(f"{self.salt} own {planned.index}", planned.own_tokens)] if planned.own_tokens else []
        whole = self.river.separator.join(shared + own)
        if self.scenario.prompt_as == "token_ids":
            return f'"prompt": [{whole}]'
        if self.scenario.endpoint == "completions":
            return f'"prompt": {json.dumps(whole)}'
        if shared and own:
            texts = [("system", " ".join(shared)), ("user", own[0])]
        else:
            texts = [("user", whole)]
        return '"messages": ' + json.dumps([{"role": role, "content": text} for role, text in texts])
