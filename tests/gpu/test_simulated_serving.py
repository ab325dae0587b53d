"""A server whose model runs through the GPU's ops, on the simulated device: the answers over HTTP are the library's."""
import concurrent.futures
import http.client
import json
import os
import pathlib
import queue
import re
import subprocess
import threading

import pytest

import tiny_model

pytest.importorskip("torch", reason="the answers are compared with transformers'")
pytest.importorskip("transformers", reason="the answers are compared with transformers'")

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUIRE = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", ROOT / "build" / "release")) / "quire-simulated"
PATIENCE_S = 600
# A block of the simulator is some hundred fibers: few rows make short steps.
SMALL = ["--max-num-batched-tokens", "16", "--max-num-seqs", "4"]
PROMPTS = [[5, 80, 33], [200, 9, 9, 41, 7, 120, 66, 3, 18, 99, 250, 34, 61, 2, 77, 140, 28, 90, 11], [1]]


class Server:
    def __init__(self, *args):
        self.process = subprocess.Popen([str(part) for part in (QUIRE, "serve", "--port", "0", "--threads", "1", *args)],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines, told = [], queue.Queue()
        threading.Thread(target=self.listen, args=(told,), daemon=True).start()
        self.port = told.get(timeout=PATIENCE_S)
        assert self.port, self.log

    @property
    def log(self):
        return "".join(self.lines)

    def listen(self, told):
        for line in self.process.stdout:
            self.lines.append(line)
            if match := re.search(r"ready in .*http://[^:]+:(\d+)", line):
                told.put(int(match[1]))
        told.put(None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        assert self.process.wait(timeout=PATIENCE_S) == 0, self.log

    def tokens(self, prompt, count, **fields):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        body = {"prompt": prompt, "max_tokens": count, "temperature": 0, "ignore_eos": True, "return_token_ids": True, **fields}
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode()
        assert answer.status == 200, text
        return json.loads(text)["choices"][0]["token_ids"]


def test_in_f32_the_answers_are_those_of_transformers_and_of_the_cpu(tmp_path):
    model = tiny_model.save(tmp_path)
    expected = [tiny_model.greedy(model, prompt, 8) for prompt in PROMPTS]
    with Server(tmp_path, "--device", "simulated", *SMALL) as gpu, Server(tmp_path, "--device", "cpu", *SMALL) as cpu:
        assert " on gpu-host-2/simulated" in gpu.log and " on cpu/" in cpu.log
        with concurrent.futures.ThreadPoolExecutor(len(PROMPTS)) as pool:
            together = list(pool.map(lambda prompt: gpu.tokens(prompt, 8), PROMPTS))
        assert together == expected
        drawn = dict(temperature=0.9, top_p=0.95, seed=11)
        assert gpu.tokens(PROMPTS[0], 8, **drawn) == cpu.tokens(PROMPTS[0], 8, **drawn)


def test_in_bf16_an_answer_is_the_same_alone_and_in_company(tmp_path):
    tiny_model.save(tmp_path, "bfloat16")
    with Server(tmp_path, "--device", "simulated", *SMALL) as gpu:
        alone = [gpu.tokens(prompt, 6) for prompt in PROMPTS]
        with concurrent.futures.ThreadPoolExecutor(len(PROMPTS)) as pool:
            together = list(pool.map(lambda prompt: gpu.tokens(prompt, 6), PROMPTS))
        assert together == alone


def test_the_cache_is_planned_of_what_a_step_leaves_free(tmp_path):
    tiny_model.save(tmp_path)
    with Server(tmp_path, "--device", "simulated", *SMALL) as gpu:
        line = next(line for line in gpu.lines if line.startswith("device memory: "))
        free, taken, kept = re.search(
            r"([\d.]+) GiB free after weights and a step of 16 rows, ([\d.]+) KiB of it for K and V; ([\d.]+) GiB stay free", line).groups()
        assert 7.9 < float(free) <= 8.0 and float(kept) == 1.5
        # Four sequences of 128 positions: layers, K and V, heads, dimensions, f32.
        assert float(taken) == 4 * 128 * 2 * 2 * 2 * 16 * 4 / 1024
    with Server(tmp_path, "--device", "simulated", *SMALL, "--kv-cache-memory", "128KiB") as gpu:
        assert "KV cache: 16 blocks of 16 tokens" in gpu.log


def test_two_ranks_answer_what_one_gpu_answers(tmp_path):
    model = tiny_model.save(tmp_path)
    expected = [tiny_model.greedy(model, prompt, 4) for prompt in PROMPTS]
    with Server(tmp_path, "--device", "simulated", "--tensor-parallel-size", "2", *SMALL) as ranks:
        assert " on gpu-host-2/simulated, 2 ranks" in ranks.log
        # Four sequences of 128 positions: layers, K and V, one head of two, dimensions, f32.
        taken = re.search(r"([\d.]+) KiB of it for K and V", ranks.log)[1]
        assert float(taken) == 4 * 128 * 2 * 2 * 1 * 16 * 4 / 1024
        with concurrent.futures.ThreadPoolExecutor(len(PROMPTS)) as pool:
            assert list(pool.map(lambda prompt: ranks.tokens(prompt, 4), PROMPTS)) == expected


def test_ranks_that_the_kv_heads_do_not_divide_by_are_refused_before_anything_is_packed(tmp_path):
    tiny_model.save(tmp_path)
    for command in (["serve", "--plan"], ["generate", "--prompt", "ab"]):
        done = subprocess.run([str(QUIRE), command[0], str(tmp_path), *command[1:], "--device", "simulated", "--tensor-parallel-size", "3"],
                              capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 2
        assert "--tensor-parallel-size 3 does not divide num_key_value_heads, 2 in this model: choose one of 1, 2" in done.stderr


@pytest.mark.parametrize("flag, value", [("--quantize", "w4a8"), ("--kv-cache-dtype", "int4")])
def test_weights_and_caches_of_four_bits_are_served(tmp_path, flag, value):
    tiny_model.save(tmp_path)
    done = subprocess.run([str(QUIRE), "generate", str(tmp_path), "--device", "simulated", "--prompt", "ab", "--max-tokens", "2", "--seed", "1",
                           flag, value], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr


def test_a_plan_counts_what_the_device_would_hold(tmp_path):
    tiny_model.save(tmp_path)
    done = subprocess.run([str(QUIRE), "serve", str(tmp_path), "--device", "simulated", "--plan", *SMALL], capture_output=True, text=True,
                          timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert "memory free now: 8.00 GiB" in done.stdout
    assert "device memory: " in done.stdout and "row buffers not yet subtracted" in done.stdout
    block = int(re.search(r"a block: .* \((\d+) bytes\)", done.stdout)[1])
    ranks = subprocess.run([str(QUIRE), "serve", str(tmp_path), "--device", "simulated", "--plan", "--tensor-parallel-size", "2", *SMALL],
                           capture_output=True, text=True, timeout=PATIENCE_S)
    assert "tensor parallel: 2 devices; all sizes below are per device" in ranks.stdout, ranks.stderr
    assert f"({block // 2} bytes)" in ranks.stdout


def test_preempted_sequences_move_to_main_memory_and_back_and_say_the_same(tmp_path):
    tiny_model.save(tmp_path, "bfloat16")
    prompts = [[5 + i, 80, 33 + i] for i in range(4)]

    def told(gpu, path):
        connection = http.client.HTTPConnection("127.0.0.1", gpu.port, timeout=PATIENCE_S)
        connection.request("GET", path)
        return connection.getresponse().read().decode()

    def answers(gpu):
        with concurrent.futures.ThreadPoolExecutor(len(prompts)) as pool:
            return list(pool.map(lambda prompt: gpu.tokens(prompt, 40), prompts))

    def preemptions(gpu, how):
        return sum(float(line.split()[-1]) for line in told(gpu, "/metrics").splitlines()
                   if "preemptions" in line and f'"{how}"' in line and not line.startswith("#"))

    few_blocks = ["--device", "simulated", *SMALL, "--max-model-len", "64", "--prefix-caching", "off"]
    with Server(tmp_path, *few_blocks) as gpu:
        block = int(re.search(r"(\d+) bytes a token", gpu.log)[1]) * 16
        roomy = answers(gpu)
        assert preemptions(gpu, "swap") == preemptions(gpu, "recompute") == 0
    few_blocks += ["--kv-cache-memory", f"{6 * block}B"]
    with Server(tmp_path, *few_blocks, "--swap-space", f"{12 * block}B") as gpu:
        assert "swap: 12 blocks in " in gpu.log
        assert answers(gpu) == roomy
        assert preemptions(gpu, "swap") > 0
    with Server(tmp_path, *few_blocks) as gpu:
        assert answers(gpu) == roomy
        assert preemptions(gpu, "swap") == 0 < preemptions(gpu, "recompute")


@pytest.mark.parametrize("flags, expected", [
    (["--device", "cpu", "--swap-space", "1MiB"], "on the CPU the KV cache is in main memory already"),
    (["--device", "simulated", "--swap-space", "1B"], "--swap-space 1 B: one block of the KV cache takes"),
    (["--device", "simulated", "--swap-space", "1024TiB"], "of main memory is free; lower it"),
])
def test_swap_space_that_cannot_be_is_refused_before_weights_are_packed(tmp_path, flags, expected):
    tiny_model.save(tmp_path, "bfloat16")
    for plan in ([], ["--plan"]):
        done = subprocess.run([str(QUIRE), "serve", str(tmp_path), *flags, *plan], capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 2 and expected in done.stderr, done.stderr
