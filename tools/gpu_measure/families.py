"""Serves tiny random checkpoints of the model families (tests/golden/family_checkpoints.py) on the device and on the CPU,
several at once, and compares their answers with log probabilities. In f32 both have the same bits. With a bf16 checkpoint
the device rounds the rows that matrices multiply to bf16, as the CPU does with --quantize w16a16: that may change log
probabilities by at most TIMES as much (root mean square), and SLACK.

Needs torch and transformers; families that this transformers does not have are left out and listed.
"""
import argparse
import concurrent.futures
import http.client
import json
import math
import os
import pathlib
import sys
import tempfile
import time

from serving import Server

TESTS = pathlib.Path(__file__).resolve().parents[2] / "tests"
sys.path += [str(TESTS / folder) for folder in ("golden", "support")]
VOCAB = 320
LENGTHS = (5, 40, 300, 17)
NUM_TOKENS = 24
TIMES, SLACK = 3.0, 0.02
LIMITS = ["--max-num-batched-tokens", "256", "--max-num-seqs", "8", "--max-model-len", "400", "--kv-cache-memory", "64MiB", "--log-level", "warning",
          "--speculative-config", json.dumps({"method": "ngram", "num_speculative_tokens": 2})]
SMALL = ["--max-num-batched-tokens", "16", "--max-num-seqs", "4", "--max-model-len", "64", "--kv-cache-memory", "16MiB", "--log-level", "warning"]


def ask(port, number, length, num_tokens):
    prompt = [3 + (104711 * (number + 1) + 613 * i * (i + number)) % (VOCAB - 3) for i in range(length)]
    drawn = {"temperature": 1.0, "seed": 7} if number % 2 else {"temperature": 0}
    body = {"prompt": prompt, "max_tokens": num_tokens, "ignore_eos": True, "logprobs": 3, "return_token_ids": True, **drawn}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    got = connection.getresponse()
    said = got.read().decode()
    if got.status != 200:
        raise RuntimeError(said[:300])
    choice = json.loads(said)["choices"][0]
    return choice["token_ids"], choice["logprobs"]["token_logprobs"], choice["logprobs"]["top_logprobs"]


def answers(quire, model, small, *flags):
    server = Server([quire, "serve", model, "--port", "0", "--threads", "1", *(SMALL if small else LIMITS), *flags])
    lengths, num_tokens = (LENGTHS[3:], 4) if small else (LENGTHS, NUM_TOKENS)
    try:
        with concurrent.futures.ThreadPoolExecutor(len(lengths)) as pool:
            return list(pool.map(lambda one: ask(server.port, one[0], one[1], num_tokens), enumerate(lengths)))
    finally:
        if code := server.stop():
            server.log.seek(0)
            raise RuntimeError(f"quire serve ended with {code}: " + server.log.read()[-800:])


def difference(some, others):
    """Root mean square of the differences of log probabilities, up to each answer's first other token."""
    squares = []
    for (tokens, numbers, _), (expected, wanted, _) in zip(some, others):
        for token, other, number, number_wanted in zip(tokens, expected, numbers, wanted):
            squares.append((number - number_wanted) ** 2)
            if token != other:
                break
    return math.sqrt(sum(squares) / len(squares))


def compare(quire, name, model, dtype, device, small, mixes):
    row = {"what": name, "type": dtype}
    try:
        there = answers(quire, model, small, "--device", device)
        here = answers(quire, model, small, "--device", "cpu")
        if dtype == "float32":
            return {**row, "ok": there == here, "difference": difference(there, here)}
        rounded = difference(answers(quire, model, small, "--device", "cpu", "--quantize", "w16a16"), here)
        differs = difference(there, here)
        slack = 1.0 if mixes else SLACK  # what is nearly a tie may choose another expert
        return {**row, "ok": differs <= TIMES * rounded + slack, "difference": differs, "by_rounding": rounded}
    except Exception as error:
        if "on the CPU alone" in str(error):
            return {**row, "ok": True, "refused": True}
        return {**row, "ok": False, "failed": f"{type(error).__name__}: {error}"[:600]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quire", type=pathlib.Path, required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", help="names of configurations, comma-separated")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin nothing new after so many")
    parser.add_argument("--tiny", action="store_true", help="short prompts, for the simulated device")
    args = parser.parse_args()
    began = time.monotonic()
    import transformers
    from family_checkpoints import CONFIGURATIONS, has_experts, write_checkpoint
    from tiny_model import byte_tokenizer

    names = args.only.split(",") if args.only else [*CONFIGURATIONS]
    rows, missing = [], []
    workers = max(1, (os.cpu_count() or 2) // 2)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(workers) as pool:
        futures = []
        for name in names:
            tiny, model = CONFIGURATIONS[name], pathlib.Path(folder) / name
            try:
                write_checkpoint(model, tiny)
            except Exception as error:  # a family or a key that this transformers does not know
                missing.append(f"{name}: {type(error).__name__}: {error}"[:120])
                continue
            (model / "tokenizer.json").write_text(json.dumps(byte_tokenizer(VOCAB)))
            if time.monotonic() - began > args.seconds:
                break
            futures.append(pool.submit(compare, args.quire, name, model, tiny.dtype, args.device, args.tiny, has_experts(tiny)))
        rows = [future.result() for future in futures]
    failed = sum(not row["ok"] for row in rows)
    print(json.dumps({"rows": rows, "transformers": transformers.__version__, "missing": missing, "all": len(rows) + len(missing) == len(names), "failed": failed}))
    raise SystemExit(failed != 0)


if __name__ == "__main__":
    main()
