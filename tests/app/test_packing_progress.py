"""How far packing is while a model loads: a bar on a terminal, a number at /health, nothing but plain lines elsewhere."""

import fcntl
import json
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
import urllib.error
import urllib.request

import jsonschema
import pytest

np = pytest.importorskip("numpy", reason="the checkpoint is drawn by numpy")

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(TESTS / folder) for folder in ("digest", "support")]
import answers_digest as digest  # noqa: E402
from child_process import started  # noqa: E402
from tiny_model import byte_tokenizer  # noqa: E402

QUIRE = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", TESTS.parent / "build" / "release")) / "quire"
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("QUIRE_")}
SLOW = ("--quantize", "int4", "--threads", "1", "--kv-cache-memory", "64MiB")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """96 million numbers, which one thread does not quantise in a moment."""
    folder = tmp_path_factory.mktemp("large")
    hidden, width, layers = 1024, 4096, 6
    chance, header, begin = np.random.default_rng(1), {}, 0
    with (folder / "data").open("wb") as file:
        for name, shape in digest.shapes_of("llama", hidden, width, 8, 8, 128, layers).items():
            file.write((chance.standard_normal(shape, np.float32) * 0.02).view(np.uint16).reshape(-1)[1::2].tobytes())
            header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, file.tell()]}
            begin = file.tell()
    text = json.dumps(header).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + (folder / "data").read_bytes())
    (folder / "data").unlink()
    (folder / "tokenizer.json").write_text(json.dumps(byte_tokenizer()))
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 260, "hidden_size": hidden, "intermediate_size": width,
        "num_hidden_layers": layers, "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 512,
        "rope_theta": 10000.0, "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    }))  # fmt: skip
    return folder


def ended(process):
    process.terminate()
    assert process.wait(30) == 0


def test_a_terminal_sees_a_bar_that_is_gone_when_the_model_is_there(model):
    leader, follower = pty.openpty()
    fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("4H", 40, 120, 0, 0))
    began = time.monotonic()
    with started([QUIRE, "serve", model, "--port", "0", *SLOW], env=ENVIRONMENT, stdout=follower, stderr=follower) as process:
        os.close(follower)
        seen, first_bar = b"", None
        while b"ready in" not in seen:
            seen += os.read(leader, 4096)
            if first_bar is None and b" % [" in seen:
                first_bar = time.monotonic() - began
        ended(process)
    os.close(leader)
    bars = re.findall(r"\r\x1b\[K +(\d+) % \[[#.]{18}\]  [\d.]+ (?:Mi)?B of [\d.]+ MiB  [\d.]+ (?:[MG]i)?B/s  (?:\d:\d\d left  )?quantising large\d*", seen.decode())
    print(f"first bar after {first_bar:.2f} s, {len(bars)} bars")
    assert len(bars) >= 2 and sorted(map(int, bars)) == list(map(int, bars))
    assert bars[0] == "0", "before the first tensor, which may be large"
    assert "\r\x1b[K" in seen.decode().split("quantising large")[-1], "the last bar is erased"
    assert first_bar < 3.0  # half a second on a machine with nothing else to do


def bodies_while_loading(port):
    """What /health says until the model is served."""
    bodies = []
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
            return bodies
        except urllib.error.HTTPError as error:
            body = json.loads(error.read())
            assert error.code == 503, body
            assert body["status"] == "loading", body
            if "progress" in body:  # else all is loaded, and the engine's thread has not said yet that it runs
                bodies.append(body)
        time.sleep(0.02)


def test_health_says_how_far_it_is(model):
    with started([QUIRE, "serve", model, "--port", "0", "--admin-port", "0", *SLOW], env=ENVIRONMENT, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        port = port_of(process.pid)
        fractions = [body.get("progress", 0.0) for body in bodies_while_loading(port)]
        process.terminate()
        _, log = process.communicate(timeout=30)
    assert fractions == sorted(fractions) and any(0 < fraction < 1 for fraction in fractions), fractions
    assert "\x1b" not in log and "%" not in log, "no bar where there is no terminal"


def test_the_openapi_document_knows_what_health_says_meanwhile(model):
    with started([QUIRE, "serve", model, "--port", "0", *SLOW], env=ENVIRONMENT, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        try:
            port = port_of(process.pid)
            bodies = bodies_while_loading(port)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/openapi.json", timeout=5) as answer:
                document = json.loads(answer.read())
        finally:
            process.terminate()
    refusal = document["paths"]["/health"]["get"]["responses"]["503"]["content"]["application/json"]["schema"]
    assert {"$ref": "#/components/schemas/LoadingStatus"} in refusal["anyOf"]
    assert any("progress" in body for body in bodies)
    for body in bodies:
        jsonschema.validate(body, {**document["components"]["schemas"]["LoadingStatus"], "additionalProperties": False})


@pytest.mark.parametrize("flags", [(), ("--quantize", "int8")])
def test_packing_takes_no_more_memory_than_the_packed_weights_and_a_tenth(model, flags):
    """The most that the process ever had, less what it has when it is ready."""
    with started([QUIRE, "serve", model, "--port", "0", "--kv-cache-memory", "16MiB", *flags], env=ENVIRONMENT, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as process:
        said = []
        for line in process.stdout:
            said.append(line)
            if line.startswith("ready in"):
                break
        status = dict(re.findall(r"^(VmHWM|VmRSS):\s+(\d+) kB", pathlib.Path(f"/proc/{process.pid}/status").read_text(), re.M))
        ended(process)
    packed = float(re.search(r"([\d.]+) MiB packed", "".join(said))[1])
    more = (int(status["VmHWM"]) - int(status["VmRSS"])) / 1024
    print(f"{' '.join(flags) or 'bf16'}: {packed} MiB packed, at most {more:.1f} MiB more while packing")
    assert more < 0.1 * packed


def port_of(pid):
    """The port of a listening socket of the process, before it says one."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        sockets = set()
        for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            try:
                sockets.add(os.readlink(fd))
            except OSError:
                continue
        ports = [int(fields[1].split(":")[1], 16) for fields in map(str.split, pathlib.Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:])
                 if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets]
        if ports:
            return ports[0]
        time.sleep(0.01)
    raise TimeoutError("no port is open")


def test_ctrl_c_ends_a_conversation_whose_model_is_being_packed(model, tmp_path):
    leader, follower = pty.openpty()
    with started([QUIRE, "chat", model, "--quantize", "int4", "--threads", "1"], env=ENVIRONMENT | {"XDG_RUNTIME_DIR": str(tmp_path)},
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=follower) as process:
        os.close(follower)
        seen = b""
        while b" % [" not in seen:
            seen += os.read(leader, 4096)
        server = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().strip()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    os.close(leader)
    assert server and not pathlib.Path(f"/proc/{server}").exists() and not list(tmp_path.iterdir())
