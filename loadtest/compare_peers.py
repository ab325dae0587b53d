#!/usr/bin/env python3
"""quire beside llama.cpp and vLLM on this machine: figures in docs/peers.csv, tables and a plot in docs/performance.md.

    python loadtest/compare_peers.py [--shapes 135m,0.6b,1b] [--cases decode,prefill,prefix,front] [--peers bf16,q8_0,q4_0]
    python loadtest/compare_peers.py --llama-cpp DIR --files Q4_K_M,Q8_0    # the same GGUF file for both; DIR: llama_cpp_build.py

It needs loadtest/requirements-peers.txt, or --install. Checkpoints with random weights are made in --work, once. Servers run one pair
at a time, on the loopback address; `quire bench --mode compare` puts both under the same load by turns. A peer that is not
installed, or does not start, gets a row that says so and no figure. Let nothing else run: llama.cpp's threads spin, and one
more busy process takes four fifths of its speed.
"""

import argparse
import csv
import dataclasses
import importlib.util
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import venv

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "performance.md"
FIGURES = ROOT / "docs" / "peers.csv"
PLOT = ROOT / "docs" / "peers.svg"
READY_TIMEOUT_S = 600

sys.path.insert(0, str(ROOT / "loadtest"))
import checkpoints  # noqa: E402  (without numpy, too: --install brings it)


@dataclasses.dataclass(frozen=True)
class Case:
    """A load: streams (a measurement for each), tokens of prompts and answers, requests of a measurement."""

    streams: tuple
    prompt: int
    answer: int
    requests: int = 0  # 0: one a stream, at least four
    shared: int = 0

    @property
    def length(self):
        return self.prompt + self.answer


CASES = {
    "decode": [Case((1, 8, 32), 128, 64)],
    "prefill": [Case((1,), 512, 1, requests=2), Case((1,), 2048, 1, requests=2)],
    "prefix": [Case((1,), 1824, 8, requests=2, shared=1800)],
    "front": [Case((64, 256, 1000), 16, 32)],  # of the tiny shape, whatever --shapes says
}
COLUMNS = [
    "shape", "case", "streams", "prompt_tokens", "answer_tokens", "peer", "status", "quire_tokens_per_s", "peer_tokens_per_s",
    "tokens_per_s_ratio", "quire_ttft_p50_s", "peer_ttft_p50_s", "ttft_p50_ratio", "quire_gap_p50_s", "peer_gap_p50_s",
    "gap_p50_ratio", "quire_gap_p99_s", "peer_gap_p99_s", "gap_p99_ratio", "quire_first_ttft_s", "peer_first_ttft_s",
    "quire_ready_s", "peer_ready_s", "quire_rss_mib", "peer_rss_mib", "requests", "quire_bad", "peer_bad", "quire_changed",
    "peer_changed", "quire_why", "peer_why", "client_cpu",
]  # fmt: skip


# ---- servers


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    """A process that answers /v1/models, in a session of its own."""

    def __init__(self, command, port, log, env=None, favoured=False):
        self.url = f"http://127.0.0.1:{port}"
        self.log = log
        start = time.monotonic()

        def favour():
            # Where the kernel groups processes by session, niceness counts inside a session alone.
            with open("/proc/self/autogroup", "w") as file:
                file.write("-19")

        self.process = subprocess.Popen(
            command, stdout=open(log, "wb"), stderr=subprocess.STDOUT, start_new_session=True,
            env=os.environ | (env or {}), preexec_fn=favour if favoured else None,
        )  # fmt: skip
        while True:
            if self.process.poll() is not None:
                raise RuntimeError(f"ended with {self.process.returncode}: {self.last_line()}")
            try:
                with urllib.request.urlopen(self.url + "/v1/models", timeout=5):
                    break
            except (urllib.error.URLError, OSError):
                if time.monotonic() - start > READY_TIMEOUT_S:
                    self.stop()
                    raise RuntimeError("not ready in time: " + self.last_line()) from None
                time.sleep(0.005)
        self.ready_s = time.monotonic() - start

    def last_line(self):
        lines = [line for line in pathlib.Path(self.log).read_text(errors="replace").splitlines() if line.strip()]
        return lines[-1][:160] if lines else "it said nothing"

    def rss_mib(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) / 1024

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def quire_command(args, directory, case, port, bits):
    command = [str(args.quire), "serve", str(directory), "--port", str(port), "--max-num-seqs", str(max(case.streams)),
               "--max-num-batched-tokens", str(max(512, *case.streams)), "--max-model-len", str(case.length),
               "--threads", str(args.threads), "--log-level", "error"]  # fmt: skip
    if bits in args.files:
        command[2] = str(file_of(args, directory.name, bits))
    elif bits != "bf16":  # products as llama.cpp has them: integers times integers
        command += ["--quantize", {"q8_0": "w8a8", "q4_0": "w4a8"}.get(bits, bits)]
    return command + ["--packed-cache", str(directory)]


