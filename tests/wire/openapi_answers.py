"""Answers of a running server to requests of every kind, with the schema of /openapi.json that each has to keep."""

import copy
import dataclasses
import json
import threading

import jsonschema

from conftest import PATIENCE_S

KEY = "a-key-of-my-own-00"
TALK = [{"role": "user", "content": "Once upon a time"}]
PARAMETERS = {"type": "object", "properties": {"at": {"type": "string", "enum": ["sky", "sea"]}}, "required": ["at"], "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "look", "parameters": PARAMETERS}}
FLAT_TOOL = {"type": "function", "name": "look", "parameters": PARAMETERS}
ANSWER = {"type": "object", "properties": {"happy": {"type": "boolean"}}, "required": ["happy"], "additionalProperties": False}
LONG = {"max_tokens": 400, "ignore_eos": True, "temperature": 0}
USAGE = {"stream_options": {"include_usage": True}}
OFTEN = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}
THINKING = {"chat_template_kwargs": {"enable_thinking": True}, "regex": "[a-z]{3}</think>[a-z]{3}"}
LOGPROBS = {"include": ["message.output_text.logprobs"], "top_logprobs": 2}
ANTHROPIC = {"anthropic-version": "2023-06-01"}

# Bodies of the paths that generate. Each is asked for a whole answer and, unless it cannot be one, for a stream.
GENERATING = {
    "/v1/completions": [
        {"prompt": "Once upon a time", "max_tokens": 16, "temperature": 0},
        {"prompt": ["Once", "The end"], "n": 2, "max_tokens": 3, "logprobs": 2, "seed": 3},
        {"prompt": "Once upon", "max_tokens": 3, "logprobs": 0, "return_token_ids": True, "prompt_logprobs": 2, "echo": True},
        {"prompt": "Once upon a time", "max_tokens": 60, "temperature": 0, "stop": ["a", "e"], **USAGE},
        {"prompt": "Once upon a time", "max_tokens": 4, **OFTEN},
        {"prompt": [300, 301], "max_tokens": 4, "structured_outputs": {"choice": ["yes", "no"]}},
    ],
    "/v1/chat/completions": [
        {"messages": TALK, "max_tokens": 8},
        {"messages": TALK, "max_tokens": 8, "n": 2, "logprobs": True, "top_logprobs": 2, "return_token_ids": True, "seed": 2, **USAGE},
        {"messages": TALK, "max_tokens": 120, "tools": [TOOL], "tool_choice": "required", "seed": 1, **OFTEN},
        {"messages": TALK, "max_tokens": 30, **THINKING},
        {"messages": TALK, "max_tokens": 60, "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": ANSWER}}},
        {"messages": TALK, "max_tokens": 60, "temperature": 0, "stop": ["a", "e"]},
    ],
    "/v1/responses": [
        {"input": "Once upon a time", "max_output_tokens": 8, "instructions": "Be brief.", "metadata": {"a": "b"}, "user": "me"},
        {"input": "Once upon a time", "max_output_tokens": 8, "text": {"format": {"type": "json_object"}}, "reasoning": {"effort": "low", "summary": "auto"}, **LOGPROBS},
        {"input": TALK, "max_output_tokens": 120, "tools": [FLAT_TOOL], "tool_choice": "required", "seed": 1},
        {"input": TALK, "max_output_tokens": 30, **THINKING},
        {"input": "Once", "max_output_tokens": 8, "regex": "[a-z]{2}"},
    ],
    "/v1/messages": [
        {"messages": TALK, "max_tokens": 8},
        {"messages": TALK, "max_tokens": 60, "temperature": 0, "stop_sequences": ["a", "e"], "system": "Be brief."},
        {"messages": TALK, "max_tokens": 120, "tools": [{"name": "look", "input_schema": PARAMETERS}], "tool_choice": {"type": "any"}, "seed": 1},
        {"messages": TALK, "max_tokens": 30, **THINKING},
    ],
    "/v1/embeddings": [{"input": ["Once", "The end"]}, {"input": "Once", "encoding_format": "base64"}],
}
# Other requests: path in the document, path that is asked for, body.
PLAIN = [
    ("post", "/v1/completions/render", {"prompt": ["Once", "The end"], "logprobs": 1, "cache_salt": "x", "seed": 4, "stop": "a"}),
    ("post", "/v1/completions/render", {"prompt": "Once", "prompt_logprobs": 1, "stop_token_ids": [7]}),
    ("post", "/v1/chat/completions/render", {"messages": TALK, "tools": [TOOL]}),
    ("post", "/v1/messages/count_tokens", {"messages": TALK}),
    ("post", "/tokenize", {"prompt": "Once upon"}),
    ("post", "/tokenize", {"messages": TALK, "return_token_strs": True}),
    ("post", "/detokenize", {"tokens": [300, 301]}),
    ("post", "/admin/cache/save", {"path": "monday.kv"}),
    ("post", "/admin/cache/load", {"path": "monday.kv"}),
    ("post", "/admin/cache/clear", {}),
    ("post", "/ping", None),
] + [("get", path, None) for path in ("/tokenizer_info", "/v1/models", "/live", "/ready", "/startup", "/health", "/ping", "/load", "/metrics", "/version",
                                      "/openapi.json")]  # fmt: skip
