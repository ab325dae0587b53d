"""docs/metrics.md lists the metrics that a server exports, their bounds, and the error of a percentile. `--write` renews its tables."""

import itertools
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import textwrap
import time
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "metrics.md"
BUILD = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", ROOT / "build" / "release"))
KEY = "a-key-for-tests-alone"
FLAGS = ["--port", "0", "--threads", "1", "--api-key", KEY, "--speculative-config", '{"method": "ngram"}']
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("QUIRE_")}

# vLLM's bounds where quire has its own: time to first token, between tokens, whole requests, and its HTTP server's.
VLLM = {
    "time to first token": (.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560),
    "whole request, queue": (.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680),
    "HTTP": (.1, .5, 1),
}  # fmt: skip
RANGES = {"0.5 to 1 ms": (.0005, .001), "1 to 10 ms": (.001, .01), "10 to 100 ms": (.01, .1), "0.1 to 1 s": (.1, 1)}
SHAPES, PERCENTILES, MEDIANS = (.25, .5, 1), (.5, .9, .99), 40
NORMAL = statistics.NormalDist()


class Server:
    def __enter__(self):
        self.process = subprocess.Popen([BUILD / "quire", "serve", *FLAGS], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)
        self.url = next(match[0] for line in self.process.stdout if (match := re.search(r"http://127\.0\.0\.1:\d+", line)))
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate(timeout=120)

    def ask(self, path, body=None):
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(self.url + path, body, headers), timeout=120) as answer:
            return answer.read().decode()

    def metrics(self):
        self.ask("/v1/models")
        return self.ask("/metrics")


def bounds_of(text, name):
    found = re.findall(rf'^{name}_bucket\{{.*le="([\d.e-]+)"\}}', text, re.MULTILINE)
    return sorted({float(bound) for bound in found})


def quantile(bounds, share_below, wanted):
    """Prometheus' histogram_quantile of a distribution."""
    low, below = 0.0, 0.0
    for bound in bounds:
        share = share_below(bound)
        if share >= wanted:
            return low + (bound - low) * (wanted - below) / (share - below)
        low, below = bound, share
    return low


def errors_of(bounds, low, high):
    """Relative errors of percentiles of log-normal latencies with medians between the two."""
    for step, shape, wanted in itertools.product(range(MEDIANS), SHAPES, PERCENTILES):
        median = low * (high / low) ** ((step + .5) / MEDIANS)
        true = median * math.exp(shape * NORMAL.inv_cdf(wanted))
        yield abs(quantile(bounds, lambda x, m=median, s=shape: NORMAL.cdf(math.log(x / m) / s), wanted) / true - 1)


