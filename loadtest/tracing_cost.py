"""What traces cost a server: processor time of two servers, one of which tells its spans to a receiver, at the same requests by turns.

    python loadtest/tracing_cost.py [--quire build/release/quire] [--rounds 9] [--requests 400] [--max-tokens 16]

One thread computes in each, so that what is asked costs the same; the figure is the median over the rounds of what a request took more, with
the rounds' range, and as a part of what it took. The receiver is a process of its own, and in no figure.
"""

import argparse
import contextlib
import http.client
import http.server
import json
import multiprocessing
import os
import pathlib
import socket
import statistics
import subprocess
import time

ROOT = pathlib.Path(__file__).parent.parent
START_S = 60


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


def receive(port):
    http.server.ThreadingHTTPServer(("127.0.0.1", port), Receiver).serve_forever()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def server(quire, *flags):
    port = free_port()
    command = [quire, "serve", "--port", str(port), "--threads", "1", "--prefix-caching", "off", *flags]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + START_S
        while True:
            try:
                if ask(http.client.HTTPConnection("127.0.0.1", port), "GET", "/ready")[0] == 200:
                    break
            except OSError:
                pass
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"the server did not become ready: {' '.join(command)}")
            time.sleep(0.05)
        yield process.pid, port
    finally:
        process.terminate()
        process.wait(30)


def ask(connection, method, path, body=None):
    connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
    response = connection.getresponse()
    return response.status, response.read()


def cpu_s(pid):
    """Processor time of all threads that were and are."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def round_of(pid, port, num_requests, max_tokens):
    """Processor seconds a request, its spans sent."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    body = json.dumps({"prompt": "Once upon a time", "max_tokens": max_tokens, "ignore_eos": True, "temperature": 0})
    began = cpu_s(pid)
    for _ in range(num_requests):
        status, text = ask(connection, "POST", "/v1/completions", body)
        if status != 200:
            raise SystemExit(f"{status}: {text[:300]}")
    time.sleep(0.3)  # a batch is sent after 100 ms
    return (cpu_s(pid) - began) / num_requests


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quire", default="build/release/quire")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--max-tokens", type=int, default=16)
    given = parser.parse_args()
    port = free_port()
    receiver = multiprocessing.Process(target=receive, args=(port,), daemon=True)
    receiver.start()
    os.environ["OTEL_BSP_SCHEDULE_DELAY"] = "100"
    with server(given.quire) as plain, server(given.quire, "--otlp-traces-endpoint", f"http://127.0.0.1:{port}") as traced:
        shape = (given.requests, given.max_tokens)
        rows = [(round_of(*plain, *shape), round_of(*traced, *shape)) for _ in range(given.rounds + 1)][1:]
        sent = http.client.HTTPConnection("127.0.0.1", traced[1])
        metrics = ask(sent, "GET", "/metrics")[1].decode()
    more = sorted(with_spans - without for without, with_spans in rows)
    without = statistics.median(row[0] for row in rows)
    print(f"a request of {given.max_tokens} tokens: {1e6 * without:.0f} µs of processor time; traced {1e6 * statistics.median(more):+.0f} µs "
          f"({1e6 * more[0]:+.0f} to {1e6 * more[-1]:+.0f}), {100 * statistics.median(more) / without:+.1f} %")
    for line in metrics.splitlines():
        if line.startswith("quire:trace_spans"):
            print(line)


if __name__ == "__main__":
    main()
