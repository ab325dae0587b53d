"""k6 and locust send what our driver sends, when it sends it, and measure what it measures."""

import json
import pathlib
import statistics
import subprocess
import sys
import time

import pytest

from driver import scenario
from driver.connection import target_of
from driver.prompts import Asker
from driver.schedule import plan
from packages import python_with
from test_load_command import ENVIRONMENT, ROOT, quire

pytestmark = pytest.mark.heavy

HERE = pathlib.Path(__file__).parent
NUM_ROUNDS = 3
START_UP_S = 20  # of k6 and locust
SERVER = ("--threads", "1", "--prefix-caching", "off", "--speculative-config", '{"method": "none"}')
# Answers of a tenth of a second and more: a millisecond that a client adds, as locust does, is a hundredth of that. First tokens
# come within some milliseconds, where that is more than the tolerance: whole answers are what all three can measure.
LOAD = """
arrivals: {kind: poisson, rate_per_s: 1.2, duration_s: 30}
prompt: {tokens: {uniform: [8, 24]}}
answer: {tokens: {uniform: [200, 460]}}
body: {temperature: 0}
"""
PERCENTILES = (50, 99)
TOLERANCE = 0.05


def figures(whole_ms):
    """As our driver has them: the value at its rank."""
    at = lambda percent: sorted(whole_ms)[-(-len(whole_ms) * percent // 100) - 1]
    return {"right": len(whole_ms)} | {percent: at(percent) for percent in PERCENTILES}


class Drivers:
    """Three clients of one server at once: the same requests at the same times, so that all answers of a moment are computed
    together, and whatever holds the server up is in the figures of all three.
    """

    def __init__(self, url, folder, seed):
        self.url, self.folder, self.seed = url, folder, seed
        (folder / "load.yaml").write_text(LOAD)
        wanted = scenario.load(str(folder / "load.yaml"))
        self.planned = plan(wanted, seed)
        asker = Asker(wanted, target_of(url), "stories", str(seed))
        bodies = [asker.request(one).split(b"\r\n\r\n", 1)[1].decode() for one in self.planned]
        self.programs = python_with(HERE / "load_drivers.txt").parent  # made the first time: not behind the start
        self.start_s = time.time() + START_UP_S
        requests = [{"at_s": self.start_s + one.at_s, "body": body} for one, body in zip(self.planned, bodies, strict=True)]
        (folder / "requests.json").write_text(json.dumps({"url": f"{url}/v1/completions", "requests": requests}))

    def start(self, *command):
        settings = {"REQUESTS": str(self.folder / "requests.json"), "POINTS": str(self.folder / "locust.jsonl")}
        return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT | settings)

    def run(self):
        """name → figures"""
        users = len(self.planned)
        started = {
            "ours": self.start(sys.executable, ROOT / "loadtest" / "load.py", self.folder / "load.yaml", "--url", self.url, "--seed", self.seed,
                               "--start-at", self.start_s, "--json", self.folder / "ours.json"),
            "k6": self.start(self.programs / "k6", "run", "--quiet", "--no-usage-report", "--out", f"json={self.folder / 'k6.jsonl'}", HERE / "k6_replay.js"),
            "locust": self.start(self.programs / "locust", "-f", HERE / "locust_replay.py", "--headless", "--skip-log", "-t", "300s", "-u", users, "-r", users),
        }
        try:
            for name, process in started.items():
                said, _ = process.communicate(timeout=600)
                assert process.returncode == 0, f"{name}: {said[-3000:]}"
        finally:
            for process in started.values():
                process.kill()
                process.wait()
        return {"ours": self.ours(), "k6": self.k6(), "locust": self.locust()}

    def ours(self):
        found = json.loads((self.folder / "ours.json").read_text())
        assert found["client"]["most_in_flight"] * 3 <= 64, "the server was saturated: requests waited for a place"
        return {"right": found["requests"]["right"]} | {percent: found["latency_ms"]["e2e"][f"p{percent}"] for percent in PERCENTILES}

    def lines(self, name):
        return [json.loads(line) for line in (self.folder / f"{name}.jsonl").read_text().splitlines()]

    def k6(self):
        points = [line for line in self.lines("k6") if line["type"] == "Point"]
        values = lambda metric: [point["data"]["value"] for point in points if point["metric"] == metric]
        assert set(values("checks")) == {1}
        return figures(values("http_req_duration"))

    def locust(self):
        points = self.lines("locust")
        assert not any(point["failed"] for point in points)
        return figures([point["ms"] for point in points])


def test_k6_and_locust_see_what_our_driver_sees(tmp_path):
    """As many right answers, and the median and p99 of their times within 5 %, in the median of three rounds."""
    rounds = []
    with quire(*SERVER) as url:
        for seed in range(NUM_ROUNDS):
            drivers = Drivers(url, tmp_path, seed)
            rounds.append(drivers.run())
            print({name: {key: round(value, 1) for key, value in found.items()} for name, found in rounds[-1].items()})
            assert [found["right"] for found in rounds[-1].values()] == [len(drivers.planned)] * 3
    for name in ("k6", "locust"):
        for percent in PERCENTILES:
            ratio = statistics.median(found[name][percent] / found["ours"][percent] for found in rounds)
            assert ratio == pytest.approx(1, rel=TOLERANCE), f"{name}, p{percent}: {rounds}"
