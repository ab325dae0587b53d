"""What the program makes of a model's directory: one `quire serve` is asked everything that the small files have a say in."""

import http.client
import json
import re
import subprocess

from test_cli import ENVIRONMENT, PATIENCE_S, QUIRE

from metadata_shapes.tiny_checkpoints import END, FREE, OTHER_END, PAD, START, STOP, TEXTS

PROMPT = [81, 9, 200, 41, 7, 120, 66, 3, 18, 99, 250, 34, 61, 2, 77, 140, 28, 90, 11, 5, 80, 33, 107, 45, 19, 230, 101, 64]
NUM_ANSWER = 6
MAY_END = (END, 2, OTHER_END, START, STOP, PAD, FREE)  # ids that are asked whether they end an answer
CONVERSATION = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello there"}]
TOOL = {"type": "function", "function": {"name": "weather", "description": "Tell it", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}


class Served:
    """The server of a directory; what it said before it was ready is `said`, or `error` where it did not come to that."""

    def __init__(self, folder, *flags):
        command = [str(QUIRE), "serve", "--model", str(folder), "--port", "0", "--threads", "1", "--log-level", "warning", *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        self.said = ""
        for line in self.process.stdout:
            self.said += line
            if line.startswith("  curl "):
                break
        self.error = ""
        if "ready in" not in self.said:
            self.error = self.process.stderr.read()
            self.code = self.process.wait(timeout=PATIENCE_S)
        else:
            port = int(re.search(r"ready in .*http://[^:]+:(\d+)", self.said)[1])
            self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate(timeout=PATIENCE_S)

    def ask(self, path, **body):
        self.connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())

    def must(self, path, **body):
        status, told = self.ask(path, **body)
        assert status == 200, told
        return told

    # ---- parts of the reading

    def arithmetic(self):
        """All that fixes the model's numbers, as the numeric mode has it: {"E": "64", "window": "0*2", "rope": ...}."""
        told = re.search(r"^numeric mode: .* model=(\S+) (.*)$", self.said, re.M)
        words = dict(word.partition("=")[::2] for word in told[2].split(" "))
        return {"model": told[1]} | words

    def length(self):
        return self.must("/tokenize", prompt="a")["max_model_len"]

    def defaults(self):
        line = re.search(r"sampling defaults: (.*) \(generation_config", self.said)
        return {name: float(number) for name, number in (part.split(" ") for part in line[1].split(", "))} if line else {}

    def ids(self, texts=TEXTS):
        """Of each text, as a prompt begins and without that."""
        return [[self.must("/tokenize", prompt=text, add_special_tokens=flag)["tokens"] for flag in (True, False)] for text in texts]

    def spelled(self, texts=TEXTS):
        return [self.must("/detokenize", tokens=self.must("/tokenize", prompt=text)["tokens"])["prompt"] for text in texts]

    def answer(self):
        told = self.must("/v1/completions", prompt=PROMPT, max_tokens=NUM_ANSWER, temperature=0, repetition_penalty=1,
                         ignore_eos=True, return_token_ids=True)
        return told["choices"][0]["token_ids"]

    def ends(self, asked=MAY_END):
        """Those of the ids that end an answer."""
        found = set()
        for number in asked:
            told = self.must("/v1/completions", prompt=PROMPT[:2], max_tokens=2, temperature=0, repetition_penalty=1, allowed_token_ids=[number])
            if told["choices"][0]["finish_reason"] == "stop":
                found.add(number)
        return found

    def chat(self, **more):
        """The prompt that the conversation becomes, or the status of a refusal."""
        status, told = self.ask("/v1/chat/completions/render", messages=CONVERSATION, max_tokens=1, **more)
        return self.must("/detokenize", tokens=told["token_ids"])["prompt"] if status == 200 else status

    def chat_with_tools(self):
        return self.chat(tools=[TOOL])


def reading(folder, *parts, flags=()):
    """The named parts of what the program makes of the directory; {"error": ...} where it does not start."""
    with Served(folder, *flags) as served:
        return {"error": served.error} if served.error else {part: getattr(served, part)() for part in parts}
