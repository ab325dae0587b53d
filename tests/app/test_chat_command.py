"""`quire chat` at a pseudo-terminal: with a server of its own, with one that runs, and with one that breaks."""

import contextlib
import fcntl
import http.server
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
QUIRE = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", TESTS.parent / "build" / "release")) / "quire"
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("QUIRE_", "LC_", "LANG"))} | {"TERM": "xterm"}
PATIENCE_S = 60
PROMPT = ">>> "
PROMPTS = (PROMPT, "its result: ")


class Terminal:
    """`quire chat` and the person in front of it."""

    def __init__(self, *args, **environment):
        pid, self.fd = pty.fork()
        if pid == 0:
            os.execve(QUIRE, ["quire", "chat", *map(str, args)], ENVIRONMENT | environment)
        self.pid, self.seen, self.code = pid, "", None
        self.resize(24, 500)  # no line of the tests is wrapped

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)

    def wait_for(self, text, seconds=PATIENCE_S):
        """What was shown up to the text and with it. libedit shows a prompt a moment before it reads single keys: that is awaited, too."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < end, f"{text!r} was not shown: {self.seen[-2000:]!r}"
            self.read(0.1)
        while text in PROMPTS and termios.tcgetattr(self.fd)[3] & termios.ICANON:
            assert time.monotonic() < end, "the terminal stays as it was"
            time.sleep(0.001)
        shown, self.seen = self.seen[: self.seen.index(text) + len(text)], self.seen[self.seen.index(text) + len(text):]
        return shown

    def read(self, seconds):
        if select.select([self.fd], [], [], seconds)[0]:
            with contextlib.suppress(OSError):  # so a terminal ends
                self.seen += os.read(self.fd, 65536).decode(errors="replace")

    def type(self, text):
        os.write(self.fd, text.encode())

    def say(self, line):
        """What is shown between the line and the next prompt."""
        last = line.split("\n")[-1]
        self.type(line + "\n")
        self.wait_for(last)
        return self.wait_for(PROMPT).removesuffix(PROMPT).replace("\r\n", "\n").strip()

    def leave(self):
        self.type("\x04")
        return self.end()

    def end(self):
        """The exit code."""
        pid = 0
        end = time.monotonic() + PATIENCE_S
        while pid == 0:
            assert time.monotonic() < end, f"it goes on: {self.seen[-2000:]!r}"
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        self.code = os.waitstatus_to_exitcode(status)
        return self.code


class Script(http.server.BaseHTTPRequestHandler):
    """A server whose answers are those of the test: functions that get `send(event)`."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = json.dumps({"object": "list", "data": [{"id": "scripted", "max_model_len": 99}]}).encode()
        self.send_response(200 if self.server.key in ("", self.headers.get("Authorization")) else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.server.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        answer = self.server.answers.pop(0)
        if isinstance(answer, tuple):
            status, body = answer
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        with contextlib.suppress(OSError):
            answer(lambda event: (self.wfile.write(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode()),
                                  self.wfile.flush()))

    def log_message(self, *_):
        pass


@pytest.fixture
def scripted():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Script)
    server.asked, server.answers, server.key = [], [], ""
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def delta(**fields):
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def finished(reason="stop"):
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


