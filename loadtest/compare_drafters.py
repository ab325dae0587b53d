#!/usr/bin/env python3
"""Every drafter on the built-in model, one after another: both tables of docs/speculation.md, in about a quarter of an hour.

    python loadtest/compare_drafters.py [--quire build/release/quire] [--corpus DIR] [--rounds 3] [--only REGEX] [--update-docs]

One stream, with as many guesses as there are (`adaptive` off). The first table has twelve beginnings of stories at temperatures 0 and
1, the second texts that repeat themselves. Each row is measured by turns with a server that guesses nothing: `alpha` is the part of
first guesses that were right, `tau` the tokens of a step, `speed` the tokens a second over the other server's, `memory` what the
process has resident at its end beyond the other. Every answer is compared with that server's: one that differs ends it.

`streamed` is that speed where weights come from memory: the same model, each feed-forward layer widened with zeros, which changes no
bit of what it says and makes 150 MB of it.

DIR holds tinystories.txt or tinystories.txt.zst (models/README.md): what `rest` guesses from. Without it `rest` has no figures.
Let nothing else run.
"""

import argparse
import contextlib
import dataclasses
import json
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "speculation.md"
NO_FIGURE = "–"

# ---- what is measured


@dataclasses.dataclass(frozen=True)
class Variant:
    name: str
    when: str
    config: dict | None = None  # None: nothing here to measure it with


HEAD = {"model": "models/stories_draft"}
MEDUSA = {"method": "medusa", "model": "models/stories_medusa"}
DRAFT_MODEL = {"model": "models/stories_draft_model"}
ALONE = {"suffix_decoding_max_cached_tokens": 0}  # else later rounds would find the answers of the first
TREE = {"num_speculative_tokens": 8, "topk": 4}
# Made anew in each run; its paths go where these stand.
DATASTORE, FIRST_LAYERS = "<datastore>", "<first layers>"
VARIANTS = [
    Variant("`eagle3`, chain of 4", "whenever there is a head for the model", {"method": "eagle3", **HEAD}),
    Variant("`eagle3`, tree of 8", "the same, few streams", {"method": "eagle3", **HEAD, **TREE}),
    Variant("`eagle3`, tree of 16", "one stream, weights that come from memory",
            {"method": "eagle3", **HEAD, "num_speculative_tokens": 16, "topk": 4}),
    Variant("`eagle`", "EAGLE-1 and EAGLE-2 heads; `topk` above 1 makes EAGLE-2's trees"),
    Variant("`medusa`, chain of 3", "where such heads exist and none of `eagle3`", {**MEDUSA, "num_speculative_tokens": 3}),
    Variant("`medusa`, tree of 8", "the same, few streams", {**MEDUSA, **TREE}),
    Variant("`hydra`", "where such heads exist: more accurate drafts than Medusa's"),
    Variant("`draft_model`, chain of 4", "large targets with a small sibling", {"method": "draft_model", **DRAFT_MODEL}),
    Variant("`specinfer`, that model and the target's first 3 layers", "several small siblings that know different things",
            {"method": "specinfer", "model": [DRAFT_MODEL["model"], FIRST_LAYERS]}),
    Variant("`triforce`, over that model", "contexts of many thousand tokens, a small sibling",
            {"method": "triforce", "sinks": 16, "window": 32, **DRAFT_MODEL}),
    Variant("`layer_skip`, 3 of 6 layers", "models trained to leave early", {"method": "layer_skip", "exit_layer": 3}),
    Variant("`draft_verify`", "no training, no second model", {"method": "draft_verify"}),
    Variant("`magicdec`, 16 + 32", "contexts of many thousand tokens", {"method": "magicdec", "sinks": 16, "window": 32}),
    Variant("`ngram`", "editing, extraction, code with its source in the prompt", {"method": "ngram"}),
    Variant("`suffix`, own text alone", "the same, and agents that repeat themselves", {"method": "suffix", **ALONE}),
    Variant("`hybrid`, own text alone", "a head, and text that repeats", {"method": "hybrid", **HEAD, **ALONE}),
    Variant("`rest`, half of tinystories", "text like what is in the file", {"method": "rest", "datastore": DATASTORE}),
    Variant("`lookahead`", "like `ngram`, more draft tokens", {"method": "lookahead"}),
    Variant("`lookahead`, window of 7", "text without repeats, where rows are nearly free", {"method": "lookahead", "window": 7}),
]
WIDENED, WIDTH = "widened", 16384  # units: 150 MB in bf16, past every cache
NUM_STREAMED = 3  # of the stories: each takes five times as long
LONG = {"num_speculative_tokens": 24}
REPEATING_VARIANTS = [
    Variant("`suffix`", "", {"method": "suffix", **LONG, **ALONE}),
    Variant("`suffix`, and past answers", "", {"method": "suffix", **LONG}),
    Variant("`ngram`", "", {"method": "ngram", **LONG}),
    Variant("`lookahead`", "", {"method": "lookahead", **LONG}),
    Variant("`hybrid`", "", {"method": "hybrid", **HEAD, **LONG, **ALONE}),
    Variant("`eagle3`", "", {"method": "eagle3", **HEAD}),
]

