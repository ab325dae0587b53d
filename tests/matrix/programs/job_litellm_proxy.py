"""LiteLLM's proxy in front of the server, asked by the clients of both vendors."""

import json
import pathlib
import subprocess
import sys
import time
import urllib.request

from driving import noted
from heard import ASK, POPULATION, SHORT, check, question, tell

PORT = 4000
home = pathlib.Path(question["home"])
(home / "config.yaml").write_text("general_settings: {dangerously_permit_weak_or_unset_master_key: true}\n" + noted("LiteLLM's proxy"))
proxy = subprocess.Popen([f"{question['folder']}/bin/litellm", "--config", home / "config.yaml", "--host", "127.0.0.1", "--port", str(PORT)],
                         cwd=home, stdout=sys.stderr, stderr=sys.stderr)


def post(path, **body):
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", json.dumps(body).encode(),
                                     {"Content-Type": "application/json", "Authorization": "Bearer none", "anthropic-version": "2023-06-01"})
    try:
        return urllib.request.urlopen(request, timeout=120).read().decode()
    except urllib.error.HTTPError as error:
        sys.exit(f"not so: {path} {error.code} {error.read().decode()[:400]}")


def wait_until_ready():
    for _ in range(600):
        if proxy.poll() is not None:
            sys.exit(f"not so: the proxy ended with {proxy.returncode}")
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health/liveliness", timeout=5).read()
        except OSError:
            time.sleep(0.3)
    sys.exit("not so: the proxy did not begin to listen")


try:
    wait_until_ready()
    talk = [{"role": "user", "content": ASK}]
    tool = {"name": "population", "description": "How many people live in a city", "parameters": {
        "type": "object", "properties": {"city": {"type": "string", "enum": list(POPULATION)}}, "required": ["city"]}}
    for name in ("quire", "quire-responses", "quire-messages"):
        answer = json.loads(post("/v1/chat/completions", model=name, messages=talk, max_tokens=SHORT))
        check(f"{name}: a chat", answer["choices"][0]["message"]["content"])
        stream = post("/v1/chat/completions", model=name, messages=talk, max_tokens=SHORT, stream=True)
        check(f"{name}: a stream", stream.count("data: ") > 3 and "[DONE]" in stream)
        answer = json.loads(post("/v1/chat/completions", model=name, messages=talk, max_tokens=100, parallel_tool_calls=False,
                                 tools=[{"type": "function", "function": tool}], tool_choice="required"))
        call = answer["choices"][0]["message"]["tool_calls"][0]["function"]
        check(f"{name}: a forced call", json.loads(call["arguments"])["city"] in POPULATION)
    answer = json.loads(post("/v1/responses", model="quire-responses", input=ASK, max_output_tokens=SHORT))
    check("asked over Responses", answer["output"][-1]["content"][0]["text"])
    answer = json.loads(post("/v1/messages", model="quire-messages", messages=talk, max_tokens=SHORT))
    check("asked over Messages", answer["content"][0]["text"])
    answer = json.loads(post("/v1/messages", model="quire", messages=talk, max_tokens=SHORT))
    check("asked over Messages, handed on as a chat", answer["content"][0]["text"])
finally:
    proxy.terminate()
    proxy.wait()
tell()
