#!/usr/bin/env python3
"""An open load against any OpenAI-compatible server: requests come when the scenario says, however slow the answers are.

    python loadtest/load.py chat --url http://127.0.0.1:8000 [--set arrivals.rate_per_s=8] [--json out.json] [--html out.html]
    python loadtest/load.py chat --compare http://127.0.0.1:8000 http://127.0.0.1:8001 --rounds 5

SCENARIO is a name of loadtest/scenarios or a file like those: docs/load-testing.md. It needs loadtest/requirements.txt.
Ends with 0, with 1 when an answer was wrong or failed (refused ones are no failure), with 2 when it could not begin.
"""

import argparse
import asyncio
import json
import math
import os
import pathlib
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from driver import compare, scenario, show  # noqa: E402
from driver.connection import target_of  # noqa: E402
from driver.drive import Drive  # noqa: E402
from driver.figures import summary  # noqa: E402
from driver.probes import Probes  # noqa: E402
from driver.prompts import Asker  # noqa: E402
from driver.schedule import plan  # noqa: E402


class CannotBegin(Exception):
    """The text says why."""


def arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="docs/load-testing.md has the rest.")
    parser.add_argument("scenario", nargs="?", help=f"{', '.join(scenario.names())}, or a YAML file")
    parser.add_argument("--url", help="URL of the server, with or without /v1")
    parser.add_argument("--compare", nargs=2, metavar=("URL_A", "URL_B"), help="two servers in turn, with ratios")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of --compare: each asks both servers, in alternating order (default 5)")
    parser.add_argument("--model", help="model to ask (default: the first in /v1/models)")
    parser.add_argument("--seed", type=int, default=1, help="seed of times, lengths and texts (default 1)")
    parser.add_argument("--start-at", type=float, metavar="SECONDS", help="Unix time to begin at, so that several clients begin together; needs --url")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="set a field of the scenario, by its path")
    parser.add_argument("--probe", action="append", default=[], metavar="PATH", help="also request /live, /metrics or a whole URL during the run")
    parser.add_argument("--probe-interval-s", type=float, default=0.05, help="seconds between two requests of a probe (default 0.05)")
    parser.add_argument("--json", metavar="FILE", help="file for all figures; - is standard output, without the table")
    parser.add_argument("--html", metavar="FILE", help="file for a report with plots")
    parser.add_argument("--schedule", action="store_true", help="print the planned requests and their times as JSON lines, and send none")
    parser.add_argument("--list", action="store_true", help="list the scenarios")
    args = parser.parse_args(argv)
    if not args.list and not args.scenario:
        parser.error("expected a scenario; --list names them")
    if args.scenario and not args.schedule and bool(args.url) == bool(args.compare):
        parser.error("expected either --url or --compare")
    if args.start_at is not None and (args.compare or not math.isfinite(args.start_at) or args.start_at < time.time()):
        parser.error(f"--start-at: {args.start_at:.0f} was given, expected a time to come (now: {time.time():.0f}), and --url")
    if not 1 <= args.rounds <= 100:
        parser.error(f"--rounds: {args.rounds} was given, expected 1 to 100")
    if not 0.001 <= args.probe_interval_s <= 60:
        parser.error(f"--probe-interval-s: {args.probe_interval_s:g} was given, expected 0.001 to 60")
    if any("=" not in one for one in args.set):
        parser.error("--set: expected FIELD=VALUE")
    return args


def first_model(url, api_key):
    """What /v1/models names first."""
    target = target_of(url)
    where = f"{'https' if target.secure else 'http'}://{target.authority}{target.path}/v1/models"
    request = urllib.request.Request(where, headers={"Authorization": f"Bearer {api_key}"} if api_key else {})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)["data"][0]["id"]
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        reason = getattr(error, "reason", None) or error
        raise CannotBegin(f"{where} names no model ({reason}): is the server there? --model names one without asking") from None


