"""Asks for small pages (/live, /metrics) again and again while a load runs, from a process of its own.

    python -m driver.probes INTERVAL_S URL…     until standard input ends; then JSON: URL → seconds of each answer, failures

Times count from when the question was due: one slow answer makes the questions behind it late, and they say so.
"""

import http.client
import json
import pathlib
import subprocess
import sys
import threading
import time
import urllib.parse

TIMEOUT_S = 10


class Probe(threading.Thread):
    """One page, asked every `interval_s` on a connection that is kept."""

    def __init__(self, url, interval_s, stopped):
        super().__init__(daemon=True)
        self.url, self.interval_s, self.stopped = url, interval_s, stopped
        self.seconds, self.failed = [], 0
        self.connection = None

    def run(self):
        due_s = time.monotonic()
        while not self.stopped.wait(max(0, due_s - time.monotonic())):
            if self.ask():
                self.seconds.append(round(time.monotonic() - due_s, 6))
            else:
                self.failed += 1
            due_s += self.interval_s

    def ask(self):
        parts = urllib.parse.urlsplit(self.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        try:
            if self.connection is None:
                self.connection = kind(parts.hostname, parts.port, timeout=TIMEOUT_S)
            self.connection.request("GET", parts.path or "/")
            answer = self.connection.getresponse()
            answer.read()
            return answer.status == 200
        except (OSError, http.client.HTTPException):
            if self.connection:
                self.connection.close()
            self.connection = None
            return False


class Probes:
    """The process, from the side of who starts it."""

    def __init__(self, urls, interval_s):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "driver.probes", str(interval_s), *urls], cwd=pathlib.Path(__file__).resolve().parents[1],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        self.process.stdout.readline()  # it has begun

    def stop(self):
        """url → {"seconds": […], "failed": n}"""
        told, _ = self.process.communicate()
        return json.loads(told)


def main():
    interval_s, urls = float(sys.argv[1]), sys.argv[2:]
    stopped = threading.Event()
    probes = [Probe(url, interval_s, stopped) for url in urls]
    for probe in probes:
        probe.start()
    print("started", flush=True)
    sys.stdin.read()
    stopped.set()
    for probe in probes:
        probe.join(TIMEOUT_S)
    print(json.dumps({probe.url: {"seconds": probe.seconds, "failed": probe.failed} for probe in probes}))


if __name__ == "__main__":
    main()
