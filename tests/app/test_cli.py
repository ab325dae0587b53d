"""The binary as a user meets it: exit codes, messages, generate, inspect, bench, and a server's life."""

import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUIRE = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", ROOT / "build" / "release")) / "quire"
# The settings of whoever runs the tests are not the tests'.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("QUIRE_")}


def quire(*args, env=None, timeout=120):
    return subprocess.run(
        [str(QUIRE), *args], capture_output=True, text=True, timeout=timeout, env=ENVIRONMENT | (env or {})
    )


class Server:
    """`quire serve` on a free port, once its ready line is there."""

    def __init__(self, *args, env=None):
        self.process = subprocess.Popen(
            [str(QUIRE), "serve", "--port", "0", "--threads", "1", *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT | (env or {}),
        )
        self.said = []
        for line in self.process.stdout:
            self.said.append(line.rstrip("\n"))
            if line.startswith("  curl "):
                break
        self.url = re.search(r"http://\S+", "\n".join(self.said)).group(0)
        self.port = int(self.url.rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate(timeout=10)

    def end(self, *signals, timeout=30):
        for number in signals:
            self.process.send_signal(number)
            time.sleep(0.3)
        out, err = self.process.communicate(timeout=timeout)
        return self.process.returncode, out, err

    def status(self, path):
        try:
            with urllib.request.urlopen(self.url + path, timeout=10) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def complete(self, **fields):
        body = json.dumps({"model": "stories", "prompt": "Once upon a time", "max_tokens": 8} | fields).encode()
        request = urllib.request.Request(
            self.url + "/v1/completions", data=body, headers={"Content-Type": "application/json"}
        )
        return urllib.request.urlopen(request, timeout=60)


# ---- help, version, exit codes


def test_help_and_version_exit_0():
    for args in (["--help"], ["serve", "--help"], ["generate", "--help"], ["bench", "--help"], ["inspect", "-h"]):
        result = quire(*args)
        assert result.returncode == 0 and "Usage: quire" in result.stdout, args
        assert "--" in result.stdout and result.stderr == ""
    assert re.fullmatch(r"quire \d+\.\d+\.\d+\n", quire("--version").stdout)


def test_a_command_is_needed():
    result = quire()
    assert result.returncode == 2 and "serve, generate, bench or inspect" in result.stderr


def test_all_problems_are_listed_at_once():
    result = quire("serve", "--prot", "1", "--block-size", "17", env={"QUIRE_MAX_NUM_SEQS": "many"})
    assert result.returncode == 2 and result.stdout == ""
    for part in ("3 problems", "did you mean --port?", "multiple of 16", "QUIRE_MAX_NUM_SEQS 'many'"):
        assert part in result.stderr


def test_a_model_that_is_not_there_exits_2_at_once_and_says_what_to_do():
    for command in (["serve"], ["generate", "--prompt", "x"], ["inspect"], ["bench"]):
        start = time.monotonic()
        result = quire(*command, "someone/some-model")
        assert time.monotonic() - start < 1
        assert result.returncode == 2
        assert "there is no such directory" in result.stderr and "leave MODEL out" in result.stderr


def test_a_directory_without_a_model_is_refused_by_file_name(tmp_path):
    result = quire("serve", str(tmp_path))
    assert result.returncode == 2 and "config.json" in result.stderr


def test_what_the_small_files_say_is_refused_before_the_weights_are_looked_at(tmp_path):
    model = tmp_path / "model"
    shutil.copytree(ROOT / "models" / "stories", model)
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"num_hidden_layers": config["num_hidden_layers"] + 1}))
    command = ["generate", str(model), "--prompt", "x"]
    assert "missing" in quire(*command).stderr  # of the weights
    assert "this model goes up to" in quire(*command, "--max-model-len", "16M").stderr
    too_small = quire(*command, "--kv-cache-memory", "1MiB", "--max-model-len", "512")
    assert "--kv-cache-memory 1.0 MiB holds" in too_small.stderr
    (model / "generation_config.json").write_text("[]")
    assert "generation_config.json" in quire(*command).stderr
    (model / "tokenizer.json").write_text("[]")
    assert "tokenizer.json" in quire(*command).stderr