def llama_command(args, directory, case, port, bits):
    slots = min(max(case.streams), 256)  # as many as it was ever measured with
    slot_tokens = -(-case.length // 256) * 256
    command = [sys.executable, str(ROOT / "loadtest" / "llama_cpp_server.py"), str(directory / f"{'bf16' if bits == 'w16a16' else bits}.gguf"), "--port",
               str(port), "--threads", str(args.threads), "--slots", str(slots), "--slot-tokens", str(slot_tokens)]  # fmt: skip
    return command + (["--prompt-cache"] if case.shared else [])


def file_of(args, shape, kind):
    """A GGUF file of the shape's weights, by llama.cpp's quantiser."""
    path = args.work / shape / f"{kind}.gguf"
    if not path.exists():
        subprocess.run([args.llama_cpp / "bin/llama-quantize", args.work / shape / "bf16.gguf", path, kind, str(args.threads)], check=True,
                       stdout=sys.stderr)  # fmt: skip
    return path


def native_llama_command(args, directory, case, port, kind):
    """llama.cpp's server, built for this machine."""
    slots = min(max(case.streams), 256)
    command = [str(args.llama_cpp / "bin/llama-server"), "-m", str(file_of(args, directory.name, kind)), "--host", "127.0.0.1", "--port", str(port),
               "-t", str(args.threads), "-tb", str(args.threads), "-np", str(slots), "-c", str(slots * -(-case.length // 256) * 256), "-b", "512",
               "-ub", "512"]  # fmt: skip
    return command + ([] if case.shared else ["--no-cache-prompt"])


def vllm_command(args, directory, case, port, dtype):
    return [str(args.vllm_python), "-m", "vllm.entrypoints.openai.api_server", "--model", str(directory), "--port", str(port),
            "--host", "127.0.0.1", "--dtype", dtype, "--max-num-seqs", str(max(case.streams)), "--max-model-len",
            str(max(4096, case.length)), "--enable-prefix-caching"]  # fmt: skip


def vllm_environment(args):
    preload = {"LD_PRELOAD": args.vllm_preload} if args.vllm_preload else {}
    return {"VLLM_CPU_KVCACHE_SPACE": "4", "VLLM_CPU_OMP_THREADS_BIND": f"0-{args.threads - 1}"} | preload


def peers_of(args):
    """(name, bits of quire's weights, command, environment, why it cannot be measured)."""
    wants_llama = None if importlib.util.find_spec("xllamacpp") else "xllamacpp is not installed"
    # Both peers round activations to bf16 beside weights in bf16; quire does where it is asked to.
    beside_bf16 = [("", "bf16")] + [(f", quire {kind}", kind) for kind in args.quire_bf16]
    for kind in () if args.files else args.peers:
        for note, bits in beside_bf16 if kind == "bf16" else [("", kind)]:
            yield f"llama.cpp {kind}{note}", bits, llama_command, {}, wants_llama
    for kind in args.files:
        yield f"llama.cpp {kind}, native, same file", kind, native_llama_command, {}, None if args.llama_cpp else "give --llama-cpp"
    missing = None if args.vllm_python else "vLLM is not installed: give --vllm-python"
    for dtype in () if args.files else args.vllm_dtypes:
        command = lambda args, directory, case, port, bits, dtype=dtype: vllm_command(args, directory, case, port, dtype)
        for note, bits in beside_bf16 if dtype == "bfloat16" else [("", "bf16")]:
            yield f"vLLM {dtype}{note}", bits, command, vllm_environment(args), missing


# ---- one pair


def compare(args, case, ours, theirs):
    command = [str(args.quire), "bench", "--mode", "compare", "--json", "--url", ours.url, "--url", theirs.url, "--runs",
               str(args.runs), "--streams", ",".join(map(str, case.streams)), "--prompt-tokens", str(case.prompt),
               "--answer-tokens", str(case.answer), "--shared-tokens", str(case.shared)]  # fmt: skip
    if case.requests:
        command += ["--requests", str(case.requests)]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout)


def rows_of(report, ours, theirs, fixed):
    """CSV rows of a comparison: ours is its first server."""
    for row in report["rows"]:
        quire, peer = row["servers"]
        out = fixed | {
            "streams": row["streams"], "status": "measured", "tokens_per_s_ratio": row["ratios"]["tokens_per_s"],
            "ttft_p50_ratio": row["ratios"]["ttft_p50_s"], "gap_p50_ratio": row["ratios"]["gap_p50_s"],
            "gap_p99_ratio": row["ratios"]["gap_p99_s"], "requests": quire["requests"], "client_cpu": peer["client_cpu"],
        }  # fmt: skip
        for name, server, run in (("quire", quire, ours), ("peer", peer, theirs)):
            for key in ("tokens_per_s", "ttft_p50_s", "gap_p50_s", "gap_p99_s", "first_ttft_s"):
                out[f"{name}_{key}"] = server[key]
            out[f"{name}_why"] = server.get("why", "")
            out[f"{name}_bad"] = server["failed"] + server["wrong"]
            out[f"{name}_changed"] = f"{server['changed']} of {server['asked_again']}"
            out[f"{name}_ready_s"], out[f"{name}_rss_mib"] = run.ready_s, run.rss_mib()
        yield out


def measure(args, shape, name, case, peer):
    """CSV rows, one for each number of streams, as they come: both servers stay for all of them."""
    title, bits, command, env, missing = peer
    fixed = {"shape": shape, "case": name, "prompt_tokens": case.prompt, "answer_tokens": case.answer, "peer": title}
    running = []

    def start(make, extra):
        port = free_port()
        log = args.work / f"{make.__name__}.log"
        return Server(make(args, args.work / shape, case, port, bits), port, log, extra, args.own_the_machine)

    try:
        for make, extra in () if missing else ((quire_command, {}), (command, env)):
            try:
                if name == "decode" and not title.startswith("vLLM"):
                    start(make, extra).stop()  # the times to ready are those of second starts
                running.append(start(make, extra))
            except RuntimeError as error:
                missing = f"not measured: {error}"
                break
        for streams in case.streams:
            if args.streams and streams not in args.streams:
                continue
            if missing:
                yield fixed | {"streams": streams, "status": missing}
                continue
            try:
                yield from rows_of(compare(args, dataclasses.replace(case, streams=(streams,)), *running), *running, fixed)
            except RuntimeError as error:
                yield fixed | {"streams": streams, "status": f"not measured: {error}"}
    finally:
        for server in running:
            server.stop()


def make_checkpoints(args, shape):
    directory = args.work / shape
    config = checkpoints.SHAPES[shape]
    if not (directory / "model.safetensors").exists():
        checkpoints.write_directory(config, directory)
    for kind in ["bf16"] if args.files else args.peers:
        path = directory / f"{kind}.gguf"
        if not path.exists() and importlib.util.find_spec("gguf"):
            checkpoints.write_gguf(config, path.with_suffix(".part"), kind)
            path.with_suffix(".part").rename(path)


# ---- what is written


def table(rows):
    """Markdown: a line for each figure row, ratios over 1 where quire is ahead."""
    header = ["shape, load", "streams", "peer", "tokens/s, quire", "tokens/s, peer", "ratio", "TTFT p50, ms", "ratio",
              "gap p50, ms", "ratio", "gap p99, ms", "ratio", "failed or wrong"]  # fmt: skip
    lines = ["| " + " | ".join(header) + " |", "| --- | ---: | --- |" + " ---: |" * 10]
    number = lambda row, key, scale=1, digits=1: f"{float(row[key]) * scale:,.{digits}f}"
    pair = lambda row, key: f"{number(row, 'quire_' + key, 1e3)} / {number(row, 'peer_' + key, 1e3)}"
    for row in rows:
        load = f"{row['shape']}, {row['case']} {row['prompt_tokens']} + {row['answer_tokens']}"
        if row["status"] != "measured":
            lines.append(f"| {load} | {row['streams']} | {row['peer']} | {row['status']} |" + " |" * 9)
            continue
        cells = [load, str(row["streams"]), row["peer"], number(row, "quire_tokens_per_s"), number(row, "peer_tokens_per_s"),
                 number(row, "tokens_per_s_ratio", 1, 2) + "×", pair(row, "ttft_p50_s"), number(row, "ttft_p50_ratio", 1, 2) + "×",
                 pair(row, "gap_p50_s"), number(row, "gap_p50_ratio", 1, 2) + "×", pair(row, "gap_p99_s"),
                 number(row, "gap_p99_ratio", 1, 2) + "×", f"{row['quire_bad']} / {row['peer_bad']}"]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def servers_table(rows):
    """Markdown: a line for each pair of servers of the decode case, of their start and their memory under load."""
    lines = ["| shape | peer | ready, s, quire | peer | ratio | resident, MiB, quire | peer | ratio |", "| --- | --- |" + " ---: |" * 6]
    seen = set()
    for row in rows:
        if row["status"] != "measured" or row["case"] != "decode" or (row["shape"], row["peer"]) in seen:
            continue
        seen.add((row["shape"], row["peer"]))
        cells = [row["shape"], row["peer"]]
        for key, digits in (("ready_s", 2), ("rss_mib", 0)):
            ours, theirs = float(row["quire_" + key]), float(row["peer_" + key])
            cells += [f"{ours:,.{digits}f}", f"{theirs:,.{digits}f}", f"{theirs / ours:.2f}×"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def with_table(page, rows):
    """The page with its tables of peers made anew; the text around them is people's."""
    begin, end = "<!-- table peers -->\n", "\n<!-- end -->"
    before, rest = page.split(begin)
    image = "\n\n![Tokens per second, quire over each peer](peers.svg)" if PLOT.exists() else ""
    return before + begin + table(rows) + "\n\n" + servers_table(rows) + image + end + rest.split(end, 1)[1]


def read_rows(path=FIGURES):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def write_rows(rows, path=FIGURES):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()})


def plot(rows, path=PLOT):
    """Ratio of tokens per second, a bar for each measured row."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams.update({"svg.hashsalt": "quire", "font.size": 8})
    shown = [row for row in rows if row["status"] == "measured"]
    names = [f"{row['shape']}, {row['case']} {row['prompt_tokens']}, {row['streams']} str., {row['peer']}" for row in shown]
    figure, axes = plt.subplots(figsize=(7, 0.6 + 0.22 * len(shown)), layout="constrained")
    axes.barh(range(len(shown)), [float(row["tokens_per_s_ratio"]) for row in shown], color="#0072B2")
    axes.axvline(1, color="#555555", linewidth=0.8)
    axes.set_yticks(range(len(shown)), names)
    axes.invert_yaxis()
    axes.set_xlabel("tokens per second, quire over the peer")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def arguments(argv=None):
    names = lambda known: lambda text: [one if one in known else parser.error(f"{one}: expected {', '.join(known)}") for one in text.split(",")]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    build = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", ROOT / "build" / "release"))
    parser.add_argument("--quire", type=pathlib.Path, default=build / "quire")
    parser.add_argument("--shapes", type=names(list(checkpoints.SHAPES)), default=["135m"], help="135m, 0.6b, 1b")
    parser.add_argument("--cases", type=names(list(CASES)), default=list(CASES))
    parser.add_argument("--peers", type=names(checkpoints.GGUF_TYPES), default=checkpoints.GGUF_TYPES, help="GGUF types")
    parser.add_argument("--files", type=lambda text: text.split(","), default=[], help="types of GGUF files that both serve, such as Q4_K_M")
    parser.add_argument("--llama-cpp", type=pathlib.Path, help="folder of llama_cpp_build.py: its server and quantiser")
    parser.add_argument("--quire-bf16", type=names(["w16a16"]), default=[], help="beside peers in bf16 also so: w16a16")
    parser.add_argument("--streams", type=lambda text: [int(one) for one in text.split(",")], help="of the cases', only these")
    parser.add_argument("--vllm-python", type=pathlib.Path, help="a Python that has vllm-cpu 0.32.0")
    parser.add_argument("--vllm-dtypes", type=names(["bfloat16", "float32"]), default=["bfloat16", "float32"])
    parser.add_argument("--vllm-preload", help="LD_PRELOAD of vLLM: it wants libiomp5 and tcmalloc")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--runs", type=int, default=3, help="alternations of each measurement; 3 at least")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / "quire-peers")
    parser.add_argument("--install", action="store_true", help="packages go into an environment in --work first")
    parser.add_argument("--own-the-machine", action="store_true", help="servers go before every other session (root)")
    parser.add_argument("--csv", type=pathlib.Path, default=FIGURES)
    parser.add_argument("--update-docs", action="store_true", help="the table in docs/performance.md, and its plot")
    parser.add_argument("--tables-only", action="store_true", help="measure nothing; make them of --csv")
    return parser.parse_args(argv)


def install(work):
    """Goes on in an environment of its own that has the requirements."""
    python = work / "venv" / "bin" / "python"
    if not python.exists():
        venv.create(work / "venv", with_pip=True)
    requirements = ROOT / "loadtest" / "requirements-peers.txt"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", requirements], check=True, stdout=sys.stderr)
    os.execv(python, [python, __file__, *(word for word in sys.argv[1:] if word != "--install")])


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # servers are stopped then, too
    args = arguments()
    if args.install:
        install(args.work)
    if not args.tables_only:
        args.work.mkdir(parents=True, exist_ok=True)
        rows = []
        for name in args.cases:
            for shape in ["tiny"] if name == "front" else args.shapes:
                make_checkpoints(args, shape)
                for case in CASES[name]:
                    for peer in peers_of(args):
                        print(f"{shape}, {name} {case.prompt} + {case.answer}, {peer[0]}", file=sys.stderr, flush=True)
                        for row in measure(args, shape, name, case, peer):
                            rows.append(row)
                            write_rows(rows, args.csv)
    rows = read_rows(args.csv)
    print(table(rows), servers_table(rows), sep="\n\n")
    if args.update_docs or args.tables_only:
        if args.csv == FIGURES:
            plot(rows)
        PAGE.write_text(with_table(PAGE.read_text(), rows))


if __name__ == "__main__":
    main()
