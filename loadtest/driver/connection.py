"""Connections to one server: opened, kept for the next request, and one exchange at a time on each."""

import asyncio
import dataclasses
import resource
import socket
import ssl
import time
import urllib.parse

from driver import answer as verdicts
from driver.wire import AnswerReader, BadAnswer

SPARE_DESCRIPTORS = 64  # files, pipes, probes
MAX_IDLE_S = 1.0  # servers close idle connections after some seconds: ours is never as old as that


@dataclasses.dataclass(frozen=True)
class Target:
    """A server: what its URL says."""

    url: str
    secure: bool
    host: str
    port: int
    path: str  # before /v1

    @property
    def authority(self):
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def target_of(url):
    """ValueError, with the URL in it, when it is none of HTTP. A trailing /v1 is taken off."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url}: expected http://HOST:PORT or https://HOST:PORT")
    secure = parts.scheme == "https"
    path = parts.path.rstrip("/").removesuffix("/v1")
    return Target(url, secure, parts.hostname, parts.port or (443 if secure else 80), path)


def take_descriptors(streams):
    """Raises the soft limit as far as it goes; how many streams that leaves room for. OSError when those are fewer than `streams`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    room = hard - SPARE_DESCRIPTORS
    if room < streams:
        raise OSError(
            f"{streams:,} streams need {streams + SPARE_DESCRIPTORS:,} descriptors, and this process may have {hard:,}: "
            f"raise the hard limit (ulimit -Hn, or nofile in limits.conf) or ask for fewer streams"
        )
    return room


class Exchange:
    """One request and its answer. `ended(exchange)` is called once, whatever becomes of it."""

    def __init__(self, answer, scenario, ended):
        self.answer, self.scenario, self.ended = answer, scenario, ended
        self.reader = AnswerReader()
        self.connection = None
        self.timer = None

    def take(self, data, now_s):
        try:
            events = self.reader.feed(data)
            if self.reader.status == 200:
                for event in events:
                    self.answer.take_event(event, now_s)
            if self.reader.done:
                self._judge(now_s)
        except BadAnswer as error:
            self.close(verdicts.FAILED, str(error), now_s)

    def lost(self, now_s):
        """The connection is gone."""
        if self.reader.end():
            try:
                self._judge(now_s)
            except BadAnswer as error:
                self.close(verdicts.FAILED, str(error), now_s)
        else:
            self.close(verdicts.FAILED, "cut in its middle" if self.reader.status else "cut before an answer", now_s)

    def _judge(self, now_s):
        status = self.reader.status
        if status != 200:
            self.close(verdicts.REFUSED if status in verdicts.REFUSALS else verdicts.FAILED, f"status {status}", now_s)
        elif self.scenario.stream and not self.reader.streams:
            self.close(verdicts.WRONG, "not a stream", now_s)
        else:
            if not self.scenario.stream:
                self.answer.take_object(self.reader.body, now_s)
            self.answer.end(now_s, self.scenario)
            self._finish()

    def close(self, outcome, why, now_s):
        self.answer.close(now_s, outcome, why)
        self._finish()

    def _finish(self):
        if self.timer:
            self.timer.cancel()
        connection, self.connection = self.connection, None
        if connection:
            connection.release(self.reader.done and self.reader.keep_alive and self.answer.outcome != verdicts.FAILED)
        self.ended(self)


class Connection(asyncio.Protocol):
    """A socket; with an exchange it is busy."""

    def __init__(self, pool):
        self.pool, self.exchange, self.transport = pool, None, None

    def connection_made(self, transport):
        self.transport = transport

    def ask(self, exchange, request):
        self.exchange, exchange.connection = exchange, self
        self.transport.write(request)

    def data_received(self, data):
        now_s = time.monotonic()
        if self.exchange:
            self.exchange.take(data, now_s)
        else:
            self.transport.abort()  # nobody asked

    def connection_lost(self, _):
        self.pool.forget(self)
        if self.exchange:
            self.exchange.lost(time.monotonic())

    def release(self, reusable):
        self.exchange = None
        if reusable and not self.transport.is_closing():
            self.pool.keep(self)
        else:
            self.transport.abort()


class Pool:
    """Connections that wait for the next request, the latest used first."""

    def __init__(self, target):
        self.target = target
        self._idle = {}  # connection → since when; in that order
        self._address = None
        self._ssl = ssl.create_default_context() if target.secure else None

    async def resolve(self):
        """Once, so that no request waits for a name. OSError when there is none."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(self.target.host, self.target.port, type=socket.SOCK_STREAM)
        self._address = found[0][4][0]

    async def open(self):
        name = self.target.host if self._ssl else None
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            lambda: Connection(self), self._address, self.target.port, ssl=self._ssl, server_hostname=name
        )
        return connection

    def take_idle(self):
        """One that is fresh, or None; older ones are closed."""
        if not self._idle:
            return None
        connection, since_s = self._idle.popitem()
        if time.monotonic() - since_s <= MAX_IDLE_S and not connection.transport.is_closing():
            return connection
        connection.transport.abort()
        self.close()
        return None

    def keep(self, connection):
        self._idle[connection] = time.monotonic()

    def forget(self, connection):
        self._idle.pop(connection, None)

    def close(self):
        idle, self._idle = self._idle, {}
        for connection in idle:
            connection.transport.abort()