@pytest.mark.skipif(
    resource.getrlimit(resource.RLIMIT_STACK)[1] != resource.RLIM_INFINITY, reason="the stack's limit cannot be raised"
)
def test_whatever_stops_it_has_a_message_and_exits_2():
    def no_room_for_a_thread():
        resource.setrlimit(resource.RLIMIT_STACK, (1 << 50, resource.RLIM_INFINITY))  # what each thread asks for

    result = subprocess.run(
        [str(QUIRE), "generate", "--prompt", "x", "--threads", "1"],
        capture_output=True,
        text=True,
        timeout=120,
        env=ENVIRONMENT,
        preexec_fn=no_room_for_a_thread,
    )
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.startswith("quire: cannot go on: ") and result.stderr.count("\n") == 1


def test_what_this_build_cannot_do_is_refused():
    assert "no GPU backend" in quire("serve", "--device", "cuda").stderr
    assert "the checkpoint stores bf16" in quire("generate", "--prompt", "x", "--dtype", "float32").stderr
    assert "adapters are not served" in quire("serve", "--enable-lora").stderr
    assert "goes up to" in quire("generate", "--prompt", "x", "--max-model-len", "16M").stderr


# ---- generate


def generate(*args):
    result = quire("generate", "--prompt", "Once upon a time", *args)
    assert result.returncode == 0, result.stderr
    return result


def test_generate_writes_text():
    result = generate("--max-tokens", "32", "--seed", "1")
    assert len(result.stdout.strip()) > 20
    assert "32 tokens" in result.stderr and "seed 1" in result.stderr


def test_the_same_seed_gives_the_same_text_whatever_the_threads_blocks_and_instruction_set():
    text = generate("--seed", "7").stdout
    assert text == generate("--seed", "7").stdout
    assert text == generate("--seed", "7", "--threads", "1", "--block-size", "64").stdout
    assert text == generate("--seed", "7", "--isa", "scalar").stdout
    assert text != generate("--seed", "8").stdout


def test_a_drawn_seed_is_printed_and_gives_the_text_again():
    first = generate("--max-tokens", "16")
    seed = re.search(r"seed (\d+)", first.stderr).group(1)
    assert generate("--max-tokens", "16", "--seed", seed).stdout == first.stdout


def test_a_stop_string_ends_the_text_before_itself():
    whole = generate("--seed", "7", "--max-tokens", "64").stdout.rstrip("\n")
    stop = whole[20:26]
    assert generate("--seed", "7", "--max-tokens", "64", "--stop", stop).stdout == whole[: whole.index(stop)] + "\n"


def test_a_prompt_or_answer_that_does_not_fit_is_refused():
    longest = json.loads(quire("inspect", "--json").stdout)["max_model_len"]
    result = quire("generate", "--prompt", "x", "--max-tokens", str(longest))
    assert result.returncode == 2 and "there is room for" in result.stderr
    result = quire("generate", "--prompt", "word " * longest)
    assert result.returncode == 2 and "go up to" in result.stderr


# ---- inspect, bench


def test_inspect_lists_tensors_and_the_memory_of_the_cache():
    text = quire("inspect").stdout
    assert "model.embed_tokens.weight" in text and "KV cache: 2 x" in text and "blocks" in text


def test_inspect_counts_bytes_by_the_formula():
    seen = json.loads(quire("inspect", "--json", "--kv-cache-memory", "64MiB").stdout)
    config = json.loads((ROOT / "models" / "stories" / "config.json").read_text())
    per_value = {"f32": 4, "bf16": 2}
    assert {row["dtype"] for row in seen["kv"]} == set(per_value)
    for row in seen["kv"]:
        token = 2 * config["num_hidden_layers"] * config["num_key_value_heads"] * config["head_dim"]
        assert row["bytes_per_token"] == token * per_value[row["dtype"]]
        assert row["blocks"] == (64 << 20) // (row["bytes_per_token"] * seen["block_tokens"])
        assert row["contexts"][-1]["tokens"] == config["max_position_embeddings"]
    assert seen["bytes"] == sum(tensor["bytes"] for tensor in seen["tensors"])


def test_bench_reports_every_row():
    report = json.loads(quire("bench", "--json", timeout=300).stdout)
    assert [(row["what"], row.get("tokens", row.get("sequences"))) for row in report["rows"]] == [
        ("prefill", 128),
        ("prefill", 512),
        ("decode", 1),
        ("decode", 8),
        ("decode", 32),
    ]
    assert report["runs"] >= 5 and report["cpu"] and report["read_bandwidth_median"] > 0
    assert all(row["tokens_per_s"] > 0 and row["part_of_bandwidth"] > 0 for row in report["rows"])