REFUSED = [
    ("post", "/v1/completions", "/v1/completions", {"prompt": "a", "max_tokens": -1}, 400),
    ("post", "/v1/completions", "/v1/completions", {"prompt": "a", "model": "gpt-4"}, 404),
    ("post", "/v1/chat/completions", "/v1/chat/completions", {"messages": [{"role": "user", "content": "a " * 4000}]}, 400),
    ("post", "/v1/responses", "/v1/responses", {"input": "a", "previous_response_id": "x"}, 400),
    ("post", "/v1/messages", "/v1/messages", {"messages": TALK}, 400),
    ("post", "/v1/messages", "/v1/messages", {"messages": TALK, "max_tokens": 2, "model": "gpt-4"}, 404),
    ("post", "/v1/messages/count_tokens", "/v1/messages/count_tokens", {"messages": 7}, 400),
    ("post", "/v1/embeddings", "/v1/embeddings", {"input": ""}, 400),
    ("post", "/tokenize", "/tokenize", {}, 400),
    ("post", "/admin/cache/clear", "/admin/cache/clear", {"a": 1}, 400),
    ("post", "/admin/cache/load", "/admin/cache/load", {"path": "../a"}, 400),
    ("get", "/v1/models/{model}", "/v1/models/gpt-4", None, 404),
    ("get", "/v1/requests/{id}/explain", "/v1/requests/x/explain", None, 404),
    ("delete", "/v1/requests/{id}", "/v1/requests/x", None, 404),
    ("get", "/admin/requests/{id}/explain", "/admin/requests/x/explain", None, 404),
    ("delete", "/admin/requests/{id}", "/admin/requests/x", None, 404),
    ("get", "/v1/completions", "/v1/completions", None, 405),
]


class Document:
    """/openapi.json, with objects closed: a member that a schema does not know is an error."""

    def __init__(self, document):
        self.whole = document
        self.closed = {"components": closed(document["components"])}

    def schema(self, method, path, status, media):
        """Null where an answer has no body."""
        responses = self.whole["paths"][path][method]["responses"]
        response = responses.get(str(status)) or responses["default"]
        return response["content"][media]["schema"] if "content" in response else None

    def errors(self, schema, value):
        return list(jsonschema.Draft202012Validator({**closed(schema), **self.closed}).iter_errors(value))

    def known(self, schema):
        """(shape, member) of every member below a schema."""
        found, ahead, done = set(), list(names_in(schema)), set()
        while ahead:
            name = ahead.pop()
            if name not in done:
                done.add(name)
                shape = self.whole["components"]["schemas"][name]
                found |= {(name, member) for member in shape.get("properties", {})}
                ahead += names_in(shape)
        return found

    def seen(self, schema, value, shape=None):
        """(shape, member) of every member that a value has; of alternatives, of the first that the value keeps to."""
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return self.seen(self.whole["components"]["schemas"][name], value, name)
        for alternative in schema.get("anyOf", ()):
            if not self.errors(alternative, value):
                return self.seen(alternative, value, shape)
        found = set()
        if isinstance(value, list):
            found |= {one for item in value for one in self.seen(schema.get("items", {}), item)}
        elif isinstance(value, dict):
            properties, others = schema.get("properties", {}), schema.get("additionalProperties", {})
            for name, member in value.items():
                if name in properties:
                    found |= {(shape, name)} | self.seen(properties[name], member)
                elif isinstance(others, dict):
                    found |= self.seen(others, member)
        return found


def names_in(node):
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"].rpartition("/")[2]
        for one in node.values():
            yield from names_in(one)
    elif isinstance(node, list):
        for one in node:
            yield from names_in(one)


def closed(node):
    """A copy in which every object with named members has no others."""
    node = copy.deepcopy(node)
    ahead = [node]
    while ahead:
        one = ahead.pop()
        if isinstance(one, dict):
            if isinstance(one.get("properties"), dict) and one.get("type") == "object":
                one.setdefault("additionalProperties", False)
            ahead += one.values()
        elif isinstance(one, list):
            ahead += one
    return node


@dataclasses.dataclass
class Heard:
    method: str
    path: str  # in the document
    status: int
    media: str
    value: object
    body: object = None