BEGINNINGS = [
    "Once upon a time there was a little girl", "One day a dog and a cat", "The old man lived near the sea and",
    "Tom had a red ball. He", "It was raining, so Lily", "A list: one, two, three, one, two, three, one, two,",
    "The bird wanted to fly, but", "Mia and Ben went to the park. They", "Once there was a big bear who",
    "The sun was warm and the", '{"name": "Tom", "age": 3}, {"name": "Lily", "age": 4}, {"name":', "Grandma made a cake for",
]  # fmt: skip
DOCUMENT = (
    "Tom lived in a small house near the sea. Every morning he took his red bag and walked along the beach to look for shells. "
    "One day he found a big blue shell with a hole in it. Tom put it to his ear and heard the sea sing. He ran home and gave "
    "the shell to his mother. She smiled and put it on the table beside the window, where the sun could shine on it. "
    "In the evening Tom and his mother sat at the table, ate bread and soup, and told each other what they had heard. "
)
RECORDS = [{"id": i, "name": name, "color": color, "toys": toys, "home": "near the park"} for i, (name, color, toys) in enumerate(
    [("Tom", "red", 3), ("Lily", "blue", 5), ("Ben", "green", 2), ("Mia", "yellow", 4)])]


def completion(prompt, temperature, **fields):
    return {"model": "stories", "prompt": prompt, "temperature": temperature, "seed": 7, **fields}


def held_to(prompt, text):
    """The model can neither edit nor read: what a better one would say is prescribed, it chooses the tokens alone."""
    return completion(prompt, 0.0, max_tokens=256, structured_outputs={"choice": [text]}, return_token_ids=True)


def editing():
    """Pairs of what the model said before, and what it is to say."""
    for old, new in (("Tom", "Ben"), ("shell", "stone"), ("table", "shelf")):
        yield f"{DOCUMENT}\n\nThe same with {new} for {old}:\n\n", DOCUMENT.replace(old, new)


def json_records():
    for number, (key, value) in enumerate((("color", "black"), ("toys", 9), ("name", "Anna"))):
        changed = [record | {key: value} if record["id"] == number else record for record in RECORDS]
        yield f"{json.dumps(RECORDS)}\n\nThe same, {key} {value} in {number}:\n\n", json.dumps(changed)


def said_before(server, pairs):
    """The second of each pair behind the first, in the tokens that the model itself takes for it."""
    for before, text in pairs:
        (choice,) = server.ask(held_to("\n", before))["choices"]
        yield held_to(choice["token_ids"], text)


def beginnings(temperature):
    return [completion(prompt, temperature, max_tokens=160, ignore_eos=True) for prompt in BEGINNINGS]


STORIES = [("T = 0", beginnings(0.0)), ("T = 1", beginnings(1.0))]
REPEATING = [  # each makes its bodies with the help of a server
    ("a document edited", lambda server: list(said_before(server, editing()))),
    ("JSON changed", lambda server: list(said_before(server, json_records()))),
    ("long stories", lambda _: [completion(prompt, 0.0, max_tokens=448, ignore_eos=True) for prompt in BEGINNINGS[:3]]),
]

# ---- servers


