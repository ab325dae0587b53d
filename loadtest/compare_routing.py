#!/usr/bin/env python3
"""How much of their prompts replicas find in their caches, by how a router chooses among them: the table and plot of docs/scaling.md.

    python loadtest/compare_routing.py --routers ENVIRONMENT/bin [--quire build/release/quire] [--update-docs]

Three replicas of the built-in model, one thread each, behind a router of loadtest/requirements-routers.txt, under the scenario
rag-shared-prefix in small; and one replica without a router. Each row begins with empty caches. No times are told: the replicas
share this machine's processors, and what is found in their caches does not depend on how fast they are.
"""

import argparse
import collections
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "scaling.md"
FIGURES = ROOT / "docs" / "routing.csv"
PLOT = ROOT / "docs" / "routing.svg"

sys.path.insert(0, str(ROOT / "loadtest"))
import report  # noqa: E402
import routers  # noqa: E402
from compare_peers import Server, free_port  # noqa: E402
from driver import page, scenario  # noqa: E402
from driver.schedule import plan  # noqa: E402

BLOCK_TOKENS, BLOCK_BYTES = 16, 16 * 3072  # of the built-in model in bf16: docs/kv-cache.md
DOCUMENT_TOKENS = 256  # its context is 512
SETTINGS = {"prompt.shared_prefix.tokens": str(DOCUMENT_TOKENS), "arrivals": "{kind: closed, concurrency: 4, requests: 300}"}
ROOMS = {"all": None, "half": 256}  # blocks that a replica's cache has; the 32 documents have 512
ROUTINGS = [  # name, router, its policy, replicas
    ("one replica", None, None, 1),
    ("random", "vllm", "random", 3),
    ("round robin", "vllm", "round_robin", 3),
    ("prefix-aware, vLLM's router", "vllm", "cache_aware", 3),
    ("prefix-aware, SGLang's router", "sglang", "cache_aware", 3),
]
COLUMNS = ["room", "routing", "replicas", "requests", "prompt_tokens", "cached_share", "expected_share", "busiest_share"]


# ---- what is expected


def window(weights, blocks, own_blocks):
    """Requests that an LRU list of so many blocks looks back over: Che's characteristic time (Che, Tung and Wang 2002).

    Within it the documents asked for, and what each request leaves behind of its own, fill the list.
    """
    if blocks is None:
        return float("inf")
    filled = lambda over: sum(DOCUMENT_TOKENS / BLOCK_TOKENS * (1 - (1 - p) ** over) for p in weights) + own_blocks * over
    low, high = 0.0, 1e9
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if filled(middle) < blocks else (low, middle)
    return low


def expected_hits(popularity, num_requests, blocks, own_blocks, replicas=1, aware=True):
    """The part of requests that find their document. Request n finds document g unless none of those that its replica looks back
    over, n at most, asked for g. Scattered, a replica sees 1/R of everything; prefix-aware, R replicas are one list R times as long.
    """
    split = 1 if aware else replicas
    room = None if blocks is None else blocks * (replicas if aware else 1)
    weights = [p / split for p in popularity]
    over = window(weights, room, own_blocks / split)
    missed = sum(p * (1 - w) ** min(n, over) for n in range(num_requests) for p, w in zip(popularity, weights))
    return 1 - missed / num_requests


def popularity_of(wanted):
    shared = wanted.shared_prefix
    parts = [1 / k ** shared["skew"] for k in range(1, shared["groups"] + 1)]
    return [part / sum(parts) for part in parts]


