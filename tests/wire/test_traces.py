"""Traces over OTLP: what a receiver hears of each request, against OpenTelemetry's own code, and what no receiver may do to a server."""

import contextlib
import importlib.metadata
import json
import pathlib
import random
import re
import socket
import stat
import subprocess
import threading
import time

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes, http_attributes, url_attributes
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from conftest import BINARY, PACED, PATIENCE_S, Server
from otlp_receiver import Receiver

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CALLED = {"traceparent": f"00-{TRACE}-{CALLER}-01"}
SERVER, INTERNAL = 2, 1
UNSET, ERROR = 0, 2
ASKED = {"prompt": "Once upon a time", "max_tokens": 12, "seed": 7, "ignore_eos": True}
SECRET = "Zanzibarian"


@pytest.fixture(scope="module")
def quick():
    """The environment of servers that tell at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
        patch.setenv("OTEL_SERVICE_NAME", "tales")
        patch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test,x=a%2Cb")
        patch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=s%20s")
        yield patch


@pytest.fixture(scope="module")
def receiver():
    running = Receiver()
    yield running
    running.close()


@pytest.fixture(scope="module")
def traced(quick, receiver):
    running = Server("--otlp-traces-endpoint", receiver.url, "--max-queue", 2, "--max-num-seqs", 1, *PACED)
    yield running
    assert running.stop() == 0, running.log[-4000:]
    assert SECRET not in running.log


def named(request_id, **more):
    return {"X-Request-Id": request_id, **CALLED, **more}


def test_a_trace_of_one_request_is_whole(traced, receiver):
    before = time.time_ns()
    answer = traced.post(ASKED, named("whole", tracestate="rojo=1,congo=t61"))
    after = time.time_ns()
    root, parts = receiver.trace_of("whole")
    told = time.time_ns()
    assert (root["trace"], root["parent"], root["state"], root["kind"]) == (TRACE, CALLER, "rojo=1,congo=t61", SERVER)
    assert root["name"] == "POST /v1/completions" and root["status"] == UNSET and root["flags"] == 0x301
    assert root["resource"] == {"service.name": "tales", "service.version": "0.1.0", "deployment.environment.name": "test", "x": "a,b"}
    assert receiver.headers[-1]["x-key"] == "s s"
    assert set(parts) == {"queue", "prefill", "decode"}
    assert all(one["trace"] == TRACE and one["kind"] == INTERNAL for one in parts.values())
    # Its times are the answer's, on one clock: none of them is measured twice.
    timings, usage = answer.json["timings"], answer.json["usage"]
    assert before <= root["start"] <= after
    assert root["start"] <= root["end"] <= told  # it ends when its bytes are written, which may be after they are read
    assert root["start"] == parts["queue"]["start"] and parts["queue"]["end"] == parts["prefill"]["start"]
    assert parts["prefill"]["end"] == parts["decode"]["start"] and parts["decode"]["end"] <= root["end"]
    for name, told in (("queue", "queued_ms"), ("prefill", "prompt_ms"), ("decode", "predicted_ms")):
        assert parts[name]["end"] - parts[name]["start"] == pytest.approx(timings[told] * 1e6, abs=1), name
    said = root["attributes"]
    for name, told in (("queue", "queued_ms"), ("model_prefill", "prompt_ms"), ("model_decode", "predicted_ms")):
        assert said[f"gen_ai.latency.time_in_{name}"] == pytest.approx(timings[told] / 1e3, abs=1e-9)
    assert said["gen_ai.latency.time_to_first_token"] == pytest.approx((timings["queued_ms"] + timings["prompt_ms"]) / 1e3, abs=1e-9)
    assert said["gen_ai.usage.input_tokens"] == said["gen_ai.usage.prompt_tokens"] == usage["prompt_tokens"]
    assert said["gen_ai.usage.output_tokens"] == said["gen_ai.usage.completion_tokens"] == usage["completion_tokens"] == 12
    assert said["gen_ai.usage.cache_read.input_tokens"] == usage["prompt_tokens_details"]["cached_tokens"]
    assert said["gen_ai.response.finish_reasons"] == ["length"] and said["gen_ai.request.max_tokens"] == 12
    assert said["gen_ai.operation.name"] == "text_completion" and said["http.response.status_code"] == 200
    assert said["gen_ai.request.model"] == "stories" and said["gen_ai.request.stream"] is False


def test_names_are_those_of_the_conventions_or_vllms_or_ours(traced, receiver):
    traced.post(ASKED, named("names"))
    known = {value for module in (gen_ai_attributes, http_attributes, url_attributes) for value in vars(module).values() if isinstance(value, str)}
    vllms = {"gen_ai.request.id", "gen_ai.request.n", "gen_ai.usage.num_sequences"}
    root, _ = receiver.trace_of("names")
    for name in root["attributes"]:
        assert name in known | vllms or name.startswith(("quire.", "gen_ai.latency.")), name


@pytest.mark.parametrize("path, fields, operation", [
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": SECRET}], "max_tokens": 4}, "chat"),
    ("/v1/responses", {"input": SECRET, "max_output_tokens": 16}, "chat"),
    ("/v1/messages", {"messages": [{"role": "user", "content": SECRET}], "max_tokens": 4}, "chat"),
    ("/v1/embeddings", {"input": SECRET}, "embeddings"),
    ("/v1/completions", {"prompt": SECRET, "max_tokens": 4, "echo": True, "stop": ["Zanz"]}, "text_completion"),
])
def test_every_endpoint_has_its_operation_and_no_span_has_a_text(traced, receiver, path, fields, operation):
    name = "op" + path.replace("/", "-")
    answer = traced.request("POST", path, json.dumps(fields), {"Content-Type": "application/json", **named(name)})
    root, parts = receiver.trace_of(name)
    assert root["name"] == f"POST {path}" and root["attributes"]["http.response.status_code"] == answer.status
    assert root["attributes"]["gen_ai.operation.name"] == operation
    if answer.status == 200:
        assert {"queue", "prefill"} <= set(parts)
    assert SECRET not in repr([root, parts])


def test_a_stream_has_the_same_trace_and_answers_are_the_same_with_tracing_on(traced, receiver, server):
    whole, text = traced.text(**ASKED), server.text(**ASKED)
    with traced.stream(ASKED["prompt"], **{key: ASKED[key] for key in ("max_tokens", "seed", "ignore_eos")}, headers=named("stream")) as events:
        pieces = [json.loads(event) for event in events if event != "[DONE]"]
    assert "".join(piece["choices"][0]["text"] for piece in pieces) == whole == text
    root, parts = receiver.trace_of("stream")
    assert root["attributes"]["gen_ai.request.stream"] is True and root["attributes"]["gen_ai.usage.output_tokens"] == 12
    assert set(parts) == {"queue", "prefill", "decode"}


@pytest.mark.parametrize("name, status, ask", [
    ("bad-field", 400, lambda server, head: server.post({"prompt": SECRET, "max_tokens": -1}, head)),
    ("no-json", 400, lambda server, head: server.post("{" + SECRET, head)),
    ("no-model", 404, lambda server, head: server.post({"prompt": "a", "model": "nobody"}, head)),
    ("too-long", 400, lambda server, head: server.post({"prompt": [5] * 100000}, head)),
    ("no-path", 404, lambda server, head: server.request("GET", "/nowhere", headers=head)),
    ("no-media", 415, lambda server, head: server.request("POST", "/v1/completions", "a", {"Content-Type": "text/plain", **head})),
    ("no-method", 405, lambda server, head: server.request("PUT", "/v1/completions", headers=head)),
])
def test_a_refused_request_has_its_span(traced, receiver, name, status, ask):
    assert ask(traced, named(name)).status == status
    root, parts = receiver.trace_of(name)
    assert root["attributes"]["http.response.status_code"] == status and root["status"] == UNSET
    assert root["attributes"]["error.type"] and not parts
    assert (root["trace"], root["parent"]) == (TRACE, CALLER)
    assert SECRET not in repr(root)


def test_one_that_is_turned_away_one_that_waits_and_one_that_leaves_have_theirs(traced, receiver):
    long = {"max_tokens": 480, "ignore_eos": True}
    waiting = []
    with traced.stream("Once upon a time", **long, headers=named("leaves")) as events:
        next(events)
        for i in range(2):
            waiting.append(threading.Thread(target=traced.post, args=({**ASKED, "prompt": f"{i} waits"}, named(f"waits-{i}"))))
            waiting[-1].start()
        traced.wait_until(lambda m: m["vllm:num_requests_waiting"] == 2, "a full line")
        assert traced.post(ASKED, named("turned-away")).status == 429
    for one in waiting:
        one.join()
    root, parts = receiver.trace_of("turned-away")
    assert root["attributes"]["error.type"] == "429" and not parts
    root, parts = receiver.trace_of("leaves")
    assert root["attributes"]["http.response.status_code"] == 499 and root["attributes"]["error.type"] == "499"
    assert set(parts) == {"queue", "prefill", "decode"} and 0 < root["attributes"]["gen_ai.usage.output_tokens"] < 480
    assert all(one["end"] <= root["end"] for one in parts.values())
    for i in range(2):
        root, parts = receiver.trace_of(f"waits-{i}")
        assert root["attributes"]["quire.queue.cause"] == parts["queue"]["attributes"]["quire.queue.cause"] == "places"


def test_one_that_is_cancelled_by_name_has_its_span(traced, receiver):
    key = "a-key-of-my-own-00"
    with traced.stream("Once upon a time", max_tokens=480, ignore_eos=True, headers=named("cancelled", **{"X-Request-Key": key})) as events:
        next(events)
        assert traced.request("DELETE", "/v1/requests/cancelled", headers={"X-Request-Key": key}).status == 200
        assert list(events)[-1] == "[DONE]"
    root, parts = receiver.trace_of("cancelled")
    assert root["attributes"]["gen_ai.response.finish_reasons"] == ["abort"] and root["status"] == UNSET
    assert set(parts) == {"queue", "prefill", "decode"}


def test_one_that_the_end_cuts_short_has_its_span_with_an_error(quick, receiver, start_server):
    server = start_server("--otlp-traces-endpoint", receiver.url, "--drain-timeout", "1ms", *PACED)
    with server.stream("Once upon a time", max_tokens=480, ignore_eos=True, headers=named("cut")) as events:
        next(events)
        server.terminate()
        rest = list(events)
    assert "unavailable_error" in rest[-2]
    assert server.wait() == 0
    root, _ = receiver.trace_of("cut")
    assert root["status"] == ERROR and root["attributes"]["error.type"] == "unavailable_error"


def test_probes_have_no_span(traced, receiver):
    for path in ("/live", "/ready", "/health", "/metrics", "/version"):
        traced.request("GET", path, headers=named("probe"))
    traced.request("GET", "/v1/models", headers=named("models"))
    receiver.trace_of("models")
    assert not [one for one in receiver.wait(bool, "spans") if one["attributes"].get("gen_ai.request.id") == "probe"]


def test_callers_are_understood_as_opentelemetry_understands_them(traced, receiver):
    """Random traceparents, most of them broken: the parent is the one that the SDK's own propagator finds."""
    rand = random.Random(3)
    letters = "0123456789abcdefABg- "
    expected = {}
    for i in range(300):
        field = list(rand.choice(["00", "00", "01", "fe", "ff"]) + f"-{TRACE}-{CALLER}-{rand.choice(['00', '01', '03', 'ff'])}")
        for _ in range(rand.choice([0, 0, 1, 2])):
            field[rand.randrange(len(field))] = rand.choice(letters)
        field = "".join(field) + rand.choice(["", "", "", "-", "-more", "0"])
        context = trace.get_current_span(TraceContextTextMapPropagator().extract({"traceparent": field})).get_span_context()
        version = field[:2]
        if context.is_valid and version != "00" and len(field) > 55 and field[55] != "-":
            continue  # left to implementations
        name = f"caller-{i}"
        traced.request("GET", "/v1/models", headers={"X-Request-Id": name, "traceparent": field})
        if not context.is_valid or context.trace_flags.sampled:
            expected[name] = (field, trace.format_span_id(context.span_id) if context.is_valid else "")
        else:
            expected[name] = (field, None)
    traced.request("GET", "/v1/models", headers={"X-Request-Id": "caller-last"})

    def by_name(spans):
        return {one["attributes"]["gen_ai.request.id"]: one for one in spans if "gen_ai.request.id" in one["attributes"]}

    wanted = {"caller-last", *(name for name, (_, parent) in expected.items() if parent is not None)}
    told = by_name(receiver.wait(lambda spans: wanted <= by_name(spans).keys(), "the span of every request that is to have one"))
    kinds = set()
    for name, (field, parent) in expected.items():
        kinds.add("unsampled" if parent is None else "root" if parent == "" else "child")
        assert (name in told) == (parent is not None), field
        if parent is not None:
            assert told[name]["parent"] == parent, field
            assert (told[name]["trace"] == TRACE) or field.find(TRACE) < 0 or parent == "", field
    assert kinds == {"unsampled", "root", "child"}


