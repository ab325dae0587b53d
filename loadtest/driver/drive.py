"""Sends a plan's requests when their times come, whatever the server does, and gathers the answers."""

import asyncio
import contextlib
import dataclasses
import gc
import resource
import signal
import time

from driver import answer as verdicts
from driver.answer import Answer
from driver.connection import Exchange, Pool, take_descriptors
from driver.figures import new_histogram, record

TICK_S = 0.02  # how often the client looks at its own lateness
SOON_S = 0.05  # between the start and the first request


@dataclasses.dataclass
class Run:
    """What happened. Times of the monotonic clock."""

    scenario: object
    num_planned: int
    start_s: float
    end_s: float
    answers: list
    client_cpu: float  # of one core, over the run
    lag: object  # histogram: how much later than due the client's own timers ran
    most_in_flight: int
    interrupted: bool
    probes: dict = dataclasses.field(default_factory=dict)


class Drive:
    """One run of one plan against one server. drive() is to be called once, on a loop of its own or another's."""

    def __init__(self, scenario, plan, asker, target, progress=None, start_s=None):
        """`start_s`: the plan's time 0 on the monotonic clock; soon, unless given."""
        self.scenario, self.plan, self.asker, self.progress = scenario, plan, asker, progress
        self.start_s = start_s
        self.pool = Pool(target)
        self.answers, self.in_flight, self.most_in_flight = [], set(), 0
        self.room = take_descriptors(max(scenario.streams, scenario.arrivals.get("concurrency", 0)))
        self.next_index = 0
        self.lag = new_histogram()
        self.interrupted = False

    async def drive(self):
        self.loop = asyncio.get_running_loop()
        self.over = self.loop.create_future()
        await self.pool.resolve()
        with self._quiet_collector(), self._on_interrupt():
            cpu_s, begun_s = cpu_seconds(), time.monotonic()
            self.start_s = begun_s + SOON_S if self.start_s is None else self.start_s
            ticker = self.loop.create_task(self._tick())
            if self.scenario.arrivals["kind"] == "closed":
                self.loop.call_at(self.start_s, self._begin_closed)
            else:
                self._wait_for_next()
            await self.over
            end_s = time.monotonic()
            cpu_s = cpu_seconds() - cpu_s
            ticker.cancel()
        self.pool.close()
        return Run(
            self.scenario, len(self.plan), self.start_s, end_s, self.answers, cpu_s / (end_s - begun_s), self.lag,
            self.most_in_flight, self.interrupted,
        )  # fmt: skip

    # ---- when

    def _wait_for_next(self):
        if self.next_index < len(self.plan):
            self.loop.call_at(self.start_s + self.plan[self.next_index].at_s, self._send_due)
        else:
            self._look_for_end()

    def _send_due(self):
        """All whose time has come: behind a pause of the client's there may be many."""
        while self.next_index < len(self.plan):
            planned = self.plan[self.next_index]
            if self.interrupted:
                return
            if self.start_s + planned.at_s > time.monotonic():
                break
            self.next_index += 1
            self._send(planned, self.start_s + planned.at_s)
        self._wait_for_next()

    def _begin_closed(self):
        for _ in range(min(self.scenario.arrivals["concurrency"], len(self.plan))):
            self._send_one_more()

    def _send_one_more(self):
        """Closed loop: a request is due when another has ended."""
        if not self.interrupted and self.next_index < len(self.plan):
            planned = self.plan[self.next_index]
            self.next_index += 1
            self._send(planned, time.monotonic())
        else:
            self._look_for_end()

    def _look_for_end(self):
        all_sent = self.next_index == len(self.plan) or self.interrupted
        if all_sent and not self.in_flight and not self.over.done():
            self.over.set_result(None)

    # ---- one request

    def _send(self, planned, intended_s):
        answer = Answer(planned, intended_s)
        answer.sent_s = time.monotonic()
        self.answers.append(answer)
        exchange = Exchange(answer, self.scenario, self._ended)
        self.in_flight.add(exchange)
        self.most_in_flight = max(self.most_in_flight, len(self.in_flight))
        if len(self.in_flight) > self.room:
            exchange.close(verdicts.FAILED, "the client had no descriptor left", time.monotonic())
            return
        exchange.timer = self.loop.call_at(intended_s + self.scenario.timeout_s, self._time_out, exchange)
        request = self.asker.request(planned)
        if connection := self.pool.take_idle():
            connection.ask(exchange, request)
        else:
            self.loop.create_task(self._connect(exchange, request))

    async def _connect(self, exchange, request):
        try:
            connection = await self.pool.open()
        except OSError as error:
            if exchange in self.in_flight:
                exchange.close(verdicts.FAILED, f"no connection: {type(error).__name__}", time.monotonic())
            return
        if exchange in self.in_flight:
            connection.ask(exchange, request)
        else:
            connection.transport.abort()  # it came too late

    def _time_out(self, exchange):
        exchange.close(verdicts.FAILED, "timeout", time.monotonic())

    def _ended(self, exchange):
        self.in_flight.discard(exchange)
        if self.scenario.arrivals["kind"] == "closed":
            self.loop.call_soon(self._send_one_more)
        else:
            self._look_for_end()

    # ---- the client itself

    async def _tick(self):
        due_s, told_s = time.monotonic(), time.monotonic()
        while True:
            due_s += TICK_S
            await asyncio.sleep(max(0, due_s - time.monotonic()))
            now_s = time.monotonic()
            record(self.lag, now_s - due_s)
            due_s = max(due_s, now_s - TICK_S)
            if self.progress and now_s - told_s >= 1:
                told_s = now_s
                self.progress(now_s - self.start_s, len(self.answers), len(self.plan), len(self.in_flight))

    @contextlib.contextmanager
    def _quiet_collector(self):
        """A collection among ten thousand streams takes tens of milliseconds: none during a run."""
        gc.collect()
        gc.disable()
        try:
            yield
        finally:
            gc.enable()

    @contextlib.contextmanager
    def _on_interrupt(self):
        """Ctrl-C ends the run with what there is."""
        try:
            self.loop.add_signal_handler(signal.SIGINT, self._interrupt)
        except (ValueError, RuntimeError):  # not the main thread
            yield
            return
        try:
            yield
        finally:
            self.loop.remove_signal_handler(signal.SIGINT)

    def _interrupt(self):
        self.interrupted = True
        for exchange in list(self.in_flight):
            exchange.close(verdicts.UNFINISHED, "interrupted", time.monotonic())
        self._look_for_end()


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
