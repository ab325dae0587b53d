"""Measures a server on the device under load over HTTP: closed loops of streams with different prompts, for several
numbers of streams. Also checks that answers, with their log probabilities, are the same alone and among the largest
number of streams."""
import argparse
import concurrent.futures
import http.client
import json
import multiprocessing
import os
import pathlib
import queue
import re
import subprocess
import tempfile
import threading
import time

PATIENCE_S = 200


class Server:
    def __init__(self, command):
        self.log = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.lines = []
        told = queue.Queue()
        threading.Thread(target=self.listen, args=(told,), daemon=True).start()
        self.port = told.get(timeout=PATIENCE_S)
        if self.port is None:
            self.log.seek(0)
            raise RuntimeError("quire serve: " + self.log.read()[-800:])

    def listen(self, told):
        for line in self.process.stdout:
            self.lines.append(line.strip())
            if match := re.search(r"ready in .*http://[^:]+:(\d+)", line):
                told.put(int(match[1]))
        told.put(None)

    def stop(self):
        self.process.terminate()
        return self.process.wait(timeout=60)


def stream(port, prompt, num_tokens):
    """Runs one streamed request. Returns the seconds to the first token and to the end, and the number of tokens."""
    body = {"prompt": prompt, "max_tokens": num_tokens, "temperature": 0, "ignore_eos": True, "stream": True}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    begin, first, tokens = time.perf_counter(), None, 0
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    if answer.status != 200:
        raise RuntimeError(answer.read().decode()[:300])
    for line in answer:
        if not line.startswith(b"data: {"):
            continue
        if line.startswith(b'data: {"error"'):
            raise RuntimeError(line.decode()[:300])
        first = first or time.perf_counter()
        tokens = tokens + 1
    connection.close()
    return first - begin, time.perf_counter() - begin, tokens


def answer(port, number, prompt_tokens, num_tokens, vocab):
    """Runs one request with a prompt that depends on `number`. Returns the choice, with its log probabilities."""
    prompt = [1 + (104711 * (number + 1) + 613 * i) % (vocab - 1) for i in range(prompt_tokens + 7 * number)]
    body = {"prompt": prompt, "max_tokens": num_tokens, "temperature": 0, "ignore_eos": True, "logprobs": 1}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    got = connection.getresponse()
    said = got.read().decode()
    if got.status != 200:
        raise RuntimeError(said[:300])
    return json.loads(said)["choices"][0]


def exactness(port, streams, sizes):
    """Compares the answers to the same prompts: one after the other without other load, and all at once under load."""
    asked = [(number, sizes["prompt_tokens"], sizes["num_tokens"], sizes["vocab"]) for number in range(4)]
    alone = [answer(port, *one) for one in asked]
    crowd, amid = threading.Thread(target=load, args=(port, streams), kwargs={**sizes, "rounds": 1}), [None] * len(asked)
    crowd.start()

    def ask(one):
        amid[one[0]] = answer(port, *one)

    threads = [threading.Thread(target=ask, args=(one,)) for one in asked]
    for thread in threads:
        thread.start()
    for thread in [*threads, crowd]:
        thread.join()
    different = sum(one != other for one, other in zip(alone, amid))
    return {"what": "answers amid others", "sequences": streams, "numbers": len(asked), "different": different, "ok": different == 0}


def loops(port, numbers, rounds, prompt_tokens, num_tokens, vocab):
    """Runs one closed loop per number. Returns the results of stream(), and the errors."""
    seen, wrong = [], []

    def loop(number):
        try:
            for turn in range(rounds):
                prompt = [1 + (7919 * number + 104729 * turn + 31 * i) % (vocab - 1) for i in range(prompt_tokens)]
                seen.append(stream(port, prompt, num_tokens))
        except Exception as error:  # of one stream; reported in the row
            wrong.append(f"{type(error).__name__}: {error}"[:300])

    threads = [threading.Thread(target=loop, args=(number,)) for number in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seen, wrong


def load(port, streams, rounds, prompt_tokens, num_tokens, vocab):
    """Runs `streams` closed loops in several processes: one cannot read the events of hundreds of streams in time."""
    count = min(streams, max(1, (os.cpu_count() or 2) - 2))
    with concurrent.futures.ProcessPoolExecutor(count, multiprocessing.get_context("spawn")) as processes:
        list(processes.map(abs, range(count)))  # starts the processes before the clock runs
        begin = time.perf_counter()
        parts = [processes.submit(loops, port, range(first, streams, count), rounds, prompt_tokens, num_tokens, vocab) for first in range(count)]
        results = [part.result() for part in parts]
        seconds = time.perf_counter() - begin
    seen = [one for part, _ in results for one in part]
    wrong = [one for _, part in results for one in part]
    row = {"what": "serving", "sequences": streams, "prompt_tokens": prompt_tokens, "answer_tokens": num_tokens, "wrong": wrong,
           "ok": not wrong and len(seen) == streams * rounds}
    if seen:
        firsts = sorted(one[0] for one in seen)
        row.update(tokens_per_s=len(seen) * num_tokens / seconds, first_token_s=firsts[len(firsts) // 2],
                   first_token_p99_s=firsts[int(0.99 * (len(firsts) - 1))])
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quire", type=pathlib.Path, required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--model")
    parser.add_argument("--tiny", action="store_true")
    args = parser.parse_args()
    sizes = dict(rounds=1, prompt_tokens=5, num_tokens=3, vocab=100) if args.tiny else dict(rounds=2, prompt_tokens=128, num_tokens=128, vocab=4000)
    limits = ["--max-num-batched-tokens", "16", "--max-num-seqs", "4"] if args.tiny else [
        "--max-num-batched-tokens", "2048", "--max-num-seqs", "256", "--max-model-len", "8192"]
    plain = ["--speculative-config", json.dumps({"method": "ngram", "num_speculative_tokens": 1})] if args.tiny else []
    began = time.perf_counter()
    server = Server([args.quire, "serve", *([args.model] if args.model else []), "--port", "0", "--device", args.device, *limits, *plain])
    ready_s = time.perf_counter() - began
    counts = [1, 2] if args.tiny else [1, 8, 64, 256]
    try:
        rows = [load(server.port, streams, **sizes) for streams in counts]
        if args.device != "null":  # its answers have no log probabilities
            rows.append(exactness(server.port, counts[-1], sizes))
    finally:
        code = server.stop()
    said = [line for line in server.lines if " on gpu-" in line or "memory" in line]
    failed = sum(not row["ok"] for row in rows) + (code != 0)
    print(json.dumps({"rows": rows, "ready_s": ready_s, "said": said, "failed": failed}))
    raise SystemExit(failed != 0)


if __name__ == "__main__":
    main()