class Client:
    """Everything that stays the same from run to run."""

    def __init__(self, args, wanted):
        self.args, self.wanted = args, wanted
        self.api_key = os.environ.get("OPENAI_API_KEY", "")
        self.plan = plan(wanted, args.seed)
        self.models = {}

    def run(self, url, salt):
        """A summary."""
        if url not in self.models:
            self.models[url] = self.args.model or first_model(url, self.api_key)
        target = target_of(url)
        asker = Asker(self.wanted, target, self.models[url], salt, self.api_key)
        start_s = None if self.args.start_at is None else time.monotonic() + self.args.start_at - time.time()
        drive = Drive(self.wanted, self.plan, asker, target, progress if sys.stderr.isatty() else None, start_s)
        pages = [page if "://" in page else f"{'https' if target.secure else 'http'}://{target.authority}{page}" for page in self.args.probe]
        probes = Probes(pages, self.args.probe_interval_s) if pages else None
        try:
            run = asyncio.run(drive.drive())
        finally:
            found = probes.stop() if probes else {}
        run.probes = found
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)
        return summary(run) | {"url": url, "model": self.models[url], "seed": self.args.seed, "interrupted": run.interrupted}


def progress(seconds, sent, planned, in_flight):
    print(f"\r\033[K{seconds:.0f} s: {sent:,} of {planned:,} sent, {in_flight:,} in flight", end="", file=sys.stderr, flush=True)


def write(path, text):
    if path == "-":
        print(text)
    else:
        pathlib.Path(path).write_text(text + "\n", encoding="utf-8")


def failed(found):
    requests = found["requests"]
    return requests["wrong"] + requests["failed"] + requests["unfinished"] > 0 or found["interrupted"]


def measure(client, args, paint):
    found = client.run(args.url, str(args.seed))
    title = f"{client.wanted.name} against {args.url}, model {found['model']}, seed {args.seed}"
    if args.json != "-":
        print(show.run_text(found, title, paint))
    if args.json:
        write(args.json, json.dumps(found, indent=1))
    if args.html:
        from driver import page

        write(args.html, page.run_page(found, title))
    return failed(found)


def measure_both(client, args, paint):
    rounds = [[None, None] for _ in range(args.rounds)]
    for number, side in compare.turns(args.rounds):
        print(f"round {number + 1} of {args.rounds}: {'AB'[side]}", file=sys.stderr)
        rounds[number][side] = client.run(args.compare[side], f"{args.seed}/{number}")
    rows = compare.ratios(rounds)
    if args.json != "-":
        for number, pair in enumerate(rounds, 1):
            for letter, found in zip("AB", pair, strict=True):
                print(show.round_text(found, f"round {number}, {letter}", paint))
        print(show.compare_text(rows, args.compare, paint))
    if args.json:
        write(args.json, json.dumps({"urls": args.compare, "ratios": rows, "rounds": rounds}, indent=1))
    if args.html:
        from driver import page

        title = f"{client.wanted.name}: A {args.compare[0]} beside B {args.compare[1]}"
        write(args.html, page.compare_page(rows, rounds, args.compare, title))
    return any(failed(found) for pair in rounds for found in pair)


def main(argv=None):
    args = arguments(argv)
    if args.list:
        for name in scenario.names():
            print(f"{name:<20} {scenario.load(name).description}")
        return 0
    try:
        wanted = scenario.load(args.scenario, [one.split("=", 1) for one in args.set])
        if args.schedule:
            for one in plan(wanted, args.seed):
                print(json.dumps({"at_s": round(one.at_s, 6), "shared": one.shared, "own_tokens": one.own_tokens, "answer_tokens": one.answer_tokens}))
            return 0
        paint = show.painter(sys.stdout)
        client = Client(args, wanted)
        return int((measure_both if args.compare else measure)(client, args, paint))
    except (scenario.ScenarioError, CannotBegin, OSError, ValueError) as error:
        print(f"load.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
