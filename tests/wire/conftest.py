"""The real server, over real sockets: started on a free port, asked, watched and stopped."""

import contextlib
import http.client
import json
import os
import pathlib
import queue
import re
import signal
import socket
import subprocess
import threading
import time

import openai
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", ROOT / "build" / "release")) / "quire"
# For what takes milliseconds on a machine that has nothing else to do. Nothing is asserted with it but that the thing happens.
PATIENCE_S = 120
# A step takes 20 ms and says one token of each sequence: an answer of 500 tokens takes ten seconds at least. For tests that do
# something while an answer is under way: without this, a test that a busy machine holds up comes too late.
PACED = ("--min-step-time", "20ms", "--speculative-config", '{"method": "none"}')
# Hermes' calls, and a switch that begins reasoning, as Qwen's templates have them.
TALKING_TEMPLATE = (
    "{%- for m in messages -%}<|{{ m.role }}|>{{ m.reasoning_content or '' }}{{ m.content or '' }}"
    "{%- for c in m.tool_calls or [] -%}<tool_call>{{ c.function | tojson }}</tool_call>{%- endfor -%}{%- endfor -%}"
    "{%- if tools %}{{ tools | tojson }}{% endif -%}{%- if enable_thinking %}<think>{% endif -%}"
)
# What a Qwen template teaches, without its talk.
HERMES = ("{%- for t in tools or [] -%}{{ t.function.name }} {%- endfor -%}{%- for m in messages -%}<|{{ m.role }}|>{{ m.content or '' }}{%- for c in m.tool_calls or [] -%}"
          "<tool_call>{{ c.function | tojson }}</tool_call>{%- endfor -%}{%- endfor -%}")
# One whose answers begin with reasoning where that is asked for.
THINKING = "{% for m in messages %}{{ m.content }} {% endfor %}{% if enable_thinking %}<think>{% endif %}{# </think> #}"


class Answer:
    """A whole HTTP response."""

    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.text = response.read().decode()

    @property
    def json(self):
        return json.loads(self.text)

    @property
    def error(self):
        return self.json["error"]