class Server:
    """`quire serve` with a --speculative-config, ready."""

    def __init__(self, quire, config, model):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [quire, "serve", *([model] if model else []), "--served-model-name", "stories", "--host", "127.0.0.1",
                   "--port", str(port), "--speculative-config", json.dumps(config)]
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=self.log, stderr=self.log, text=True)
        self.url = f"http://127.0.0.1:{port}"
        until = time.monotonic() + 60
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > until:
                self.stop()
                self.log.seek(0)
                sys.exit(f"{config}: the server did not start: {self.log.read()[-300:]}")
            time.sleep(0.05)

    def is_ready(self):
        with contextlib.suppress(OSError):
            urllib.request.urlopen(self.url + "/ready", timeout=1).close()
            return True
        return False

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def ask(self, body):
        request = urllib.request.Request(self.url + "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)

    def answers(self, bodies):
        """All texts, and the seconds they took."""
        began = time.perf_counter()
        texts = [self.ask(body)["choices"][0]["text"] for body in bodies]
        return texts, time.perf_counter() - began

    def counts(self):
        """Drafts, guesses that were right, and those of them that were first."""
        with urllib.request.urlopen(self.url + "/metrics") as page:
            text = page.read().decode()

        def value(name, label=""):
            found = re.search(rf"^vllm:spec_decode_{name}_total\{{[^}}]*{label}[^}}]*\}} (\S+)", text, re.M)
            return float(found.group(1)) if found else 0.0

        return value("num_drafts"), value("num_accepted_tokens"), value("num_accepted_tokens_per_pos", 'position="0"')

    def resident_bytes(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return 1024 * int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1))


@contextlib.contextmanager
def pair(quire, config, model=None):
    """One that guesses nothing, and one that guesses; without a directory the model inside the binary."""
    with contextlib.ExitStack() as stack:
        servers = []
        for one in ({"method": "none"}, {"adaptive": False, **config}):
            servers.append(Server(quire, one, model))
            stack.callback(servers[-1].stop)
        yield servers


# ---- models made of the built-in one


