"""A receiver of OTLP over HTTP in JSON: small, strict, and as ill-behaved as a test wants it."""

import base64
import http.server
import json
import threading
import time

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


PATIENCE_S = 120


class Receiver:
    """Answers POST /v1/traces with `self.status`. What it takes is read by OpenTelemetry's own messages: an unknown field fails."""

    def __init__(self, port=0):
        self.status, self.fields, self.body = 200, {}, b"{}"
        self.asked = threading.Event()  # somebody has posted something
        self.let_go = threading.Event()  # answers wait for it
        self.let_go.set()
        self.headers = []
        self._spans, self._faults = [], []
        self._news = threading.Condition()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                # Read once, before the test hears of the request: it may change them then, and means the next one.
                status, fields, answer = receiver.status, receiver.fields, receiver.body
                receiver._take(self.path, dict(self.headers), body, status)
                receiver.let_go.wait(PATIENCE_S)
                self.send_response(status)
                for name, value in {**fields, "Content-Length": len(answer)}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _take(self, path, headers, body, status):
        try:
            assert path == "/v1/traces" and headers["Content-Type"] == "application/json"
            spans = spans_in(json.loads(body))
        except Exception as fault:  # for whoever waits for spans
            spans = []
            self._faults.append(f"{fault!r}: {body!r:.2000}")
        with self._news:
            self.headers.append(headers)
            if status == 200:
                self._spans += spans
            self._news.notify_all()
        self.asked.set()

    def wait(self, condition, what):
        """All spans so far, once condition(spans) holds; they arrive some milliseconds after the answers."""
        end = time.monotonic() + PATIENCE_S
        with self._news:
            while not condition(self._spans):
                assert not self._faults, self._faults
                assert self._news.wait(end - time.monotonic()), f"{what} did not come; there is: {self._spans}"
            return list(self._spans)

    def trace_of(self, request_id):
        """The spans of one request: its own first, then its parts by name."""
        def own(spans):
            return next((one for one in spans if one["attributes"].get("gen_ai.request.id") == request_id), None)

        spans = self.wait(own, f"the span of {request_id}")
        root = own(spans)
        parts = {one["name"]: one for one in spans if one["parent"] == root["id"]}
        return root, parts

    def close(self):
        self.let_go.set()
        self._server.shutdown()
        self._server.server_close()


def value_of(value):
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [value_of(one) for one in value.array_value.values]
    return getattr(value, kind)


def attributes_of(message):
    names = [one.key for one in message.attributes]
    assert len(set(names)) == len(names), f"an attribute twice: {names}"
    return {one.key: value_of(one.value) for one in message.attributes}


def spans_in(told):
    """What an ExportTraceServiceRequest in OTLP's JSON has. Its ids are hexadecimal, where protobuf's own JSON has base64."""
    for resource in told["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for name, digits in (("traceId", 32), ("spanId", 16), ("parentSpanId", 16)):
                    if name in span:
                        assert len(span[name]) == digits and span[name] == span[name].lower(), span[name]
                        span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    message = json_format.ParseDict(told, ExportTraceServiceRequest())
    return [
        {"trace": span.trace_id.hex(), "id": span.span_id.hex(), "parent": span.parent_span_id.hex(), "name": span.name, "kind": span.kind,
         "start": span.start_time_unix_nano, "end": span.end_time_unix_nano, "status": span.status.code, "state": span.trace_state,
         "flags": span.flags, "events": [(one.name, one.time_unix_nano, attributes_of(one)) for one in span.events],
         "attributes": attributes_of(span), "resource": attributes_of(resource.resource)}
        for resource in message.resource_spans for scope in resource.scope_spans for span in scope.spans
    ]  # fmt: skip
