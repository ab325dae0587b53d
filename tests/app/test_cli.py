"""The binary as a user meets it: exit codes, messages, generate, inspect, bench, and a server's life."""

import contextlib
import http.server
import json
import os
import pathlib
import pty
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import termios
import threading
import time
import urllib.error
import urllib.request

import pytest

from processor_time import processor_time, processor_time_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUIRE = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", ROOT / "build" / "release")) / "quire"
# The settings of whoever runs the tests are not the tests'.
PATIENCE_S = 120  # for what takes milliseconds on a machine that has nothing else to do
# An answer of 450 tokens takes nine seconds at least: it is under way for as long as a test looks at it.
PACED = ("--min-step-time", "20ms", "--speculative-config", '{"method": "none"}')
ENVIRONMENT = {**{name: value for name, value in os.environ.items() if not name.startswith("QUIRE_")}, "HF_HUB_OFFLINE": "1"}


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
        self.process.communicate(timeout=PATIENCE_S)

    def end(self, *signals):
        for number in signals:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, out, err

    def status(self, path):
        try:
            with urllib.request.urlopen(self.url + path, timeout=PATIENCE_S) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def wait_until_not_ready(self):
        """It drains, or is gone already."""
        end = time.monotonic() + PATIENCE_S
        with contextlib.suppress(OSError):
            while self.status("/ready") != 503:
                assert time.monotonic() < end
                time.sleep(0.01)

    def complete(self, **fields):
        body = json.dumps({"model": "stories", "prompt": "Once upon a time", "max_tokens": 8} | fields).encode()
        request = urllib.request.Request(
            self.url + "/v1/completions", data=body, headers={"Content-Type": "application/json"}
        )
        return urllib.request.urlopen(request, timeout=PATIENCE_S)


class OtherServer(http.server.ThreadingHTTPServer):
    """Answers every GET with the same few words; the URL is what `with` gives."""

    def __init__(self, status):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(status)
                self.send_header("Content-Length", "6")
                self.end_headers()
                self.wfile.write(b"hello\n")

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server_port}"

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


# ---- help, version, exit codes


def test_help_and_version_exit_0():
    for args in (["--help"], ["serve", "--help"], ["generate", "--help"], ["bench", "--help"], ["inspect", "-h"], ["build-datastore", "-h"], ["key", "-h"]):
        result = quire(*args)
        assert result.returncode == 0 and "Usage: quire" in result.stdout, args
        assert "--" in result.stdout and result.stderr == ""
    assert re.fullmatch(r"quire \d+\.\d+\.\d+( \([0-9a-f]{8,}\))?\n", quire("--version").stdout)
    assert quire("version").stdout == quire("--version").stdout and quire("help", "serve").stdout == quire("serve", "--help").stdout


def test_a_command_is_needed():
    result = quire()
    assert result.returncode == 2 and "a command is required: serve, chat, generate, " in result.stderr


def test_all_problems_are_listed_at_once():
    result = quire("serve", "--prot", "1", "--block-size", "17", env={"QUIRE_MAX_NUM_SEQS": "many"})
    assert result.returncode == 2 and result.stdout == ""
    for part in ("3 problems", "did you mean --port?", "multiple of 16", "QUIRE_MAX_NUM_SEQS 'many'"):
        assert part in result.stderr


def test_a_model_that_is_not_there_exits_2_at_once_and_says_what_to_do():
    for command in (["serve"], ["generate", "--prompt", "x"], ["inspect"], ["bench"]):
        with processor_time() as used:
            result = quire(*command, "./some-model")
        assert used() < 1
        assert result.returncode == 2
        assert "there is no such directory" in result.stderr and "without MODEL, quire serves the small built-in model" in result.stderr


def test_the_simulated_gpu_is_refused_and_the_program_that_has_it_is_named():
    for command in (["serve", "--tensor-parallel-size", "2"], ["generate", "--prompt", "x"], ["bench"]):
        result = quire(*command, "--device", "simulated")
        assert result.returncode == 2 and re.fullmatch(r"(quire 0\.1\.0.*\nloading stories\n)?", result.stdout)
        assert "--device simulated: this program has no simulated GPU; quire-simulated has one" in result.stderr


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
    assert "the maximum of this model is" in quire(*command, "--max-model-len", "16M").stderr
    too_small = quire(*command, "--kv-cache-memory", "1MiB", "--max-model-len", "512")
    assert "--kv-cache-memory 1.0 MiB has room for" in too_small.stderr
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
    assert result.stderr.startswith("quire: fatal error: ") and result.stderr.count("\n") == 1