def test_a_share_of_traces_is_the_one_that_opentelemetry_takes(quick, receiver, start_server):
    quick.setenv("OTEL_TRACES_SAMPLER", "traceidratio")
    quick.setenv("OTEL_TRACES_SAMPLER_ARG", "0.3")
    try:
        server = start_server("--otlp-traces-endpoint", receiver.url)
    finally:
        quick.delenv("OTEL_TRACES_SAMPLER")
        quick.delenv("OTEL_TRACES_SAMPLER_ARG")
    rand, peer = random.Random(4), TraceIdRatioBased(0.3)
    taken = {}
    for _ in range(200):
        number = rand.getrandbits(128)
        taken[f"{number:032x}"] = peer.should_sample(None, number, "a").decision.is_sampled()
        server.request("GET", "/v1/models", headers={"traceparent": f"00-{number:032x}-{CALLER}-00"})
    assert server.stop() == 0
    told = {one["trace"] for one in receiver.wait(bool, "spans")}
    assert {one for one in taken if one in told} == {one for one, yes in taken.items() if yes}
    assert 30 < len(told & set(taken)) < 90


def test_a_receiver_that_is_away_hangs_or_answers_nonsense_changes_no_answer(quick, start_server):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        away = f"http://127.0.0.1:{unused.getsockname()[1]}"
    silent = socket.create_server(("127.0.0.1", 0))
    hangs = f"http://127.0.0.1:{silent.getsockname()[1]}"
    babbling = socket.create_server(("127.0.0.1", 0))

    def babble():
        while True:
            try:
                peer, _ = babbling.accept()
            except OSError:
                return  # closed: the test is over
            with peer, contextlib.suppress(OSError):  # the server need not hear it out
                peer.sendall(b"\x00\xff garbage\r\n\r\n" * 100)

    threading.Thread(target=babble, daemon=True).start()
    nonsense = f"http://127.0.0.1:{babbling.getsockname()[1]}"
    quick.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "4")
    try:
        texts = set()
        for url in (away, hangs, nonsense):
            server = start_server("--otlp-traces-endpoint", url)
            texts.update(server.text(**ASKED) for _ in range(3))
            for _ in range(30):
                assert server.get("/v1/models").status == 200
            assert server.stop() == 0
            assert server.log.count("trace_spans_dropped") in (1, 2), server.log
            dropped = sum(int(n) for n in re.findall(r"trace_spans_dropped spans=(\d+)", server.log))
            assert dropped == 3 * 4 + 30 or url != away and dropped >= 30, server.log
        assert len(texts) == 1
    finally:
        quick.delenv("OTEL_BSP_MAX_QUEUE_SIZE")
        silent.close()
        babbling.close()