def table(head, rows):
    return "\n".join(["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)])


def percent(value):
    return f"{100 * value:,.0f} %" if value >= .02 else f"{100 * value:.1f} %"


def errors_table(bounds):
    rows = []
    for name, (low, high) in RANGES.items():
        cells = [name]
        for these in (bounds, *VLLM.values()):
            errors = list(errors_of(these, low, high))
            cells.append(f"{percent(statistics.median(errors))}, {percent(max(errors))}")
        rows.append(cells)
    return table(["median latency", "quire: median error, largest", *(f"vLLM's bounds, {name}" for name in VLLM)], rows)


def series_table(text):
    labels = {}
    for name, inner in re.findall(r"^([a-z_:0-9]+)\{(.*)\} \S+$", text, re.MULTILINE):
        own = [key for key in re.findall(r'(\w+)="', inner) if key not in ("model_name", "engine", "le")]
        labels.setdefault(re.sub(r"_(bucket|sum|count)$", "", name), []).extend(own)
        labels.setdefault(name, []).extend(own)
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    rows = []
    for name, what in re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE):
        own = ", ".join(f"`{key}`" for key in dict.fromkeys(labels.get(name, [])))
        rows.append([f"`{name}`", kinds[name], own, what])
    return table(["metric", "type", "labels", "meaning"], sorted(rows))


def written(text):
    """The page, its tables as `text` has them."""
    bounds = bounds_of(text, "vllm:e2e_request_latency_seconds")
    parts = {"bounds": textwrap.fill(", ".join(f"{bound:g}" for bound in bounds) + ".", 120), "errors": errors_table(bounds), "series": series_table(text)}
    page = PAGE.read_text()
    for name, part in parts.items():
        page, count = re.subn(rf"(<!-- {name} -->\n).*?(<!-- end -->)", lambda match, part=part: match[1] + part + "\n" + match[2], page, flags=re.DOTALL)
        assert count == 1, name
    return page


@pytest.fixture(scope="module")
def server():
    with Server() as one:
        yield one


@pytest.fixture(scope="module")
def text(server):
    return server.metrics()


def test_the_page_has_every_series_its_bounds_and_their_errors(text):
    assert PAGE.read_text() == written(text), f"python {pathlib.Path(__file__).relative_to(ROOT)} --write"


def test_all_latencies_have_the_bounds_of_the_page(text):
    bounds = bounds_of(text, "vllm:e2e_request_latency_seconds")
    for name in ("time_to_first_token", "inter_token_latency", "request_queue_time", "request_prefill_time", "request_decode_time",
                 "request_inference_time", "request_time_per_output_token"):
        assert bounds_of(text, f"vllm:{name}_seconds") == bounds, name
    assert bounds_of(text, "http_request_duration_seconds") == bounds


def test_no_percentile_is_off_by_more_than_a_third(text):
    bounds = bounds_of(text, "vllm:e2e_request_latency_seconds")
    assert max(error for low, high in RANGES.values() for error in errors_of(bounds, low, high)) < 1 / 3
    for number in range(1000):  # all values equal
        value = .0001 * 1e5 ** (number / 1000) * 1.0001
        for wanted in PERCENTILES:
            assert abs(quantile(bounds, lambda x, v=value: float(x >= v), wanted) / value - 1) < 1 / 3, value
    assert max(errors_of(VLLM["whole request, queue"], .001, .01)) > 10, "what the finer bounds are for"


def test_a_percentile_of_real_requests_is_what_their_client_measured(server):
    """The server's time is within the client's; on a busy machine the client's is longer."""
    before = server.metrics()
    times = []
    for _ in range(40):
        began = time.monotonic()
        server.ask("/v1/completions", b'{"prompt": "Once upon a time", "max_tokens": 24, "temperature": 0, "ignore_eos": true}')
        times.append(time.monotonic() - began)
    after = server.metrics()
    name = 'http_request_duration_seconds_bucket{handler="/v1/completions",method="POST"'
    counts = [dict(re.findall(rf'^{re.escape(name)},le="([^"]+)"\}} (\d+)$', text, re.MULTILINE)) for text in (before, after)]
    shares = {float(bound): (int(count) - int(counts[0].get(bound, 0))) / len(times) for bound, count in counts[1].items()}
    bounds = sorted(shares)[:-1]
    median = quantile(bounds, shares.get, .5)
    print(f"p50: {1000 * median:.1f} ms by the histogram, {1000 * statistics.median(times):.1f} ms by the client")
    assert .5 * statistics.median(times) < median < 4 / 3 * statistics.median(times)


def test_queries_of_the_page_name_metrics_that_exist(text):
    exported = {re.split(r"[{ ]", line)[0] for line in text.splitlines() if not line.startswith("#")}
    queries = [line for block in re.findall(r"```promql\n(.*?)```", PAGE.read_text(), re.DOTALL) for line in block.splitlines()]
    named = {name for query in queries for name in re.findall(r"\b(?:vllm:|http_)\w+", query)}
    assert len(queries) >= 4 and named and named <= exported


if __name__ == "__main__":
    assert sys.argv[1:] == ["--write"]
    with Server() as one:
        PAGE.write_text(written(one.metrics()))