def test_what_this_build_cannot_do_is_refused():
    refused = quire("serve", "--device", "cuda")
    assert refused.returncode == 2
    assert re.search(r"--device cuda: (this program was built without CUDA \(preset cuda-release\)|cuda\w+: )", refused.stderr)
    assert "the checkpoint stores bf16" in quire("generate", "--prompt", "x", "--dtype", "float32").stderr
    assert "adapters are not served" in quire("serve", "--enable-lora").stderr
    assert "the maximum of this model is" in quire("generate", "--prompt", "x", "--max-model-len", "16M").stderr


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
    assert result.returncode == 2 and "may have at most" in result.stderr


def test_a_prompt_is_taken_from_a_word_a_file_or_standard_input(tmp_path):
    expected = generate("--seed", "7").stdout
    (tmp_path / "prompt").write_text("Once upon a time")
    assert quire("generate", "stories", "Once upon a time", "--seed", "7").stdout == expected
    assert quire("generate", "--prompt-file", str(tmp_path / "prompt"), "--seed", "7").stdout == expected
    for flags in ((), ("--prompt", "-")):
        given = subprocess.run([str(QUIRE), "generate", *flags, "--seed", "7"], input="Once upon a time\n", capture_output=True, text=True,
                               timeout=PATIENCE_S)
        assert given.stdout == expected, given.stderr
    empty = subprocess.run([str(QUIRE), "generate"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S)
    assert empty.returncode == 2 and "the prompt on standard input is empty" in empty.stderr
    missing = quire("generate", "--prompt-file", str(tmp_path / "nothing"))
    assert missing.returncode == 2 and "nothing: No such file or directory" in missing.stderr


def test_a_prompt_goes_through_the_chat_template_unless_it_is_raw(tmp_path):
    template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"
    (tmp_path / "chat.jinja").write_text(template)
    flags = ("--chat-template", str(tmp_path / "chat.jinja"), "--seed", "7", "--max-tokens", "16")
    templated = quire("generate", "--prompt", "Once", "--system", "Brief.", *flags)
    assert templated.returncode == 0, templated.stderr
    assert templated.stdout == quire("generate", "--raw", "--prompt", "<system>Brief.<user>Once<assistant>", *flags).stdout
    assert templated.stdout != quire("generate", "--raw", "--prompt", "Once", *flags).stdout
    (tmp_path / "chat.jinja").write_text("{{ raise_exception('only stories') }}")
    refused = quire("generate", "--prompt", "Once", *flags)
    assert refused.returncode == 2 and "only stories" in refused.stderr and "--raw" in refused.stderr


# ---- build-datastore


def test_build_datastore_writes_a_file_and_says_what_is_in_it(tmp_path):
    (tmp_path / "a.txt").write_text("One day a cat sat.\n<|endoftext|>\nOne day a dog ran.\n")
    (tmp_path / "b.txt").write_text("One day it rained.\n")
    store = tmp_path / "store.bin"
    result = quire("build-datastore", "--text", str(tmp_path), "--output", str(store))
    assert result.returncode == 0, result.stderr
    assert re.search(r"3 texts, (\d+) tokens of stories", result.stdout)
    assert result.stderr == "", "what is over at once shows no progress"
    num_tokens = int(re.search(r"(\d+) tokens of", result.stdout).group(1))
    header, ends = 48, 3
    assert store.stat().st_size == header + 4 * (num_tokens + ends) + 4 * num_tokens
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.txt", "store.bin"]


def test_build_datastore_without_texts_exits_2(tmp_path):
    result = quire("build-datastore", "--text", str(tmp_path), "--output", str(tmp_path / "store.bin"))
    assert result.returncode == 2 and "no text" in result.stderr
    assert quire("build-datastore", "--output", "x").returncode == 2


def on_a_terminal(*args):
    """What the program writes to standard error where that is a terminal."""
    main, other = pty.openpty()
    termios.tcsetwinsize(other, (24, 132))
    process = subprocess.Popen([str(QUIRE), *map(str, args)], stdout=subprocess.PIPE, stderr=other, env=ENVIRONMENT)
    os.close(other)
    said = b""
    with contextlib.suppress(OSError):
        while part := os.read(main, 65536):
            said += part
    assert process.wait(timeout=PATIENCE_S) == 0, said
    return said.decode()


def test_build_datastore_shows_on_a_terminal_how_far_it_is(tmp_path):
    story = "One day a cat sat on a mat and told a long story to a dog. " * 20 + "\n<|endoftext|>\n"
    (tmp_path / "a.txt").write_text(story * 9000)
    said = on_a_terminal("build-datastore", "--text", tmp_path, "--output", tmp_path / "store.bin")
    for work, size in (("tokenising", r"10\.\d"), ("sorting", r"11\.\d")):
        assert re.search(rf"\d+ % \[[#.]{{18}}\]  \S+ [KM]iB of {size} MiB .*{work} stories", said), said
    assert said.endswith("\r\x1b[K"), "the line is erased at the end"


def test_build_datastore_checks_text_that_comes_through_a_pipe(tmp_path):
    for given, code in ((b"One day a cat sat.\n", 0), (b"\x89PNG\r\n\x00", 2)):
        result = subprocess.run([str(QUIRE), "build-datastore", "--text", "/dev/stdin", "--output", str(tmp_path / "store.bin")],
                                input=given, capture_output=True, timeout=PATIENCE_S, env=ENVIRONMENT)
        assert result.returncode == code, result.stderr
    assert b"/dev/stdin: not text in UTF-8: a zero byte at offset" in result.stderr


def test_build_datastore_may_have_to_write_elsewhere():
    with tempfile.TemporaryDirectory() as place:  # pytest's own folders are closed to other users
        folder = pathlib.Path(place)
        (folder / "a.txt").write_text("One day a cat sat.")
        for one in (folder / "a.txt", folder):
            one.chmod(0o555)
        user = {"user": 65534} if os.geteuid() == 0 else {}  # root may write everywhere
        result = subprocess.run([str(QUIRE), "build-datastore", "--text", str(folder), "--output", str(folder / "store.bin")],
                                capture_output=True, text=True, timeout=PATIENCE_S, env=ENVIRONMENT, **user)
        folder.chmod(0o755)
    assert result.returncode == 2
    assert "this process may not write into" in result.stderr and "give another directory" in result.stderr


# ---- inspect, bench


def test_inspect_counts_bytes_by_the_formula():
    seen = json.loads(quire("inspect", "--json", "--kv-cache-memory", "64MiB").stdout)
    config = json.loads((ROOT / "models" / "stories" / "config.json").read_text())
    heads = 2 * config["num_hidden_layers"] * config["num_key_value_heads"]  # of a token, keys and values
    size = config["head_dim"]
    f32 = 4
    per_token = {
        "f32": heads * size * f32, "bf16": heads * size * 2, "fp8": heads * size,
        "int8": heads * (size + f32),  # a scale a token and head
        # Four bits; a step and a lowest in bf16, of keys a channel in 16 tokens, of values a token and head.
        "int4": heads // 2 * (size + 2 * 2 * (size + 16) // 16),
    }
    assert {row["dtype"] for row in seen["kv"]} == set(per_token)
    for row in seen["kv"]:
        assert row["bytes_per_token"] == per_token[row["dtype"]], row
        assert row["contexts"][-1]["tokens"] == config["max_position_embeddings"]


def test_quantised_weights_are_counted_named_and_answer_the_same_however_they_run():
    sizes = {}
    for kind in ("none", "int8", "int4", "fp8", "w8a8", "w4a8", "w16a16"):
        seen = json.loads(quire("inspect", "--json", "--quantize", kind).stdout)
        assert seen["quantize"] == kind
        sizes[kind] = seen["packed_bytes"]
        assert f"in memory with --quantize {kind}" in quire("inspect", "--quantize", kind).stdout
    assert sizes["none"] > 1.9 * sizes["int8"] > 1.9 * 1.4 * sizes["int4"]
    assert (sizes["fp8"], sizes["w8a8"], sizes["w4a8"]) == (sizes["int8"], sizes["int8"], sizes["int4"])
    assert sizes["w16a16"] == sizes["none"]
    texts = set()
    for kind in sizes:
        flags = ["--quantize", kind, "--prompt", "Once upon a time", "--max-tokens", "60", "--temperature", "0"]
        one, two = (quire("generate", *flags, "--threads", n).stdout for n in "12")
        assert one == two != ""
        texts.add(one)
    assert len(texts) > 1  # int8 says what bf16 says for a while
    result = quire("generate", "--quantize", "int3", "--prompt", "x")
    assert result.returncode == 2 and "none|int8|int4|fp8|w8a8|w4a8|w16a16" in result.stderr


def test_inspect_prints_what_a_running_servers_cache_does():
    with Server("--block-size", "32") as server:
        for _ in range(2):
            with server.complete(prompt="Once upon a time there was a little fox. " * 8) as answer:
                answer.read()
        text = quire("inspect", "--url", server.url)
        seen = json.loads(quire("inspect", "--url", server.url + "/", "--json").stdout)
    assert text.returncode == 0 and "KV blocks of 32 tokens, now" in text.stdout and "saved by sharing" in text.stdout
    assert seen["model"] == "stories" and seen["block_tokens"] == 32
    assert 0 < seen["prompt_tokens_found"] < seen["prompt_tokens_queried"]


def test_inspect_says_when_there_is_no_server_to_ask():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    result = quire("inspect", "--url", f"http://127.0.0.1:{port}")
    assert result.returncode == 2 and "connection refused" in result.stderr
    result = quire("inspect", "--url", f"127.0.0.1:{port}")
    assert result.returncode == 2 and "expected a URL such as http://127.0.0.1:8000" in result.stderr
    for status, message in ((404, "was answered with status 404"), (200, "this is not a quire server")):
        with OtherServer(status) as url:
            result = quire("inspect", "--url", url)
        assert result.returncode == 2 and message in result.stderr


def test_bench_reports_every_row():
    report = json.loads(quire("bench", "--json", "--runs", "1", timeout=300).stdout)
    assert [(row["what"], row.get("tokens", row.get("sequences"))) for row in report["rows"]] == [
        ("prefill", 128),
        ("prefill", 512),
        ("decode", 1),
        ("decode", 8),
        ("decode", 32),
    ]
    assert report["runs"] == 1 and report["cpu"] and report["read_bandwidth_median"] > 0
    assert all(row["tokens_per_s"] > 0 and row["part_of_bandwidth"] > 0 for row in report["rows"])


# ---- serve --plan


def plan_rows(text):
    """tokens -> (sequences that fit, sequences that run)"""
    rows = re.findall(r"^ *(\d+) +(\d+) +(\d+)$", text, re.MULTILINE)
    return {int(tokens): (int(fit), int(run)) for tokens, fit, run in rows}


def test_a_plan_counts_bytes_blocks_and_sequences_and_ends():
    config = json.loads((ROOT / "models" / "stories" / "config.json").read_text())
    stored = json.loads(quire("inspect", "--json").stdout)["bytes"]
    result = quire("serve", "--plan", "--kv-cache-dtype", "bf16", "--kv-cache-memory", "8MiB", "--max-num-seqs", "3")
    assert result.returncode == 0 and result.stderr == "" and "ready" not in result.stdout
    token = 2 * 2 * config["num_hidden_layers"] * config["num_key_value_heads"] * config["head_dim"]
    longest = config["max_position_embeddings"]
    blocks = min((8 << 20) // (16 * token), 3 * -(-longest // 16))
    assert f"weights: {stored / 2**20:.1f} MiB as stored, " in result.stdout
    assert f"{blocks} blocks of 16 tokens, {blocks * 16} tokens" in result.stdout
    assert f"{token} bytes a token" in result.stdout and f"({16 * token} bytes)" in result.stdout
    assert "memory free now: " in result.stdout
    small = quire("serve", "--plan", "--kv-cache-dtype", "int4", "--kv-cache-memory", "8MiB", "--max-num-seqs", "3").stdout
    token = int(re.search(r"(\d+) bytes a token", small).group(1))
    assert f"({16 * token} bytes)" in small and "residual groups of 3 sequences" in small
    fit = blocks // -(-longest // 16)
    assert plan_rows(result.stdout)[longest] == (fit, min(fit, 3))


def test_a_plan_has_a_line_for_what_drafts_take_and_the_cache_is_smaller_by_that():
    def plan(speculation, *args):
        text = quire("serve", "--plan", "--kv-cache-memory", "1536KiB", "--speculative-config", speculation, *args).stdout
        return int(re.search(r"KV cache: (\d+) blocks", text).group(1)), re.findall(r"^drafts: .*$", text, re.M), text

    none, eagle = plan('{"method": "none"}'), plan('{"method": "eagle3"}', "--max-num-seqs", "1")
    assert none[1] == [] and "weights and KV cache: " in none[2]
    weights = r"drafts: \d+\.\d [KM]iB of weights, .* of K and V for \d+ blocks, .* of scratch blocks, .* of captured states"
    assert len(eagle[1]) == 1 and re.fullmatch(weights, eagle[1][0]), eagle[1]
    assert "weights, drafts and KV cache: " in eagle[2]
    assert eagle[0] < plan('{"method": "none"}', "--max-num-seqs", "1")[0]
    assert len(re.findall(r"^drafts: ", quire("serve", "--plan").stdout, re.M)) == 1  # the head that came with the model


def big_model(tmp_path, layers=32):
    """The files of a model of several GB, its weights a hole: who reads them reads for a long time."""
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16", "hidden_act": "silu",
        "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": layers, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 32000, "max_position_embeddings": 32768,
        "rope_theta": 10000.0, "rms_norm_eps": 1e-5, "tie_word_embeddings": False,
    }  # fmt: skip
    shapes = {"model.embed_tokens.weight": [32000, 4096], "model.norm.weight": [4096], "lm_head.weight": [32000, 4096]}
    for layer in range(layers):
        at = f"model.layers.{layer}."
        for name in ("q_proj", "o_proj"):
            shapes[f"{at}self_attn.{name}.weight"] = [4096, 4096]
        for name in ("k_proj", "v_proj"):
            shapes[f"{at}self_attn.{name}.weight"] = [1024, 4096]
        for name in ("gate_proj", "up_proj"):
            shapes[f"{at}mlp.{name}.weight"] = [14336, 4096]
        shapes[f"{at}mlp.down_proj.weight"] = [4096, 14336]
        for name in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{at}{name}.weight"] = [4096]
    header, end = {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    tmp_path.joinpath("config.json").write_text(json.dumps(config))
    shutil.copy(ROOT / "models" / "stories" / "tokenizer.json", tmp_path)
    with tmp_path.joinpath("model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + end)
    return end


def test_a_plan_of_a_big_model_reads_headers_only(tmp_path):
    stored = big_model(tmp_path)
    with processor_time() as used:
        result = quire("serve", str(tmp_path), "--plan", "--kv-cache-memory", "16GiB", "--max-num-seqs", "256")
    assert used() < 2, "reading the weights takes ten times that"
    assert result.returncode == 0, result.stderr
    assert f"weights: {stored / 2**30:.2f} GiB as stored" in result.stdout
    assert "131072 bytes a token" in result.stdout and "a block: 2.0 MiB (2097152 bytes)" in result.stdout
    assert "8192 blocks of 16 tokens, 131072 tokens, 4.0 sequences of 32768" in result.stdout
    assert plan_rows(result.stdout) == {1024: (128, 128), 4096: (32, 32), 16384: (8, 8), 32768: (4, 4)}


def test_a_plan_that_does_not_fit_says_what_is_missing_and_exits_2(tmp_path):
    big_model(tmp_path)
    result = quire("serve", str(tmp_path), "--plan", "--kv-cache-memory", "1GiB", "--max-model-len", "32768")
    assert result.returncode == 2 and "GiB as stored" in result.stdout
    assert "one sequence of 32768 tokens takes 4.00 GiB of KV cache; --kv-cache-memory 1.00 GiB has room for 8192" in result.stderr


def test_pinned_prefixes_are_in_the_plan(tmp_path):
    prefix = tmp_path / "prefix.txt"
    prefix.write_text("Once upon a time there was a fox. " * 4)
    blocks = [
        int(re.search(r"KV cache: (\d+) blocks", quire("serve", "--plan", *args).stdout).group(1))
        for args in ([], ["--pin-prefix", str(prefix)])
    ]
    pinned = quire("serve", "--plan", "--pin-prefix", str(prefix)).stdout
    assert blocks[1] > blocks[0] and f"; {blocks[1] - blocks[0]} blocks are pinned" in pinned
    result = quire("serve", "--plan", "--pin-prefix", f"{prefix},{tmp_path}/none,{tmp_path}")
    assert result.returncode == 2 and "2 problems" in result.stderr
    assert "none: no such file" in result.stderr and "not a regular file" in result.stderr
    result = quire("serve", "--pin-prefix", str(prefix), "--no-enable-prefix-caching")
    assert result.returncode == 2 and "--pin-prefix: pinned prefixes need the prefix cache" in result.stderr


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
            answer = subprocess.run(["bash", "-c", curl + " --silent --fail"], capture_output=True, text=True, timeout=PATIENCE_S)
            assert answer.returncode == 0 and json.loads(answer.stdout)["choices"][0]["text"]


def test_the_server_and_generate_say_the_same():
    with Server() as server:
        with server.complete(max_tokens=32, seed=7) as answer:
            served = json.loads(answer.read())["choices"][0]["text"]
    assert served == generate("--max-tokens", "32", "--seed", "7").stdout.removesuffix("\n")


def test_a_start_says_at_once_what_it_loads_and_then_how_it_chats_and_how_long_a_text_may_be():
    with Server() as server:
        said = server.said
    assert re.fullmatch(r"quire \d+\.\d+\.\d+.*", said[0]) and said[1] == "loading stories"
    assert "context: 512 tokens" in said
    assert any(line.startswith("chat: one template, tool calls ") and line.endswith(", reasoning off") for line in said), said


def test_a_start_warns_of_an_open_port_without_keys_and_of_too_many_threads(tmp_path):
    many = str(len(os.sched_getaffinity(0)) + 1)
    for flags, warnings in ((("--host", "0.0.0.0", "--threads", many), {"no_api_keys", "more_threads_than_cpus"}),
                            (("--host", "0.0.0.0", "--api-key", "secret"), set()), (("--host", "127.0.0.1"), set())):
        done = subprocess.run([str(QUIRE), "serve", "--port", "0", "--device", "simulated", *flags], capture_output=True, text=True, timeout=PATIENCE_S)
        assert {word for word in ("no_api_keys", "more_threads_than_cpus") if f"warning {word} " in done.stderr} == warnings, done.stderr


def test_it_is_ready_in_well_under_a_second():
    begun = time.monotonic()
    with Server() as server:
        took = time.monotonic() - begun
        told = float(re.search(r"ready in (\d+\.\d+) s", "\n".join(server.said)).group(1))
        # Of the processor, all threads together: other load on the machine is not the server's.
        assert processor_time_of(server.process.pid) < 1
        assert told <= took + 0.005  # it is told with two decimals


def test_a_port_in_use_exits_2_and_says_so():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        result = quire("serve", "--port", str(port))
        assert result.returncode == 2 and str(port) in result.stderr and "ready" not in result.stdout


def test_settings_come_from_environment_and_file(tmp_path):
    file = tmp_path / "quire.toml"
    file.write_text('served-model-name = ["one", "two"]\nmax-model-len = 128\n')
    with Server(env={"QUIRE_CONFIG": str(file), "QUIRE_MAX_MODEL_LEN": "256"}) as server:
        with urllib.request.urlopen(server.url + "/v1/models", timeout=PATIENCE_S) as answer:
            models = json.loads(answer.read())["data"]
        assert [model["id"] for model in models] == ["one", "two"]
        assert "sequences of 256" in "\n".join(server.said)


def test_a_vllm_command_line_starts_and_notes_what_has_no_effect():
    args = ["-tp", "1", "--pipeline-parallel-size", "1", "--gpu_memory_utilization=0.9", "--enforce-eager", "--max_num_seqs", "4"]
    with Server(*args) as server:
        assert "4.0 sequences" in "\n".join(server.said)
        code, _, err = server.end(signal.SIGTERM)
    assert code == 0
    for flag in ("--pipeline-parallel-size", "--gpu_memory_utilization", "--enforce-eager"):
        assert f"{flag}: accepted, has no effect" in err


def test_a_directory_for_saved_caches_is_there_before_it_is_needed(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    for path, message in ((tmp_path / "none", "no such directory"), (file, "this is not a directory")):
        result = quire("serve", "--cache-dir", str(path))
        assert result.returncode == 2 and f"--cache-dir {path}: {message}" in result.stderr
    with Server("--cache-dir", str(tmp_path)) as server:
        assert server.status("/ready") == 200


def test_a_pinned_prefix_is_there_for_the_first_request(tmp_path):
    prefix = tmp_path / "prefix.txt"
    prefix.write_text("Once upon a time there was a little fox. " * 8)
    texts, found = [], []
    for args in ([], ["--pin-prefix", str(prefix)]):
        with Server(*args) as server:
            pinned = json.loads(quire("inspect", "--url", server.url, "--json").stdout)["blocks_pinned"]
            with server.complete(prompt=prefix.read_text() + "It", max_tokens=16, seed=3) as answer:
                texts.append(json.loads(answer.read())["choices"][0]["text"])
            found.append(json.loads(quire("inspect", "--url", server.url, "--json").stdout)["prompt_tokens_found"])
    assert texts[0] == texts[1]
    assert found[0] == 0 and found[1] >= 16 and pinned >= found[1] // 16


def test_a_cache_is_saved_where_the_settings_say(tmp_path):
    with Server("--cache-dir", str(tmp_path)) as server:
        with server.complete(prompt="Once upon a time there was a little fox. " * 8) as answer:
            answer.read()
        request = urllib.request.Request(
            server.url + "/admin/cache/save",
            data=b'{"path": "stories.cache"}',
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            assert answer.status == 200
    assert (tmp_path / "stories.cache").stat().st_size > 0


def test_scheduling_settings_start_a_server_and_change_no_answer():
    texts = []
    for policy, victim in (("fcfs", "newest"), ("fair", "longest"), ("cache", "lowest-priority")):
        args = ["--scheduling-policy", policy, "--preemption-victim", victim, "--max-overtakes", "0"]
        with Server(*args, "--kv-debug", "check,poison") as server:
            with server.complete(max_tokens=16, seed=3) as answer:
                texts.append(json.loads(answer.read())["choices"][0]["text"])
    assert len(set(texts)) == 1
    result = quire("serve", "--swap-space", "4")
    assert result.returncode == 2 and "--swap-space 4.00 GiB: on the CPU" in result.stderr


def read_stream(answer):
    """The finish reasons of a stream of server-sent events, and whether it came to its end."""
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
        server.wait_until_not_ready()
        assert read_stream(answer) == (["length"], True)
        assert server.end()[0] == 0


def test_streams_are_cut_when_the_drain_timeout_is_over():
    with Server(*PACED, "--drain-timeout", "1ms") as server:
        answer = server.complete(stream=True, max_tokens=450, ignore_eos=True)
        answer.readline()
        code, _, err = server.end(signal.SIGTERM)
        assert code == 0 and "some answers were cut short" in err
        assert read_stream(answer) == ([], True)


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(second):
    with Server(*PACED) as server:
        answers = [server.complete(stream=True, max_tokens=450, ignore_eos=True) for _ in range(16)]
        for answer in answers:
            answer.readline()
        server.process.send_signal(signal.SIGTERM)
        server.wait_until_not_ready()  # two signals of a kind are one where the first has not been taken yet
        server.process.send_signal(second)
        assert server.process.wait(timeout=PATIENCE_S) == 128 + second


SCHEMA = {"type": "object", "properties": {"who": {"enum": ["Lily", "Tom"]}, "age": {"type": "integer", "minimum": 1, "maximum": 9}},
          "required": ["who", "age"], "additionalProperties": False}


@pytest.mark.parametrize("from_file", [False, True])
def test_an_answer_matches_its_json_schema(tmp_path, from_file):
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    schema = tmp_path / "schema.json" if from_file else json.dumps(SCHEMA, indent=1)
    for seed in range(3):
        done = quire("generate", "--prompt", "Once", "--json-schema", str(schema), "--seed", str(seed), "--max-tokens", "300")
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert answer["who"] in ("Lily", "Tom") and 1 <= answer["age"] <= 9 and len(answer) == 2


def test_an_answer_that_is_cut_before_it_matches_its_schema_is_an_error():
    done = quire("generate", "--prompt", "Once", "--json-schema", json.dumps(SCHEMA), "--max-tokens", "2")
    assert done.returncode == 1 and "cut before it matched --json-schema" in done.stderr


@pytest.mark.parametrize("schema, why", [("/no/such", "No such file"), ('{"type":', "incomplete JSON"), ('{"type": "objekt"}', "#/type is not one of")])
def test_a_json_schema_that_is_none_is_refused_before_the_model_is_read(schema, why):
    done = quire("generate", "/no/such/model", "--prompt", "Once", "--raw", "--json-schema", schema)
    assert done.returncode == 2 and "--json-schema" in done.stderr and why in done.stderr