def write_changed(folder, config, change):
    """Its files, with `config` over its own and each tensor as change(name, shape, bytes) gives it; None leaves it out."""
    source = ROOT / "models" / "stories"
    raw = (source / "model.safetensors").read_bytes()
    data = 8 + int.from_bytes(raw[:8], "little")
    header, parts, end = {}, [], 0
    for name, told in json.loads(raw[8:data]).items():
        if name == "__metadata__":
            continue
        begin, behind = (data + offset for offset in told["data_offsets"])
        changed = change(name, told["shape"], raw[begin:behind])
        if changed is None:
            continue
        shape, numbers = changed
        header[name] = {"dtype": told["dtype"], "shape": shape, "data_offsets": [end, end + len(numbers)]}
        parts.append(numbers)
        end += len(numbers)
    text = json.dumps(header).encode()
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"".join([len(text).to_bytes(8, "little"), text, *parts]))
    for other in source.glob("*.json"):
        (folder / other.name).write_bytes(other.read_bytes())
    whole = json.loads((source / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(whole | config))


def write_first_layers(num, folder):
    """The target without its other layers, a draft model of a kind."""

    def change(name, shape, numbers):
        layer = re.match(r"model\.layers\.(\d+)\.", name)
        return None if layer and int(layer[1]) >= num else (shape, numbers)

    write_changed(folder, {"num_hidden_layers": num}, change)


def write_widened(width, folder):
    """The target with feed-forward layers of so many units, all that are new of zeros: every sum is what it was."""

    def change(name, shape, numbers):
        if name.endswith(("gate_proj.weight", "up_proj.weight")):
            return [width, shape[1]], numbers + bytes(2 * shape[1] * (width - shape[0]))
        if name.endswith("down_proj.weight"):
            row = 2 * shape[1]
            padding = bytes(2 * (width - shape[1]))
            rows = (numbers[at : at + row] + padding for at in range(0, len(numbers), row))
            return [shape[0], width], b"".join(rows)
        return shape, numbers

    write_changed(folder, {"intermediate_size": width}, change)


def build_datastore(quire, corpus, output):
    """Of half of the stories; whether there were any."""
    packed, plain = corpus / "tinystories.txt.zst", corpus / "tinystories.txt"
    if packed.exists():
        text = subprocess.run(["zstd", "-dc", packed], check=True, stdout=subprocess.PIPE).stdout
    elif plain.exists():
        text = plain.read_bytes()
    else:
        return False
    half = output.with_suffix(".txt")
    half.write_bytes(text[: len(text) // 2])
    command = [quire, "build-datastore", "--model", "models/stories", "--text", half, "--output", output]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return True


# ---- figures


def figures(servers, bodies, rounds, name):
    """alpha, tau and speed."""
    plain, guessing = servers
    before, ratios = guessing.counts(), []
    for _ in range(rounds):
        expected, plain_s = plain.answers(bodies)
        got, seconds = guessing.answers(bodies)
        if got != expected:
            sys.exit(f"{name}: an answer differs")
        ratios.append(plain_s / seconds)
    drafts, taken, first = (b - a for a, b in zip(before, guessing.counts(), strict=True))
    drafts = max(drafts, 1.0)
    return [f"{first / drafts:.2f}", f"{1 + taken / drafts:.2f}", f"{statistics.median(ratios):.2f}"]


def story_row(quire, variant, wide, rounds):
    if variant.config is None:
        return [variant.name, *[NO_FIGURE] * 9, variant.when]
    with pair(quire, variant.config) as servers:
        groups = [figures(servers, bodies, rounds, f"{variant.name}, {title}") for title, bodies in STORIES]
        plain, guessing = (server.resident_bytes() for server in servers)
    with pair(quire, variant.config, wide) as servers:
        for cells, (title, bodies) in zip(groups, STORIES, strict=True):
            cells.append(figures(servers, bodies[:NUM_STREAMED], rounds, f"{variant.name}, {title}, widened")[-1])
    return [variant.name, *groups[0], *groups[1], f"{(guessing - plain) / 1e6:.1f} MB", variant.when]


def repeating_row(quire, variant, wide, rounds):
    with pair(quire, variant.config) as servers:
        every = [bodies_with(servers[0]) for _, bodies_with in REPEATING]
        groups = [figures(servers, bodies, rounds, f"{variant.name}, {title}")
                  for bodies, (title, _) in zip(every, REPEATING, strict=True)]
    with pair(quire, variant.config, wide) as servers:
        for cells, bodies, (title, _) in zip(groups, every, REPEATING, strict=True):
            cells.append(figures(servers, bodies, rounds, f"{variant.name}, {title}, widened")[-1])
    return [variant.name, *(cell for cells in groups for cell in cells)]


def with_paths(config, paths):
    """The config with what was made anew; None where that could not be."""
    text = json.dumps(config)
    for name, path in paths.items():
        if name in text and path is None:
            return None
        text = text.replace(name, str(path))
    return json.loads(text)


def stories_table(arguments, scratch):
    columns = [name for title, _ in STORIES for name in (f"alpha, {title}", "tau", "speed", "streamed")]
    yield ["drafter", *columns, "memory", "when to use it"]
    yield ["---", *["---:"] * (len(columns) + 1), "---"]
    layers, datastore = scratch / "first_layers", scratch / "stories.datastore"
    write_first_layers(3, layers)
    there = arguments.corpus is not None and build_datastore(arguments.quire, arguments.corpus, datastore)
    paths = {FIRST_LAYERS: layers, DATASTORE: datastore if there else None}
    for variant in VARIANTS:
        if arguments.only.search(variant.name):
            variant = dataclasses.replace(variant, config=with_paths(variant.config, paths))
            yield story_row(arguments.quire, variant, scratch / WIDENED, arguments.rounds)


def repeating_table(arguments, scratch):
    yield ["drafter", *(cell for title, _ in REPEATING for cell in (f"{title}: alpha", "tau", "speed", "streamed"))]
    yield ["---", *["---:"] * 4 * len(REPEATING)]
    for variant in REPEATING_VARIANTS:
        if arguments.only.search(variant.name):
            yield repeating_row(arguments.quire, variant, scratch / WIDENED, arguments.rounds)


TABLES = {"drafters": stories_table, "repeating": repeating_table}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quire", default=str(ROOT / "build" / "release" / "quire"))
    parser.add_argument("--corpus", type=pathlib.Path, metavar="DIR", help="texts for rest")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", type=re.compile, default="", metavar="REGEX", help="of the rows, by name")
    parser.add_argument("--update-docs", action="store_true")
    arguments = parser.parse_args()
    if arguments.update_docs and arguments.only.pattern:
        parser.error("--update-docs writes whole tables: not with --only")
    began, page = time.monotonic(), PAGE.read_text()
    with tempfile.TemporaryDirectory() as scratch:
        write_widened(WIDTH, pathlib.Path(scratch) / WIDENED)
        for name, rows_of in TABLES.items():
            lines = []
            for cells in rows_of(arguments, pathlib.Path(scratch)):
                lines.append("| " + " | ".join(cells) + " |")
                print(lines[-1], flush=True)
            body = f"<!-- table {name} -->\n" + "\n".join(lines) + "\n<!-- end -->"
            page = re.sub(rf"<!-- table {name} -->.*?<!-- end -->", lambda _: body, page, flags=re.S)
    if arguments.update_docs:
        PAGE.write_text(page)
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