def test_what_is_not_taken_at_once_is_sent_again_and_counted_where_it_never_is(quick, start_server):
    receiver = Receiver()
    server = start_server("--otlp-traces-endpoint", receiver.url)
    receiver.status, receiver.fields = 503, {"Retry-After": "0"}
    server.request("GET", "/v1/models", headers={"X-Request-Id": "again"})
    assert receiver.asked.wait(PATIENCE_S)
    receiver.status = 200
    receiver.trace_of("again")
    receiver.status = 400
    server.get("/v1/models")
    server.wait_until(lambda m: m["quire:trace_spans_dropped_total"] == 1, "a span that was refused")
    receiver.status, receiver.body = 200, b'{"partialSuccess":{"rejectedSpans":"1","errorMessage":"no"}}'
    server.get("/v1/models")
    server.wait_until(lambda m: m["quire:trace_spans_dropped_total"] == 2, "a span that was rejected")
    assert server.metrics()["quire:trace_spans_sent_total"] == 1
    assert server.stop() == 0
    receiver.close()


def test_what_waits_is_sent_before_the_end(start_server, monkeypatch):
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000")
    receiver = Receiver()
    server = start_server("--otlp-traces-endpoint", receiver.url)
    server.request("GET", "/v1/models", headers={"X-Request-Id": "late"})
    assert server.stop() == 0
    root, _ = receiver.trace_of("late")
    assert root["name"] == "GET /v1/models"
    receiver.close()