class Server:
    """`quire serve --port 0 ARGS`, ready."""

    def __init__(self, *args):
        self.lines = []
        self.process = subprocess.Popen(
            [BINARY, "serve", "--port", "0", *map(str, args)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        found = queue.Queue()
        self._reader = threading.Thread(target=self._read, args=(found,), daemon=True)
        self._reader.start()
        self.port = found.get(timeout=PATIENCE_S)
        assert self.port, "".join(self.lines)
        self.url = f"http://127.0.0.1:{self.port}"
        # Where /metrics is asked for: a server under TLS has a plain admin port.
        self.metrics_port = self._admin_port() if "--admin-port" in args else self.port

    def _admin_port(self):
        said = "probes, metrics and /admin: http://127.0.0.1:"
        self.wait_for_log(said)
        return int(re.search(re.escape(said) + r"(\d+)", self.log)[1])

    def _read(self, found):
        told = False
        for line in self.process.stdout:
            self.lines.append(line)
            match = re.search(r"ready in .*https?://127\.0\.0\.1:(\d+)", line)
            if match and not told:
                told = True
                found.put(int(match.group(1)))
        if not told:
            found.put(None)

    @property
    def log(self):
        return "".join(self.lines)

    def client(self, **options):
        return openai.OpenAI(base_url=self.url + "/v1", api_key="none", max_retries=0, timeout=PATIENCE_S, **options)

    def request(self, method, path, body=None, headers=(), port=None):
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=PATIENCE_S)
        try:
            connection.request(method, path, body, dict(headers))
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path):
        return self.request("GET", path)

    def post(self, body, headers=()):
        """`body` is JSON text, or what becomes it."""
        text = body if isinstance(body, (str, bytes)) else json.dumps(body)
        return self.request("POST", "/v1/completions", text, {"Content-Type": "application/json", **dict(headers)})

    def post_to(self, path, fields):
        return self.request("POST", path, json.dumps(fields), {"Content-Type": "application/json"})

    def complete(self, prompt, **fields):
        answer = self.post({"prompt": prompt, **fields})
        assert answer.status == 200, answer.text
        return answer.json

    def text(self, prompt, **fields):
        return self.complete(prompt, **fields)["choices"][0]["text"]

    @contextlib.contextmanager
    def stream(self, prompt, headers=(), **fields):
        """Yields the events of a stream as they come, as text; leaving early closes the connection."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request("POST", "/v1/completions", json.dumps({"prompt": prompt, "stream": True, **fields}),
                               {"Content-Type": "application/json", **dict(headers)})
            response = connection.getresponse()
            assert response.status == 200, response.read()
            assert response.getheader("Content-Type").startswith("text/event-stream")
            yield events_of(response)
        finally:
            connection.close()

    def socket(self):
        raw = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return raw

    def metrics(self):
        """Sums over labels, by name."""
        sums = {}
        for line in self.request("GET", "/metrics", port=self.metrics_port).text.splitlines():
            match = re.match(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$", line)
            if match:
                name, labels, value = match.groups()
                sums[name] = sums.get(name, 0.0) + float(value)
                for label in re.findall(r'(?:finished_reason|status)="[^"]*"', labels or ""):
                    key = f"{name}{{{label}}}"
                    sums[key] = sums.get(key, 0.0) + float(value)
        return sums

    def wait_until(self, condition, what, seconds=PATIENCE_S):
        """Looks at the metrics until `condition(metrics)`."""
        end = time.monotonic() + seconds
        while True:
            metrics = self.metrics()
            if condition(metrics):
                return metrics
            assert time.monotonic() < end, f"{what} did not come about: {busy(metrics)}"
            time.sleep(0.01)

    def wait_for_log(self, text, seconds=PATIENCE_S):
        """The log comes through a pipe: a line may be read a little after the answer it is about."""
        end = time.monotonic() + seconds
        while text not in self.log:
            assert time.monotonic() < end, f"{text!r} is not in the log: {self.log[-2000:]}"
            time.sleep(0.01)

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def wait(self):
        code = self.process.wait(timeout=PATIENCE_S)
        self._reader.join(timeout=PATIENCE_S)
        return code

    def stop(self):
        if self.process.poll() is None:
            self.terminate()
        try:
            return self.wait()
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


def events_of(response):
    """The data of each server-sent event; comments are passed over."""
    for line in response:
        line = line.decode().rstrip("\n")
        if line.startswith("data: "):
            yield line[len("data: "):]
        else:
            assert line in ("", ": keep-alive"), line


def choices_of(events):
    """index → (text, finish_reason, stop_reason) of a whole stream, and its usage."""
    texts, ends, usage, last = {}, {}, None, None
    for last in events:
        if last == "[DONE]":
            continue
        event = json.loads(last)
        assert "error" not in event, event
        for choice in event["choices"]:
            index = choice["index"]
            assert index not in ends, "a choice goes on after its end"
            texts[index] = texts.get(index, "") + choice["text"]
            if choice["finish_reason"] is not None:
                ends[index] = (choice["finish_reason"], choice["stop_reason"])
        usage = event.get("usage") or usage
    assert last == "[DONE]"
    assert texts.keys() == ends.keys()
    return {index: (texts[index], *ends[index]) for index in texts}, usage


def busy(metrics):
    return {name: metrics.get(name) for name in
            ("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc")}


def idle(metrics):
    return not any(busy(metrics).values())


def aborted(metrics):
    return metrics.get('vllm:request_success_total{finished_reason="abort"}', 0)


@pytest.fixture(scope="session")
def paced():
    """One whose answers take seconds, shared by the tests that look at an answer under way."""
    running = Server(*PACED)
    yield running
    assert running.stop() == 0, running.log[-4000:]


@pytest.fixture(scope="session")
def server():
    """One with default settings, shared by the tests that leave it as they found it."""
    running = Server()
    yield running
    assert running.stop() == 0, running.log[-4000:]


def server_of(template, folder, *flags):
    (folder / "t.jinja").write_text(template)
    running = Server("--chat-template", folder / "t.jinja", *flags)
    yield running
    assert running.stop() == 0, running.log[-4000:]


@pytest.fixture(scope="session")
def talker(tmp_path_factory):
    """One whose chat template knows tools and reasoning."""
    flags = ("--tool-call-parser", "hermes", "--reasoning-parser", "think")
    yield from server_of(TALKING_TEMPLATE, tmp_path_factory.mktemp("talking"), *flags)


@pytest.fixture(scope="session")
def hermes_server(tmp_path_factory):
    """One whose template teaches calls."""
    yield from server_of(HERMES, tmp_path_factory.mktemp("hermes"))


@pytest.fixture(scope="session")
def thinking_server(tmp_path_factory):
    yield from server_of(THINKING, tmp_path_factory.mktemp("thinking"))


@pytest.fixture
def start_server():
    """Starts servers with settings of a test's own; all are gone after it."""
    started = []

    def start(*args):
        started.append(Server(*args))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


@pytest.fixture
def client(server):
    return server.client()
