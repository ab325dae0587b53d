#!/usr/bin/env python3
"""Every drafter on the built-in model, one after another: the table in docs/speculation.md.

    python loadtest/compare_drafters.py [--quire build/release/quire] [--rounds 3] [--update-docs]

The same twelve prompts at temperatures 0 and 1, one at a time, with as many guesses as there are (`adaptive` off). Each row is
measured by turns with a server that guesses nothing. `alpha` is the part of first guesses that were right, `tau` the tokens of a
step, `speed` the tokens a second over the other server's. Every answer is compared with that server's: one that differs ends it.
"""

import argparse
import contextlib
import json
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "speculation.md"
PROMPTS = [
    "Once upon a time there was a little girl", "One day a dog and a cat", "The old man lived near the sea and",
    "Tom had a red ball. He", "It was raining, so Lily", "A list: one, two, three, one, two, three, one, two,",
    "The bird wanted to fly, but", "Mia and Ben went to the park. They", "Once there was a big bear who",
    "The sun was warm and the", '{"name": "Tom", "age": 3}, {"name": "Lily", "age": 4}, {"name":', "Grandma made a cake for",
]
MODEL = {"model": "models/stories"}
ALONE = {"suffix_decoding_max_cached_tokens": 0}  # else later rounds would find the answers of the first
METHODS = [
    ("`eagle3`, chain of 4", {"method": "eagle3"}),
    ("`eagle3`, tree of 8", {"method": "eagle3", "num_speculative_tokens": 8, "topk": 4}),
    ("`eagle3`, tree of 16", {"method": "eagle3", "num_speculative_tokens": 16, "topk": 4}),
    ("`hybrid`, own text alone", {"method": "hybrid", **ALONE}),
    ("`ngram`", {"method": "ngram"}),
    ("`suffix`, own text alone", {"method": "suffix", **ALONE}),
    ("`lookahead`", {"method": "lookahead"}),
    ("`lookahead`, 32 guesses", {"method": "lookahead", "num_speculative_tokens": 32}),
    ("`lookahead`, window of 7", {"method": "lookahead", "window": 7}),
    ("`layer_skip`, 3 of 6 layers", {"method": "layer_skip", "exit_layer": 3}),
    ("`draft_verify`", {"method": "draft_verify"}),
    ("`magicdec`, 16 + 32", {"method": "magicdec", "sinks": 16, "window": 32}),
    ("`draft_model`, the target itself", {"method": "draft_model", **MODEL}),
    ("`specinfer`, twice the target", {"method": "specinfer", "model": ["models/stories", "models/stories"]}),
    ("`triforce`, over the target", {"method": "triforce", "sinks": 16, "window": 32, **MODEL}),
]


@contextlib.contextmanager
def server(quire, config):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [quire, "serve", "--host", "127.0.0.1", "--port", str(port), "--speculative-config", json.dumps(config)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    url = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(url + "/ready", timeout=1).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > until:
                    sys.exit(f"{config}: the server did not start: {process.stderr.read()[-300:]}")
                time.sleep(0.05)
        yield url
    finally:
        process.terminate()
        process.wait()


def answers(url, temperature):
    """All texts, and the seconds they took."""
    texts, seconds = [], 0.0
    for prompt in PROMPTS:
        body = {"model": "stories", "prompt": prompt, "max_tokens": 160, "temperature": temperature, "seed": 7, "ignore_eos": True}
        request = urllib.request.Request(url + "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
        began = time.perf_counter()
        with urllib.request.urlopen(request, timeout=120) as answer:
            texts.append(json.load(answer)["choices"][0]["text"])
        seconds += time.perf_counter() - began
    return texts, seconds


def counts(url):
    with urllib.request.urlopen(url + "/metrics") as page:
        text = page.read().decode()

    def value(name, label=""):
        found = re.search(rf"^vllm:spec_decode_{name}_total\{{[^}}]*{label}[^}}]*\}} (\S+)", text, re.M)
        return float(found.group(1)) if found else 0.0

    return value("num_drafts"), value("num_accepted_tokens"), value("num_accepted_tokens_per_pos", 'position="0"')


def row(quire, name, config, rounds):
    cells = [name]
    with server(quire, {"method": "none"}) as plain, server(quire, {"adaptive": False, **config}) as guessing:
        before = (0.0, 0.0, 0.0)
        for temperature in (0.0, 1.0):
            ratios = []
            for _ in range(rounds):
                expected, plain_s = answers(plain, temperature)
                got, seconds = answers(guessing, temperature)
                if got != expected:
                    sys.exit(f"{name}: an answer differs at temperature {temperature}")
                ratios.append(plain_s / seconds)
            after = counts(guessing)
            drafts, taken, first = (b - a for a, b in zip(before, after, strict=True))
            before = after
            drafts = max(drafts, 1.0)
            cells += [f"{first / drafts:.2f}", f"{1 + taken / drafts:.2f}", f"{statistics.median(ratios):.2f}"]
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quire", default=str(ROOT / "build" / "release" / "quire"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--update-docs", action="store_true")
    arguments = parser.parse_args()
    table = ["| drafter | alpha, T = 0 | tau | speed | alpha, T = 1 | tau | speed |", "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    print("\n".join(table), flush=True)
    for name, config in METHODS:
        table.append(row(arguments.quire, name, config, arguments.rounds))
        print(table[-1], flush=True)
    if arguments.update_docs:
        page = PAGE.read_text()
        body = "<!-- table drafters -->\n" + "\n".join(table) + "\n<!-- end -->"
        PAGE.write_text(re.sub(r"<!-- table drafters -->.*?<!-- end -->", lambda _: body, page, flags=re.S))


if __name__ == "__main__":
    main()