def says(*pieces, reason="stop"):
    def answer(send):
        for piece in pieces:
            send(delta(content=piece))
        send(finished(reason))
        send({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": len(pieces), "prompt_tokens_details": {"cached_tokens": 4}}})
        send("[DONE]")

    return answer


def contents(request):
    return [(message["role"], message["content"]) for message in request["messages"]]


def servers_of(pid):
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_a_model_gets_a_server_of_its_own_that_ends_with_the_conversation():
    with Terminal("--threads", 1, "--system", "A tale.") as terminal:
        assert "stories, context of" in terminal.wait_for(PROMPT)
        children = servers_of(terminal.pid)
        assert len(children) == 1
        terminal.say("/set max_tokens 20")
        terminal.say("/set temperature 0")
        first = terminal.say("Lily went to the park.")
        assert len(first) > 20 and "[cut at its maximum length" in first
        assert terminal.say("/stats").count("20 tokens") == 2
        terminal.say("/clear")
        assert terminal.say("Lily went to the park.") == first, "the same question, the same answer"
        assert re.search(r"prompt: \d+ tokens, [1-9]\d* of them cached", terminal.say("/stats"))
        terminal.type("/exit\n")
        assert terminal.end() == 0
        assert not pathlib.Path(f"/proc/{children[0]}").exists()


def test_settings_of_other_servers_in_the_environment_are_left_alone(tmp_path):
    others = {"QUIRE_API_KEY": "a-key-of-another", "QUIRE_TLS_CERT": str(tmp_path / "none"), "QUIRE_TLS_KEY": str(tmp_path / "none"),
              "QUIRE_UDS": str(tmp_path / "none"), "QUIRE_ADMIN_PORT": "1"}
    with Terminal("--threads", 1, **others) as terminal:
        assert "stories, context of" in terminal.wait_for(PROMPT)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_the_server_ends_however_the_conversation_does(number, tmp_path):
    with Terminal("--threads", 1, XDG_RUNTIME_DIR=str(tmp_path)) as terminal:
        terminal.wait_for(PROMPT)
        child = servers_of(terminal.pid)[0]
        assert len(list(tmp_path.iterdir())) == 1
        os.kill(terminal.pid, number)
        assert terminal.end() == -number
        assert number == signal.SIGKILL or not list(tmp_path.iterdir())
        end = time.monotonic() + PATIENCE_S
        while pathlib.Path(f"/proc/{child}").exists():
            assert time.monotonic() < end
            time.sleep(0.05)


def test_history_goes_along_and_a_long_message_may_have_many_lines(scripted):
    scripted.answers = [says("I ", "see."), says("ok"), says("ok"), says("ok")]
    with Terminal("--url", scripted.url + "/v1", "--system", "Be short.") as terminal:
        assert "scripted, context of 99 tokens" in terminal.wait_for(PROMPT)
        assert terminal.say("hello\\\nthere") == "I see."
        terminal.type('"""\nfirst\n\n  second\n"""\n')
        terminal.wait_for("ok")
        terminal.wait_for(PROMPT)
        terminal.type("pasted 1\npasted 2\npasted 3\n")
        terminal.wait_for("ok")
        terminal.wait_for(PROMPT)
        terminal.say("größer 日本")
        assert terminal.leave() == 0
    history = [("system", "Be short."), ("user", "hello\nthere"), ("assistant", "I see."), ("user", "first\n\n  second"), ("assistant", "ok"),
               ("user", "pasted 1\npasted 2\npasted 3"), ("assistant", "ok"), ("user", "größer 日本")]
    assert contents(scripted.asked[-1]) == history
    assert scripted.asked[-1]["stream"] is True and scripted.asked[-1]["model"] == "scripted"


def test_ctrl_c_stops_the_answer_and_keeps_the_conversation(scripted):
    gone = threading.Event()

    def endless(send):
        with contextlib.suppress(OSError):
            while True:
                send(delta(content="la "))
                time.sleep(0.01)
        gone.set()

    def silent(send):
        gone.wait(PATIENCE_S)

    scripted.answers = [endless, silent, says("fine")]
    with Terminal("--url", scripted.url) as terminal:
        terminal.wait_for(PROMPT)
        terminal.type("sing\n")
        terminal.wait_for("la la la")
        terminal.type("\x03")
        terminal.wait_for("[stopped]")
        assert gone.wait(PATIENCE_S), "the server sees that nobody reads"
        terminal.wait_for(PROMPT)
        gone.clear()
        terminal.type("wait\n")
        terminal.wait_for("wait")
        time.sleep(0.3)
        terminal.type("\x03")
        terminal.wait_for("[stopped]")
        gone.set()
        terminal.wait_for(PROMPT)
        terminal.type("half a li\x03")
        assert "Ctrl-D or /exit" in terminal.wait_for(PROMPT)
        assert terminal.say("thanks") == "fine"
        assert terminal.leave() == 0
    (role, asked), (other, part), (last, thanks) = contents(scripted.asked[-1])
    assert (role, asked, other, last, thanks) == ("user", "sing", "assistant", "user", "thanks")
    assert part.startswith("la la la"), "the part that came stays; a question without an answer does not"


def test_a_broken_server_ends_a_question_and_not_the_conversation(scripted):
    def breaks(send):
        send(delta(content="half an ans"))

    def reports(send):
        send(delta(content="half"))
        send({"error": {"message": "the engine has failed"}})

    scripted.answers = [breaks, (500, "<html>oops</html>"), (400, json.dumps({"error": {"message": "max_tokens: too large"}})), reports,
                        lambda send: send("{"), says("back")]
    with Terminal("--url", scripted.url) as terminal:
        terminal.wait_for(PROMPT)
        assert terminal.say("one").endswith("error: the answer ended before its end: the connection broke")
        assert terminal.say("two") == "error: <html>oops</html>"
        assert terminal.say("three") == "error: max_tokens: too large"
        assert terminal.say("four").endswith("error: the engine has failed")
        assert terminal.say("five") == "error: the server sent an event that is not a JSON object"
        assert terminal.say("six") == "back"
        assert contents(scripted.asked[-1]) == [("user", "six")]
        scripted.shutdown()
        scripted.server_close()
        assert terminal.say("seven").startswith(f"error: {scripted.url}: ")
        assert terminal.leave() == 0


def test_tools_are_called_and_the_person_gives_their_results(scripted, tmp_path):
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
    (tmp_path / "tools.json").write_text(json.dumps(tools))

    def calls(send):
        send(delta(reasoning_content="I should look."))
        send(delta(tool_calls=[{"index": 0, "id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"at": "sea"}'}}]))
        send(finished("tool_calls"))

    scripted.answers = [calls, says("It is sunny.")]
    with Terminal("--url", scripted.url) as terminal:
        terminal.wait_for(PROMPT)
        assert terminal.say(f"/tools {tmp_path / 'none'}").endswith("this file cannot be read")
        assert terminal.say(f"/tools {tmp_path / 'tools.json'}") == "1 tool"
        terminal.type("weather?\n")
        shown = terminal.wait_for("its result: ")
        assert "\x1b[2mI should look." in shown and '[weather({"at": "sea"})]' in shown
        terminal.type("sunny\n")
        assert "It is sunny." in terminal.wait_for(PROMPT)
        assert terminal.leave() == 0
    assert scripted.asked[0]["tools"] == tools
    question, call, result = scripted.asked[1]["messages"]
    assert call["tool_calls"][0]["function"] == {"name": "weather", "arguments": '{"at": "sea"}'}
    assert result == {"role": "tool", "tool_call_id": "c1", "content": "sunny"}


def test_a_conversation_is_saved_and_goes_on_elsewhere(scripted, tmp_path):
    scripted.answers = [says("I see."), says("ok")]
    path = tmp_path / "talk.json"
    with Terminal("--url", scripted.url, "--system", "Be short.") as terminal:
        terminal.wait_for(PROMPT)
        terminal.say("/set temperature 0.25")
        terminal.say("hello")
        assert terminal.say(f"/save {path}") == f"2 messages are in {path}"
        assert terminal.say("/save /no/such/place").endswith("this file cannot be written")
    with Terminal("--url", scripted.url) as terminal:
        terminal.wait_for(PROMPT)
        assert terminal.say(f"/load {QUIRE}").startswith("this is not JSON")
        assert terminal.say(f"/load {path}") == f"2 messages from {path}"
        assert terminal.say("/system") == "system message: Be short."
        terminal.say("more")
    first, second = scripted.asked
    assert contents(second) == [*contents(first), ("assistant", "I see."), ("user", "more")] and second["temperature"] == 0.25


def test_answers_cannot_command_the_terminal(scripted):
    scripted.answers = [says("a\x1b[2J\x1b]0;owned\x07b\x9b31mc")]
    with Terminal("--url", scripted.url) as terminal:
        terminal.wait_for(PROMPT)
        assert terminal.say("hello") == "a^[[2J^[]0;owned^Gb31mc"


def test_the_window_may_change_while_a_line_is_typed(scripted):
    scripted.answers = [says("ok")]
    with Terminal("--url", scripted.url) as terminal:
        terminal.wait_for(PROMPT)
        line = "a line that is longer than the narrow window that it will be shown in "
        terminal.type(line)
        terminal.wait_for("shown in ")
        for rows, columns in ((10, 20), (50, 200), (24, 80)):
            terminal.resize(rows, columns)
            time.sleep(0.1)
        terminal.type("and its end\n")
        terminal.wait_for("ok")
    assert contents(scripted.asked[-1]) == [("user", line + "and its end")]


def test_commands_explain_themselves(scripted):
    with Terminal("--url", scripted.url) as terminal:
        terminal.wait_for(PROMPT)
        told = terminal.say("/help")
        assert all(name in told for name in ("/help", "/system", "/save", "/load", "/set", "/stats", "/tools", "/clear", "/exit"))
        assert terminal.say("/stats") == "no answer yet"
        assert terminal.say("/nope") == "/nope: no such command; /help lists them"
        assert terminal.say("/set model x") == "model cannot be set"
        assert terminal.say("/save") == "/save FILE: a file name is needed"
        assert terminal.say("/set") == "no setting: those of the server and the model are used"
        assert terminal.say("/tools") == "no tools" and terminal.say("/system") == "there is no system message"


def piped(text, *args):
    return subprocess.run([QUIRE, "chat", *map(str, args)], input=text, capture_output=True, text=True, timeout=PATIENCE_S, env=ENVIRONMENT)


def test_standard_input_is_one_message_and_standard_output_the_answer_alone(scripted):
    scripted.answers = [says("I ", "see."), (400, json.dumps({"error": {"message": "no"}}))]
    done = piped("first\nsecond\n", "--url", scripted.url)
    assert (done.returncode, done.stdout, done.stderr) == (0, "I see.\n", "")
    assert contents(scripted.asked[0]) == [("user", "first\nsecond")]
    failed = piped("first", "--url", scripted.url)
    assert (failed.returncode, failed.stdout, failed.stderr) == (1, "", "error: no\n")
    empty = piped("", "--url", scripted.url)
    assert empty.returncode == 2 and "is empty" in empty.stderr


def test_fields_of_the_requests_are_set_by_flags(scripted):
    scripted.answers = [says("ok")]
    assert piped("a", "--url", scripted.url, "--set", "max_tokens=7", "--set", "stop=[\"x=y\"]").stdout == "ok\n"
    assert scripted.asked[0]["max_tokens"] == 7 and scripted.asked[0]["stop"] == ["x=y"]
    for wrong, why in (("max_tokens", "expected NAME=VALUE"), ("=7", "expected NAME=VALUE"), ("model=x", "model cannot be set")):
        refused = piped("a", "--url", scripted.url, "--set", wrong)
        assert refused.returncode == 2 and why in refused.stderr


def test_a_start_that_fails_says_why(scripted, tmp_path):
    nobody = piped("a", "--url", "http://127.0.0.1:9")
    assert nobody.returncode == 2 and "does a server run there?" in nobody.stderr
    scripted.key = "Bearer right"
    locked = piped("a", "--url", scripted.url)
    assert locked.returncode == 2 and "wants an API key: set QUIRE_API_KEY, or give --api-key" in locked.stderr
    scripted.answers = [says("in")]
    assert piped("a", "--url", scripted.url, "--api-key", "right").stdout == "in\n"
    wrong = piped("a", "--url", "ftp://x")
    assert wrong.returncode == 2 and "--url" in wrong.stderr
    refused = piped("a", "--url", scripted.url, "--threads", 1)
    assert refused.returncode == 2 and "--threads: the server of --url has settings of its own" in refused.stderr
    refused = piped("a", "--port", 1)
    assert refused.returncode == 2 and "--port: nobody else reaches the server of a conversation" in refused.stderr
    missing = piped("a", tmp_path / "none")
    assert missing.returncode == 2 and str(tmp_path / "none") in missing.stderr
