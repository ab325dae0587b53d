"""What holds up a server's io thread: asks for what could, one kind after the other, and reads quire:io_turn_seconds between them.

    python loadtest/io_turns.py http://127.0.0.1:8000 [--rounds 20] [--admin http://127.0.0.1:8001]

Each row: how often it was asked, how many handlers that took, their time in all, and bounds of the longest. With --admin the metrics come from
there, and asking for them is in no figure. Answers have to be 200, or the status that a row names.
"""

import argparse
import http.client
import json
import re
import ssl
import urllib.parse

MILLION = 1_000_000


def generation(**fields):
    return "/v1/completions", json.dumps({"prompt": "Once upon a time", "max_tokens": 50, "ignore_eos": True, "temperature": 0} | fields)


def kinds(embeds):
    """what → (path, body or nothing, status)"""
    many = {"n": 128, "logprobs": 20}
    talk = {"messages": [{"role": "user", "content": "Once"}], "n": 128, "logprobs": True, "top_logprobs": 20, "max_tokens": 50, "ignore_eos": True}
    prompts = [[7 + i % 50] * 400 for i in range(32)]
    rows = {
        "nothing: /live": ("/live", None, 200),
        "/metrics": ("/metrics", None, 200),
        "/openapi.json": ("/openapi.json", None, 200),
        "a short answer": (*generation(), 200),
        "a stream": (*generation(stream=True), 200),
        "128 choices": (*generation(n=128), 200),
        "128 choices in a stream": (*generation(n=128, stream=True), 200),
        "128 choices with 20 likeliest": (*generation(**many), 200),
        "the same in a stream": (*generation(**many, stream=True), 200),
        "a chat of the same": ("/v1/chat/completions", json.dumps(talk), 200),
        "128 prompts": (*generation(prompt=["Once"] * 128, max_tokens=8), 200),
        "32 prompts of 400, told and scored": (*generation(prompt=prompts, echo=True, logprobs=20, max_tokens=1), 200),
        "and those in a stream": (*generation(prompt=prompts, echo=True, logprobs=20, max_tokens=1, stream=True), 200),
        "seven MiB of text": (*generation(prompt="word " * 1_400_000), 400),
        "a million ids": (*generation(prompt=[1] * MILLION), 400),
        "a body past the limit": (*generation(prompt="x" * (9 << 20)), 413),
    }
    if embeds:
        rows["128 embeddings"] = ("/v1/embeddings", json.dumps({"input": ["Once upon a time"] * 128}), 200)
        rows["2,048 embeddings"] = ("/v1/embeddings", json.dumps({"input": ["Once upon a time"] * 2048}), 200)
    return rows


class Server:
    def __init__(self, url):
        self.parts = urllib.parse.urlsplit(url)

    def ask(self, path, body=None):
        """(status, text), on a connection of its own."""
        if self.parts.scheme == "https":
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # it is one's own
            connection = http.client.HTTPSConnection(self.parts.hostname, self.parts.port, timeout=120, context=context)
        else:
            connection = http.client.HTTPConnection(self.parts.hostname, self.parts.port, timeout=120)
        try:
            try:
                connection.request("POST" if body else "GET", path, body, {"Content-Type": "application/json"} if body else {})
            except (BrokenPipeError, ConnectionResetError):
                pass  # it was refused before all of it was sent: the answer is there
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def turns(self):
        """upper bound → handlers that took no longer; and the sum of all"""
        text = self.ask("/metrics")[1]
        found = re.findall(r'^quire:io_turn_seconds_bucket\{.*le="([^"]+)".*\} (\S+)$', text, re.M)
        return {float(bound): int(float(count)) for bound, count in found}, float(re.search(r"^quire:io_turn_seconds_sum\{.*\} (\S+)$", text, re.M)[1])


def measure(server, metrics, path, body, status, rounds):
    (before, sum_before) = metrics.turns()
    for _ in range(rounds):
        said, text = server.ask(path, body)
        assert said == status, (path, said, text[:300])
    (after, sum_after) = metrics.turns()
    counts = {bound: after[bound] - before[bound] for bound in sorted(after)}
    bounds = list(counts)
    longest = next(bound for bound in bounds if counts[bound] == counts[bounds[-1]])
    past = counts[bounds[-1]] - counts[0.001]
    return counts[bounds[-1]], sum_after - sum_before, longest, past


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("--admin", help="where its /metrics are, if not there")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", help="kinds whose names have this in them")
    args = parser.parse_args()
    server, metrics = Server(args.url), Server(args.admin or args.url)
    embeds = server.ask("/v1/embeddings", json.dumps({"input": "a"}))[0] == 200
    print("| asked for | times | handlers | all of them, ms | longest, ms | past 1 ms |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    for what, (path, body, status) in kinds(embeds).items():
        if args.only and args.only not in what:
            continue
        handlers, took, longest, past = measure(server, metrics, path, body, status, args.rounds)
        print(f"| {what} | {args.rounds} | {handlers:,} | {took * 1e3:,.1f} | ≤ {longest * 1e3:g} | {past} |", flush=True)


if __name__ == "__main__":
    main()
