#!/usr/bin/env python3
"""What grammars that take long to compile cost others: times of short requests, alone and beside four costly ones at once.

    python loadtest/costly_grammars.py [--quire build/release/quire] [--rounds 5]

Starts `quire serve` with the built-in model. Each round sends requests one after the other for a second while nothing else
runs, and again while four grammars that need the whole limit of time are compiled; those are new ones in every round.
"""

import argparse
import concurrent.futures
import http.client
import json
import pathlib
import re
import statistics
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
KINDS = {
    "no grammar": {},
    "a choice, new each time": {"guided_regex": "(yes|no){%d}"},
}
COSTLY = "([ab]*a[ab]{16}|[cd]*c[cd]{16})x%d"


def post(port, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    begin = time.monotonic()
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    status = connection.getresponse()
    status.read()
    connection.close()
    return time.monotonic() - begin, status.status


def requests_for(port, fields, seconds, count):
    """Times of requests one after the other."""
    times, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        filled = {key: value % (2 + next(count) % 200) for key, value in fields.items()}
        taken, status = post(port, {"prompt": "Once upon a time", "max_tokens": 4, **filled})
        assert status == 200, status
        times.append(taken)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quire", default=ROOT / "build" / "release" / "quire")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    server = subprocess.Popen([args.quire, "serve", "--port", "0", "--log-level", "error"], stdout=subprocess.PIPE, text=True)
    port = next(int(match[1]) for match in (re.search(r"127\.0\.0\.1:(\d+)", line) for line in server.stdout) if match)
    count, numbers = iter(range(10**9)), iter(range(10**9))
    print("| others ask for | alone: median, ms | worst | beside four costly: median, ms | worst | a costly one, s |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    try:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for name, fields in KINDS.items():
                alone, beside, costly = [], [], []
                for _ in range(args.rounds):
                    alone += requests_for(port, fields, 1, count)
                    begun = [pool.submit(post, port, {"prompt": "Once", "guided_regex": COSTLY % next(numbers), "max_tokens": 1}) for _ in range(4)]
                    while not all(one.done() for one in begun):
                        beside += requests_for(port, fields, 0.01, count)
                    costly += [one.result()[0] for one in begun]
                row = [f"{statistics.median(alone) * 1e3:.1f}", f"{max(alone) * 1e3:.1f}", f"{statistics.median(beside) * 1e3:.1f}",
                       f"{max(beside) * 1e3:.1f}", f"{statistics.median(costly):.2f}"]  # fmt: skip
                print(f"| {name} | " + " | ".join(row) + " |", flush=True)
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