def test_the_standard_environment_alone_is_enough_and_wrong_flags_end_the_start(start_server, monkeypatch):
    receiver = Receiver()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    server = start_server()
    server.request("GET", "/v1/models", headers={"X-Request-Id": "by-environment"})
    assert server.stop() == 0
    receiver.trace_of("by-environment")
    receiver.close()
    for url in ("collector:4318", "grpc://collector:4317"):
        done = subprocess.run([BINARY, "serve", "--port", "0", "--otlp-traces-endpoint", url], capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 2 and "--otlp-traces-endpoint" in done.stderr and "http://" in done.stderr


@pytest.mark.full
def test_a_collector_that_others_wrote_takes_every_span(quick, start_server):
    """rotel: OTLP over HTTP on one side, a log of what it received on the other."""
    files = importlib.metadata.files("rotel") or []
    program = next(pathlib.Path(one.locate()) for one in files if one.name == "rotel-agent")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        http, grpc = first.getsockname()[1], second.getsockname()[1]
    agent = subprocess.Popen(
        [program, "start", "--otlp-http-endpoint", f"127.0.0.1:{http}", "--otlp-grpc-endpoint", f"127.0.0.1:{grpc}", "--exporter", "blackhole",
         "--debug-log", "traces", "--debug-log-verbosity", "detailed"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        end = time.monotonic() + PATIENCE_S
        while True:
            with socket.socket() as knock:
                if knock.connect_ex(("127.0.0.1", http)) == 0:
                    break
            assert agent.poll() is None and time.monotonic() < end
            time.sleep(0.05)
        server = start_server("--otlp-traces-endpoint", f"http://127.0.0.1:{http}")
        server.post({**ASKED, "prompt": SECRET}, named("for-rotel", tracestate="rojo=1"))
        server.post({"prompt": "a", "max_tokens": -1}, named("refused"))
        metrics = server.wait_until(lambda m: m["quire:trace_spans_sent_total"] == 5, "five spans at rotel")
        assert metrics["quire:trace_spans_dropped_total"] == 0
        assert server.stop() == 0
    finally:
        agent.terminate()
        log, _ = agent.communicate(timeout=PATIENCE_S)
    log = re.sub(r"\x1b\[[0-9;]*m", "", log)
    for said in (TRACE, CALLER, "POST /v1/completions", "queue", "prefill", "decode", "gen_ai.usage.input_tokens", "for-rotel", "rojo=1"):
        assert said in log, (said, log[-4000:])
    assert SECRET not in log