class Asker:
    """Asks a server and keeps what it answers."""

    def __init__(self):
        self.heard = []

    def ask(self, server, method, path, at=None, body=None, headers=()):
        text, fields = (None, dict(headers)) if body is None else (json.dumps(body), {"Content-Type": "application/json", **dict(headers)})
        answer = server.request(method.upper(), at or path, text, fields)
        media = answer.headers["content-type"].split(";")[0]
        if media == "text/event-stream":
            data = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
            values = [json.loads(one) for one in data if one != "[DONE]"]
            assert values, answer.text
        else:
            values = [answer.text if media == "text/plain" else answer.json if answer.text else None]
        self.heard += [Heard(method, path, answer.status, media, value, body) for value in values]
        return answer

    def ask_everything(self, server, paced):
        """`paced` is one whose steps take time: requests to it are cancelled and outlive their deadlines."""
        for path, bodies in GENERATING.items():
            for body in bodies:
                whole = {name: value for name, value in body.items() if name != "stream_options"}
                assert self.ask(server, "post", path, body=whole).status == 200, self.heard[-1]
                if path != "/v1/embeddings":
                    assert self.ask(server, "post", path, body={**body, "stream": True}).status == 200, self.heard[-1]
        for method, path, body in PLAIN:
            assert self.ask(server, method, path, body=body).status == 200, self.heard[-1]
        self.ask(server, "get", "/v1/models", headers=ANTHROPIC)
        for headers in ({}, ANTHROPIC):
            assert self.ask(server, "get", "/v1/models/{model}", "/v1/models/stories", headers=headers).status == 200
            self.ask(server, "get", "/v1/models/{model}", "/v1/models/gpt-4", headers=headers)
        for method, path, at, body, status in REFUSED:
            if method == "get" and path == "/v1/completions":  # no such operation: the error of another one
                assert server.request("GET", at).status == status
                continue
            assert self.ask(server, method, path, at, body).status == status, self.heard[-1]
        self.explain_drafts(server)
        self.outlive_deadlines(paced)
        self.cancel(paced)

    def outlive_deadlines(self, paced):
        """Streams that end with an error. At once: after the first the server would know better and refuse the others."""
        asks = {"/v1/completions": {"prompt": "Once", **LONG}, "/v1/chat/completions": {"messages": TALK, **LONG},
                "/v1/messages": {"messages": TALK, **LONG}, "/v1/responses": {"input": "Once", "max_output_tokens": 400, "ignore_eos": True}}  # fmt: skip
        running = [threading.Thread(target=self.ask, args=(paced, "post", path), kwargs={"body": {**body, "stream": True, "deadline_ms": 2000}})
                   for path, body in asks.items()]
        for one in running:
            one.start()
        for one in running:
            one.join(PATIENCE_S)

    def explain_drafts(self, server):
        headers, explain = {"X-Request-Id": "drafted", "X-Request-Key": KEY}, "/v1/requests/drafted/explain"
        self.ask(server, "post", "/v1/completions", body={"prompt": "Once upon a time", **LONG}, headers=headers)
        server.wait_until(lambda _: server.request("GET", explain, headers=headers).json["state"] == "finished", "an end")
        self.ask(server, "get", "/v1/requests/{id}/explain", explain, headers=headers)

    def cancel(self, paced):
        """A request of each kind that is cancelled by id while it runs, and what is known of it before and after."""
        for number, (path, body) in enumerate([
                ("/v1/completions", {"prompt": "Once", **LONG}), ("/v1/chat/completions", {"messages": TALK, **LONG}),
                ("/v1/messages", {"messages": TALK, **LONG}), ("/v1/responses", {"input": "Once", "max_output_tokens": 400, "ignore_eos": True})]):
            name = f"cancelled-{number}"
            headers = {"X-Request-Id": name, "X-Request-Key": KEY}
            running = threading.Thread(target=self.ask, args=(paced, "post", path), kwargs={"body": body, "headers": headers})
            running.start()
            explain = f"/v1/requests/{name}/explain"
            paced.wait_until(lambda _: paced.request("GET", explain, headers=headers).json.get("sequences", [{}])[0].get("state") == "running", "a start")
            self.ask(paced, "get", "/v1/requests/{id}/explain", explain, headers=headers)
            self.ask(paced, "get", "/admin/requests")
            self.ask(paced, "get", "/admin/requests/{id}/explain", f"/admin/requests/{name}/explain")
            of_operator = number % 2 == 1
            if of_operator:
                self.ask(paced, "delete", "/admin/requests/{id}", f"/admin/requests/{name}")
            else:
                self.ask(paced, "delete", "/v1/requests/{id}", f"/v1/requests/{name}", headers=headers)
            running.join(PATIENCE_S)
            paced.wait_until(lambda _: paced.request("GET", explain, headers=headers).json["state"] == "finished", "an end")
            self.ask(paced, "get", "/v1/requests/{id}/explain", explain, headers=headers)
