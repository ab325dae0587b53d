"""Holds many streams open at once and says what came of them: a client with a process of its own.

    python tests/wire/held_streams.py PORT COUNT RATE_PER_S     reads orders, a line each, and answers with JSON:
        say        how many streams are open (they have had an event), how many events came, and what went wrong
        leave N    resets the connections of N open streams
    and ends, with all that is open, when its standard input does.
"""

import collections
import json
import os
import pathlib
import resource
import selectors
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "loadtest"))
from driver.wire import AnswerReader, BadAnswer  # noqa: E402

OTHER_FILES = 256  # of either side, beside its streams
FIRST_ID, LAST_ID = 257, 511  # of the toy's vocabulary, behind the bytes


def files_short_of(count):
    """Why so many streams cannot be held here; empty: they can."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return "" if most >= count + OTHER_FILES else f"{count} streams need {count + OTHER_FILES} open files, and `ulimit -Hn` is {most}"


def request(index):
    """Two tokens that no other stream has, and an answer that is longer than anybody looks."""
    ids = [FIRST_ID + index // 200 % 255, FIRST_ID + index % 200]
    body = json.dumps({"prompt": ids, "stream": True, "max_tokens": 500, "ignore_eos": True, "temperature": 0}).encode()
    return b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


class Stream:
    def __init__(self, raw):
        self.raw, self.reader, self.num_events = raw, AnswerReader(), 0


class Holder:
    def __init__(self, port, count, rate_per_s, orders_from=sys.stdin):
        self.port, self.count, self.rate_per_s, self.orders_from = port, count, rate_per_s, orders_from
        self.selector = selectors.DefaultSelector()
        self.selector.register(orders_from, selectors.EVENT_READ)
        self.streams, self.faults = {}, collections.Counter()
        self.num_begun = self.num_events = 0
        self.orders = b""

    def run(self):
        begun_s = time.monotonic()
        while True:
            due = min(self.count, int((time.monotonic() - begun_s) * self.rate_per_s))
            while self.num_begun < due:
                self.begin()
            if not self.step(0.002 if due < self.count else None):
                return

    def step(self, timeout_s):
        """Reads what has come. False: no more orders will."""
        ready = [key.data for key, _ in self.selector.select(timeout_s)]
        for stream in filter(None, ready):
            self.read(stream)
        return None not in ready or self.obey()  # after the streams: an order closes some of them

    def add(self, raw):
        raw.setblocking(False)
        self.streams[raw] = stream = Stream(raw)
        self.selector.register(raw, selectors.EVENT_READ, stream)

    def begin(self):
        self.num_begun += 1
        try:
            raw = socket.create_connection(("127.0.0.1", self.port), timeout=120)
            raw.sendall(request(self.num_begun - 1))
        except OSError as error:
            self.faults[type(error).__name__] += 1
            return
        self.add(raw)

    def read(self, stream):
        try:
            piece = stream.raw.recv(65536)
            events = stream.reader.feed(piece)
        except BlockingIOError:
            return
        except (OSError, BadAnswer) as error:
            return self.end(stream, type(error).__name__)
        stream.num_events += len(events)
        self.num_events += len(events)
        if stream.reader.status not in (0, 200):
            return self.end(stream, f"status {stream.reader.status}")
        if any(b'"error"' in event for event in events):
            return self.end(stream, "error event")
        if not piece or stream.reader.done:
            self.end(stream, "ended")

    def end(self, stream, fault=None):
        if fault:
            self.faults[fault] += 1
        self.selector.unregister(stream.raw)
        del self.streams[stream.raw]
        stream.raw.close()

    def obey(self):
        piece = os.read(self.orders_from.fileno(), 4096)
        self.orders += piece
        *lines, self.orders = self.orders.split(b"\n")
        for line in lines:
            verb, *rest = line.decode().split()
            if verb == "leave":
                self.leave(int(rest[0]))
            told = {"begun": self.num_begun, "open": sum(one.num_events > 0 for one in self.streams.values()),
                    "events": self.num_events, "faults": self.faults}
            print(json.dumps(told), flush=True)
        return bool(piece)

    def leave(self, count):
        going = [one for one in self.streams.values() if one.num_events > 0][:count]
        for stream in going:
            stream.raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.end(stream)


class HeldStreams:
    """The process, from the side of who starts it."""

    def __init__(self, port, count, rate_per_s=500):
        self.process = subprocess.Popen([sys.executable, __file__, str(port), str(count), str(rate_per_s)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(120)

    def order(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


if __name__ == "__main__":
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    Holder(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])).run()