# ---- serve


def test_the_ready_line_has_a_url_and_its_curl_works():
    with Server() as server:
        said = "\n".join(server.said)
        assert re.search(r"ready in \d+\.\d+ s: http://127\.0\.0\.1:\d+", said)
        assert "numeric mode: checkpoint=" in said and "KV cache: " in said
        assert server.status("/ready") == 200
        curl = server.said[-1].strip()
        assert curl.startswith("curl ")
        if shutil.which("curl"):
            answer = subprocess.run(["bash", "-c", curl + " --silent --fail"], capture_output=True, text=True, timeout=60)
            assert answer.returncode == 0 and json.loads(answer.stdout)["choices"][0]["text"]


def test_the_server_and_generate_say_the_same():
    with Server() as server:
        with server.complete(max_tokens=32, seed=7) as answer:
            served = json.loads(answer.read())["choices"][0]["text"]
    assert served == generate("--max-tokens", "32", "--seed", "7").stdout.removesuffix("\n")


def test_it_is_ready_in_well_under_a_second():
    times = []
    for _ in range(3):
        with Server() as server:
            times.append(float(re.search(r"ready in (\d+\.\d+) s", "\n".join(server.said)).group(1)))
    assert min(times) < 1, times  # the best: other load on the machine is not the server's


def test_a_port_in_use_exits_2_and_says_so():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        result = quire("serve", "--port", str(port))
        assert result.returncode == 2 and str(port) in result.stderr and "ready" not in result.stdout


def test_settings_come_from_environment_and_file(tmp_path):
    file = tmp_path / "quire.toml"
    file.write_text('served-model-name = ["one", "two"]\nmax-model-len = 128\n')
    with Server(env={"QUIRE_CONFIG": str(file), "QUIRE_MAX_MODEL_LEN": "256"}) as server:
        with urllib.request.urlopen(server.url + "/v1/models", timeout=10) as answer:
            models = json.loads(answer.read())["data"]
        assert [model["id"] for model in models] == ["one", "two"]
        assert "sequences of 256" in "\n".join(server.said)


def test_a_vllm_command_line_starts_and_notes_what_has_no_effect():
    args = ["--tensor-parallel-size", "1", "--gpu_memory_utilization=0.9", "--enforce-eager", "--max_num_seqs", "4"]
    with Server(*args) as server:
        assert "4.0 sequences" in "\n".join(server.said)
        code, _, err = server.end(signal.SIGTERM)
    assert code == 0
    for flag in ("--tensor-parallel-size", "--gpu_memory_utilization", "--enforce-eager"):
        assert f"{flag}: accepted, has no effect" in err


def read_stream(answer):
    """The finish reasons and the end of a stream of server-sent events."""
    reasons, done = [], False
    for line in answer:
        if line.strip() == b"data: [DONE]":
            done = True
        elif line.startswith(b"data: "):
            event = json.loads(line[6:])
            reasons += [choice["finish_reason"] for choice in event.get("choices", []) if choice["finish_reason"]]
    return reasons, done


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_streams_finish_and_exits_0(number):
    with Server() as server:
        answer = server.complete(stream=True, max_tokens=400, ignore_eos=True)
        answer.readline()
        server.process.send_signal(number)
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:  # not ready while it drains, or gone already
            try:
                if server.status("/ready") == 503:
                    break
            except OSError:
                break
        assert read_stream(answer) == (["length"], True)
        assert server.end()[0] == 0


def test_streams_are_cut_when_the_drain_timeout_is_over():
    with Server("--isa", "scalar", "--drain-timeout", "1ms") as server:
        answer = server.complete(stream=True, max_tokens=450, ignore_eos=True)
        answer.readline()
        start = time.monotonic()
        code, _, err = server.end(signal.SIGTERM)
        assert code == 0 and time.monotonic() - start < 10


def test_a_second_signal_ends_it_at_once():
    with Server("--isa", "scalar") as server:
        answers = [server.complete(stream=True, max_tokens=450, ignore_eos=True) for _ in range(16)]
        for answer in answers:
            answer.readline()
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(timeout=10) == 128 + signal.SIGINT