def own_blocks_of(planned):
    """What a request fills besides its document, on average."""
    return sum(-(-(one.own_tokens + one.answer_tokens) // BLOCK_TOKENS) for one in planned) / len(planned)


# ---- what is found


class Measurement:
    """Servers and a router, and one run of the load through them."""

    def __init__(self, args, folder):
        self.args, self.folder = args, pathlib.Path(folder)

    def start(self, command, port, name):
        return Server(list(map(str, command)), port, self.folder / f"{name}.log")

    def replica(self, number, blocks):
        port = free_port()
        command = [self.args.quire, "serve", "--port", port, "--threads", 1, "--speculative-config", '{"method": "none"}']
        if blocks is not None:
            command += ["--kv-cache-memory", blocks * BLOCK_BYTES]
        return self.start(command, port, f"replica-{number}")

    def run(self, name, router, policy, replicas, blocks):
        """(summary of the load, requests of each replica)"""
        started = [self.replica(number, blocks) for number in range(replicas)]
        try:
            urls, front = [one.url for one in started], started[0].url
            if router:
                port = free_port()
                command = routers.command(router, self.args.routers, port, free_port(), urls, policy)
                started.append(self.start(command, port, "router"))
                front = started[-1].url
            out = self.folder / "out.json"
            settings = [f"--set={field}={value}" for field, value in SETTINGS.items()]
            load = [sys.executable, ROOT / "loadtest" / "load.py", "rag-shared-prefix", "--url", front, "--model", "stories", "--json", out]
            done = subprocess.run([*map(str, load), *settings], capture_output=True, text=True)
            if done.returncode != 0:
                raise SystemExit(f"{name}: {done.stdout[-1000:]}{done.stderr[-1000:]}")
            return json.loads(out.read_text()), [answered(url) for url in urls]
        finally:
            for one in reversed(started):
                one.stop()


def answered(url):
    with urllib.request.urlopen(url + "/metrics", timeout=10) as text:
        return sum(float(value) for value in re.findall(r"^vllm:request_success_total\{[^}]*\} (\S+)$", text.read().decode(), re.M))


def measure(args):
    wanted = scenario.load("rag-shared-prefix", list(SETTINGS.items()))
    planned = plan(wanted, 1)
    popularity, own_blocks = popularity_of(wanted), own_blocks_of(planned)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        measurement = Measurement(args, folder)
        for room, blocks in ROOMS.items():
            for name, router, policy, replicas in ROUTINGS:
                found, by_replica = measurement.run(name, router, policy, replicas, blocks)
                share = DOCUMENT_TOKENS / found["tokens"]["prompt_planned_mean"]
                aware = policy in (None, "cache_aware")
                expected = share * expected_hits(popularity, len(planned), blocks, own_blocks, replicas, aware)
                rows.append(dict(zip(COLUMNS, [
                    room, name, replicas, len(planned), round(found["tokens"]["prompt_mean"] * len(planned)),
                    round(found["tokens"]["prompt_cached_share"], 4), round(expected, 4), round(max(by_replica) / sum(by_replica), 4),
                ], strict=True)))  # fmt: skip
                print(rows[-1], flush=True)
    return rows


# ---- the page


def table(rows):
    by_room = collections.defaultdict(dict)
    for row in rows:
        by_room[row["routing"]][row["room"]] = row
    percent = lambda value: f"{100 * float(value):.1f} %"
    lines = []
    for name, rooms in by_room.items():
        cells = [percent(rooms[room][column]) for room in ROOMS for column in ("cached_share", "expected_share")]
        lines.append([name, *cells, percent(rooms["all"]["busiest_share"])])
    header = ["routing, three replicas", "room for all: found", "expected", "room for half: found", "expected", "requests at the busiest"]
    return report.markdown(header, lines)


def draw(rows):
    """Found and expected by replicas, each with room for half of the documents."""
    wanted = scenario.load("rag-shared-prefix", list(SETTINGS.items()))
    planned = plan(wanted, 1)
    popularity, own_blocks = popularity_of(wanted), own_blocks_of(planned)
    share = DOCUMENT_TOKENS / (sum(one.prompt_tokens for one in planned) / len(planned))
    plt = page.pyplot()
    figure, axes = plt.subplots(figsize=(6.4, 3.4))
    counts = range(1, 9)
    for aware, label, colour in ((True, "prefix-aware", report.BLUE), (False, "random or round robin", report.RED)):
        curve = [100 * share * expected_hits(popularity, len(planned), ROOMS["half"], own_blocks, n, aware) for n in counts]
        axes.plot(counts, curve, "-", color=colour, label=f"{label}, expected")
        found = [row for row in rows if row["room"] == "half" and (row["routing"].startswith("prefix") or row["replicas"] == "1") == aware]
        axes.plot([int(row["replicas"]) for row in found], [100 * float(row["cached_share"]) for row in found], "o", color=colour, label=f"{label}, found")
    axes.set(xlabel="replicas, each with room for half of the documents", ylabel="prompt tokens found, %", ylim=(0, 100))
    axes.legend(fontsize=8, loc="lower right")
    PLOT.write_text(page.svg(plt, figure) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--routers", help="bin folder of an environment with loadtest/requirements-routers.txt")
    parser.add_argument("--quire", default=os.environ.get("QUIRE_BUILD_DIR", str(ROOT / "build" / "release")) + "/quire")
    parser.add_argument("--update-docs", action="store_true", help="docs/routing.csv, the table and the plot; without --routers from the CSV as it is")
    args = parser.parse_args()
    if args.routers:
        rows = measure(args)
        if args.update_docs:
            with open(FIGURES, "w", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
    elif not args.update_docs:
        parser.error("expected --routers, or --update-docs")
    if args.update_docs:
        with open(FIGURES, newline="") as file:
            rows = list(csv.DictReader(file))
        body = f"<!-- table routing -->\n{table(rows)}\n<!-- end -->"
        PAGE.write_text(re.sub(r"<!-- table routing -->.*?<!-- end -->", lambda _: body, PAGE.read_text(), flags=re.S))
        draw(rows)


if __name__ == "__main__":
    main()
