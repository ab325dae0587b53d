"""SHA-256 digests of what a server answers, for changes that must not change a bit of any result. Not a test.

    python tests/digest/answers_digest.py [PROGRAM] [--simulated PROGRAM] [--only WORD] [--out FILE.json]
    python tests/digest/answers_digest.py --compare BEFORE.json AFTER.json

The programs are quire and quire-simulated of QUIRE_BUILD_DIR (build/release of this checkout) unless they are named.
Each configuration is a server with flags of its own: drafters, types of weights and of the cache, instruction sets,
sizes of blocks, families of models, the simulated GPU. It is asked the same requests whatever the program, several at a
time, since no answer depends on its company. Of each answer two digests are taken, in the order of the requests: of its
tokens (texts, token ids, how it ended, counts of tokens) and of its scores (log probabilities, embeddings) as they are
told, which is to the last bit. What may differ (names, times, tokens found in the cache) is in neither.

A run also says whether configurations that must answer alike do: drafters, instruction sets, threads, blocks and ranks
change no answer within a numeric mode: the same weights and cache, in the same types, on the same kind of device. It
exits with 1 where they do not, and where a configuration cannot be asked.
"""

import argparse
import array
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests" / folder) for folder in ("wire", "support")]
from random_heads import write_eagle, write_hydra  # noqa: E402
from tiny_model import byte_tokenizer  # noqa: E402

COMPLETIONS, CHAT, EMBEDDINGS = "/v1/completions", "/v1/chat/completions", "/v1/embeddings"
COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")
DRAFTED = "vllm:spec_decode_num_draft_tokens_total"
FOUND = "vllm:prefix_cache_hits_total"
PREEMPTED = "vllm:num_preemptions_total"


@dataclasses.dataclass(frozen=True)
class Configuration:
    """A server and what it is asked. Flags have {models}, {eagle} and the like where a run has a path."""

    name: str
    flags: tuple
    jobs: list  # (path, body)
    mode: str  # configurations of one mode answer alike
    happens: tuple = ()  # metrics that are above 0 behind the last answer: else nothing was shown
    streams: int = 8  # requests at a time
    simulated: bool = False


# ---- requests


def numbered(jobs):
    """With a seed for each, and what most have in common."""
    usual = {"max_tokens": 32, "return_token_ids": True}
    bodies = ({**usual, "prompt": prompt, "seed": 11 + i, **more} for i, (prompt, more) in enumerate(jobs))
    return [(COMPLETIONS, body) for body in bodies]


def drawn_ids(count, below):
    """Token ids at random, the same ones ever again."""
    chance = random.Random(f"{count} of {below}")
    return [chance.randrange(3, below) for _ in range(count)]


PREFIX = (
    "Once upon a time there was a little girl named Lily. She had a red ball and a small brown dog. One day the dog "
    "took the ball and ran into the garden. Lily ran after it, but the dog was too fast. She sat down under a tree and"
)
STORY = "Once upon a time there was a little girl. She had a red ball. She had a red"
LIST = "A list: one, two, three, one, two, three, one, two,"
SCHEMA = {
    "type": "object",
    "properties": {"name": {"enum": ["Tom", "Lily"]}, "age": {"type": "integer", "maximum": 9}},
    "required": ["name", "age"],
}
GRAMMAR = 'root ::= greeting " " ("world" | "moon") "!"\ngreeting ::= "hello" | "good " ("day" | "night")'
WINDOW = {"type": "sink_window", "sinks": 16, "window": 256}
HITTERS = {"type": "heavy_hitters", "sinks": 16, "window": 256, "budget": 32}
SEARCH = {"use_beam_search": True, "temperature": 0, "ignore_eos": True, "max_tokens": 14, "logprobs": 0}
IDS, BYTES = drawn_ids(331, 4096), drawn_ids(280, 260)
SPOKEN = (("user", PREFIX), ("assistant", "The dog ran."), ("user", "Then she"))
PROMPTS = ["Once upon a time", PREFIX, "naïve 日本語 👍🏽", LIST]

BRIEF_JOBS = numbered([
    (PREFIX + " cried", {"temperature": 0, "logprobs": 5}),
    (STORY, {"temperature": 0.7, "top_p": 0.9, "logprobs": 3}),
    (IDS[:300], {"temperature": 0, "echo": True, "logprobs": 2, "max_tokens": 8}),
    (LIST, {"temperature": 1.1, "top_p": 0.95, "n": 2, "logprobs": 2}),
    (PREFIX + " looked", {**SEARCH, "n": 2, "best_of": 3}),
    (STORY, {"temperature": 1.3, "top_k": 30, "min_p": 0.02, "logprobs": 1}),
    (PREFIX + " cried", {"temperature": 0.9, "logprobs": 0, "frequency_penalty": 0.4, "max_tokens": 48}),
    ("A child:", {"temperature": 0.7, "structured_outputs": {"json": SCHEMA}, "logprobs": 1}),
])  # fmt: skip
STORY_JOBS = BRIEF_JOBS + numbered([
    (PREFIX + " said", {"temperature": 0.8, "min_p": 0.05, "logprobs": 2, "max_tokens": 64}),
    (PREFIX, {"temperature": 0, "logprobs": 0, "max_tokens": 240}),
    (PREFIX + " said", {"temperature": 1.0, "logprobs": 1, "max_tokens": 120, "ignore_eos": True}),
    (LIST, {"temperature": 0, "ignore_eos": True, "logprobs": 20, "max_tokens": 48}),
    (STORY, {"temperature": 1.0, "typical_p": 0.9, "min_tokens": 20, "bad_words": ["the", "ball"], "logprobs": 1}),
    (STORY, {"temperature": 0, "presence_penalty": 0.6, "frequency_penalty": 0.4, "logprobs": 1}),
    (LIST, {"temperature": 1.0, "repetition_penalty": 1.2, "logit_bias": {"300": 4, "17": -100}, "logprobs": 1}),
    (LIST, {"temperature": 0.7, "n": 2, "best_of": 3, "top_p": 0.9, "logprobs": 0}),
    (STORY, {"temperature": 0.7, "stop": [" and", "ball."], "include_stop_str_in_output": True}),
    (LIST, {"temperature": 0, "stop": ["three, one"], "stop_token_ids": [17], "logprobs": 0}),
    ([STORY, "The king"], {**SEARCH, "n": 1, "best_of": 4, "length_penalty": 0.6}),
    ("A child:", {"temperature": 1.3, "logprobs": 1, "n": 2,
                  "response_format": {"type": "json_schema", "json_schema": {"name": "child", "schema": SCHEMA}}}),
    ("Numbers:", {"temperature": 1.3, "structured_outputs": {"regex": "( [a-z]{1,6},){6}"}, "n": 2}),
    ("He said:", {"temperature": 1.0, "structured_outputs": {"grammar": GRAMMAR}}),
    ("A cat or a dog?", {"temperature": 1.0, "structured_outputs": {"choice": [" a cat", " a dog", " a catfish"]}}),
    (PREFIX, {"temperature": 0, "prompt_logprobs": 3, "max_tokens": 4}),
    (PROMPTS, {"max_tokens": 0, "echo": True, "logprobs": 4}),
    (STORY, {"temperature": 1.3, "allowed_token_ids": list(range(200, 1200)), "logprobs": 1}),
    (IDS[:330], {"temperature": 0.8, "kv_policy": WINDOW, "logprobs": 1}),
    (IDS, {"temperature": 0, "kv_policy": HITTERS, "logprobs": 1, "ignore_eos": True}),
    (IDS[:300], {"temperature": 1.0, "logprobs": 1, "cache_salt": "mine", "max_tokens": 16}),
    (PREFIX + " went", {"temperature": 1.0, "stream": True, "stream_options": {"include_usage": True}}),
])  # fmt: skip
STORY_JOBS.append((CHAT, {
    "messages": [{"role": role, "content": text} for role, text in SPOKEN], "max_tokens": 24, "seed": 5, "n": 2,
    "temperature": 0.9, "logprobs": True, "top_logprobs": 3, "return_token_ids": True,
}))  # fmt: skip
RANDOM_JOBS = numbered([
    (BYTES, {"temperature": 0, "logprobs": 5, "ignore_eos": True}),
    (BYTES[:40], {"temperature": 0.7, "top_p": 0.9, "logprobs": 3}),
    (LIST, {"temperature": 1.3, "top_k": 30, "min_p": 0.01, "n": 2, "logprobs": 1}),
    (BYTES[:100], {**SEARCH, "n": 2, "best_of": 3}),
    (BYTES[:260] + [7, 8], {"temperature": 1.0, "logprobs": 2, "repetition_penalty": 1.3}),
    (BYTES[:270], {"max_tokens": 4, "echo": True, "logprobs": 3, "prompt_logprobs": 1, "temperature": 0}),
    ("Numbers:", {"temperature": 1.0, "structured_outputs": {"regex": "( [a-z]{1,6},){3}"}, "logprobs": 1}),
    ([BYTES[:33], [1], BYTES[:17]], {"temperature": 0, "logprobs": 1, "presence_penalty": 0.5, "logit_bias": {"9": 1}}),
    (BYTES[:100], {"temperature": 0.8, "min_tokens": 10, "logprobs": 0}),
])  # fmt: skip
LOSSY_JOBS = numbered([
    (BYTES, {"temperature": 0.9, "kv_policy": WINDOW, "logprobs": 1}),
    (BYTES, {"temperature": 0.9, "kv_policy": HITTERS, "logprobs": 1}),
])
SIMULATED_JOBS = numbered([
    ([5, 80, 33], {"temperature": 0, "logprobs": 5, "ignore_eos": True, "max_tokens": 5}),
    (BYTES[:19], {"temperature": 0.9, "top_p": 0.95, "logprobs": 2, "max_tokens": 5}),
    ([1], {"temperature": 1.2, "top_k": 40, "n": 2, "logprobs": 1, "max_tokens": 4}),
    (BYTES[:21], {"temperature": 0, "echo": True, "logprobs": 1, "max_tokens": 2}),
    (BYTES[:16] + [9], {"temperature": 1.0, "repetition_penalty": 1.3, "min_p": 0.01, "max_tokens": 4}),
])
VECTORS = ({}, {"pooling": "mean"}, {"normalize": False}, {"pooling": "mean", "normalize": False, "dimensions": 7})
EMBEDDING_JOBS = [(EMBEDDINGS, {"input": value, **more}) for value in (PROMPTS, BYTES[:200]) for more in VECTORS]


# ---- configurations

TREE = {"num_speculative_tokens": 12, "topk": 3}
SMALL = {"model": "{models}/stories_draft_model"}
MEDUSA = {"model": "{models}/stories_medusa"}
PARTS = {"sinks": 16, "window": 16}
DRAFTERS = [
    {"method": "eagle3"},
    {"method": "eagle3", **TREE},
    {"method": "eagle3", "shared_noise": False},
    {"method": "eagle", "model": "{eagle}"},
    {"method": "eagle", "model": "{eagle}", **TREE},
    {"method": "medusa", **MEDUSA},
    {"method": "medusa", **MEDUSA, **TREE},
    {"method": "hydra", "model": "{hydra}"},
    {"method": "hydra", "model": "{hydra}", **TREE},
    {"method": "draft_model", **SMALL},
    {"method": "draft_model", **SMALL, **TREE},
    {"method": "specinfer", "model": [SMALL["model"], "{models}/stories"], "num_speculative_tokens": 8},
    {"method": "layer_skip", "exit_layer": 3},
    {"method": "layer_skip", "exit_layer": 3, **TREE},
    {"method": "draft_verify"},
    {"method": "draft_verify", **TREE},
    {"method": "magicdec", **PARTS},
    {"method": "magicdec", **PARTS, **TREE},
    {"method": "triforce", **PARTS, **SMALL},
    {"method": "ngram", "prompt_lookup_min": 1},
    {"method": "suffix"},
    {"method": "suffix", **TREE},
    {"method": "rest", "datastore": "{datastore}"},
    {"method": "rest", "datastore": "{datastore}", **TREE},
    {"method": "lookahead"},
    {"method": "lookahead", "window": 5, "ngram_size": 4},
    {"method": "hybrid"},
]
# Tokens depend on the drafts, and drafts on who else is there: one request at a time, each in a mode of its own.
LAWFUL = [
    {"method": "eagle3", "accept": "ratio"},
    {"method": "eagle3", "accept": "ratio", **TREE},
    {"method": "eagle3", "accept": "block"},
    {"method": "draft_model", "accept": "block", **SMALL},
    {"method": "ngram", "accept": "ratio", "prompt_lookup_min": 1},
]
QUANTIZED = ("none", "int8", "int4", "fp8", "w8a8", "w4a8", "w16a16")
CACHES = ("auto", "f32", "bf16", "fp8", "int8", "int4")
# Every type of weights and every type of the cache, one of each at a time.
PAIRS = (("none", "auto"), ("w8a8", "int8"), ("w4a8", "int4"), ("w16a16", "fp8"), ("int8", "f32"), ("int4", "bf16"),
         ("fp8", "auto"))  # fmt: skip
ISAS = {  # what /proc/cpuinfo says where a machine has it
    "scalar": "",
    "avx2": "avx2 fma",
    "avx512": "avx512f avx512bw avx512vl",
    "avx512vnni": "avx512f avx512bw avx512vl avx512_vnni",
    "avx512bf16": "avx512f avx512bw avx512vl avx512_vnni avx512_bf16",
}
SETTINGS = {  # flags that change no answer
    "blocks of 16": ("--block-size", "16"),
    "blocks of 32": ("--block-size", "32"),
    "blocks of 64": ("--block-size", "64"),
    "blocks of 256": ("--block-size", "256"),
    "one thread": ("--threads", "1"),
    "three threads": ("--threads", "3"),
    "no prefix cache": ("--prefix-caching", "off"),
    "prompts in pieces": ("--max-num-batched-tokens", "33", "--max-num-seqs", "8"),
    "the longest prefix first": ("--max-num-seqs", "4", "--scheduling-policy", "cache"),
    "tenants": ("--max-num-seqs", "4", "--scheduling-policy", "fair"),
    "weights packed": ("--packed-cache", "{packed}"),
    "packed weights mapped": ("--packed-cache", "{packed}"),
}
TIGHT = (  # memory for the longest request and some more
    ("1536KiB", {"method": "none"}, "auto"),
    ("10MiB", {"method": "eagle3", "adaptive": False, **TREE}, "auto"),
    ("2560KiB", {"method": "suffix", "adaptive": False}, "auto"),
    ("3MiB", {"method": "none"}, "int4"),
)
FEW_BLOCKS = ("--max-model-len", "384", "--max-num-seqs", "20", "--kv-debug", "check,poison")
SIMULATED = ("--threads", "1", "--max-num-batched-tokens", "16", "--max-num-seqs", "4")
FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
DTYPES = {"f32": ("F32", "float32"), "f16": ("F16", "float16"), "bf16": ("BF16", "bfloat16")}


def guessing(config):
    return ("--speculative-config", json.dumps({"adaptive": False, **config}))


def name_of(config):
    """A drafter's settings, without paths."""
    keys = ("num_speculative_tokens", "topk", "window", "shared_noise", "accept")
    return ", ".join([config["method"], *(f"{key} {config[key]}" for key in keys if key in config)])


def typed(quantize="none", cache="auto", isa="auto"):
    return ("--quantize", quantize, "--kv-cache-dtype", cache, "--isa", isa)


def mode_of(model, quantize="none", cache="auto"):
    """The numeric mode of a checkpoint in these types."""
    stored = "bf16" if model == "stories" or model.endswith("bf16") else "f32"
    return f"{model}, weights {quantize}, cache {stored if cache == 'auto' else cache}"


def stories(name, *flags, jobs=STORY_JOBS, mode=mode_of("stories"), happens=(FOUND,), **more):
    return Configuration(f"stories, {name}", flags, jobs, mode, happens, **more)


def of_stories(isas):
    nobody = {"method": "none"}
    yield stories("as it comes")  # adaptive: in company few guesses pay, or none
    yield stories("none", "--speculative-config", json.dumps(nobody))
    for config in DRAFTERS:
        yield stories(name_of(config), *guessing(config), happens=(FOUND, DRAFTED))
    for config in LAWFUL:
        name = name_of(config)
        yield stories(name, *guessing(config), mode=name, happens=(FOUND, DRAFTED), streams=1)
    for cache in CACHES:
        yield stories(f"cache {cache}", *typed(cache=cache), mode=mode_of("stories", cache=cache))
    for quantize in QUANTIZED:
        yield stories(f"weights {quantize}", *typed(quantize), mode=mode_of("stories", quantize))
    for name, flags in SETTINGS.items():
        yield stories(name, *flags, happens=() if "off" in flags else (FOUND,))
    for memory, config, cache in TIGHT:
        name, flags = f"preempted, {name_of(config)}, cache {cache}", ("--kv-cache-memory", memory, *FEW_BLOCKS)
        flags += (*typed(cache=cache), "--speculative-config", json.dumps(config))
        yield stories(name, *flags, mode=mode_of("stories", cache=cache), happens=(PREEMPTED,), streams=20)
    for isa in isas:
        jobs = BRIEF_JOBS[:4] if isa == "scalar" else BRIEF_JOBS
        for quantize, cache in PAIRS:
            flags, mode = typed(quantize, cache, isa), mode_of("stories", quantize, cache)
            yield stories(f"{isa}, weights {quantize}, cache {cache}", *flags, jobs=jobs, mode=mode, happens=())
        yield stories(f"{isa}, embeddings", "--isa", isa, jobs=EMBEDDING_JOBS, happens=())


def of_random_model(family, dtype, name, *flags, quantize="none", cache="auto", jobs=RANDOM_JOBS, happens=(FOUND,)):
    model = f"{family}-{dtype}"
    flags, mode = ("--model", f"{{random}}/{model}", *flags), mode_of(model, quantize, cache)
    return Configuration(f"{model}, {name}", flags, jobs, mode, happens)


def of_random_models(isas):
    for family in FAMILIES:
        for dtype in DTYPES:
            lossy = [] if family == "mistral" else LOSSY_JOBS  # its own window is refused beside theirs
            yield of_random_model(family, dtype, "as it comes", jobs=RANDOM_JOBS + lossy + EMBEDDING_JOBS)
            for isa in isas:
                yield of_random_model(family, dtype, isa, "--isa", isa)
            for config in ({"method": "layer_skip", "exit_layer": 1, "topk": 2}, {"method": "suffix"}):
                yield of_random_model(family, dtype, name_of(config), *guessing(config), happens=(FOUND, DRAFTED))
        for quantize, cache in PAIRS:
            name, flags = f"weights {quantize}, cache {cache}", typed(quantize, cache)
            yield of_random_model(family, "f32", name, *flags, quantize=quantize, cache=cache)


def of_simulated_gpu():
    def simulated(family, dtype, name, *flags, jobs=SIMULATED_JOBS, happens=(), **types):
        one = of_random_model(family, dtype, name, *SIMULATED, *flags, jobs=jobs, happens=happens, **types)
        name, mode = f"simulated, {one.name}", f"simulated, {one.mode}"
        return dataclasses.replace(one, name=name, mode=mode, streams=4, simulated=True)

    for dtype in ("f32", "bf16"):
        yield simulated("tiny", dtype, "one rank", jobs=SIMULATED_JOBS + EMBEDDING_JOBS[-2:])
        yield simulated("tiny", dtype, "two ranks", "--tensor-parallel-size", "2")
        for family in FAMILIES:
            yield simulated(family, dtype, "one rank")
    yield simulated("tiny", "bf16", "lossy", jobs=LOSSY_JOBS)
    for config in ({"method": "layer_skip", "exit_layer": 1, "topk": 2}, {"method": "draft_verify"},
                   {"method": "lookahead", "window": 2, "ngram_size": 3}):  # fmt: skip
        yield simulated("tiny", "bf16", name_of(config), *guessing(config), happens=(DRAFTED,))
    for quantize in QUANTIZED[1:]:
        yield simulated("tiny", "bf16", f"weights {quantize}", *typed(quantize), quantize=quantize)
    for cache in CACHES[1:]:
        yield simulated("tiny", "bf16", f"cache {cache}", *typed(cache=cache), cache=cache)


def configurations(isas=tuple(ISAS), simulated=True):
    return [*of_stories(isas), *of_random_models(isas), *(of_simulated_gpu() if simulated else ())]


def isas_here():
    """Those that the processor has, by its flags."""
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    here = set(cpuinfo.read_text().split()) if cpuinfo.exists() else set()
    return tuple(isa for isa, flags in ISAS.items() if set(flags.split()) <= here)


# ---- what servers are started with


def shapes_of(family, hidden, width, heads, kv_heads, head, layers):
    """name → shape of a checkpoint's tensors."""
    vocab = {"model.embed_tokens.weight": [260, hidden], "lm_head.weight": [260, hidden]}
    shapes = {**vocab, "model.norm.weight": [hidden]}
    for layer in range(layers):
        parts = {
            "input_layernorm.weight": [hidden],
            "post_attention_layernorm.weight": [hidden],
            "mlp.gate_proj.weight": [width, hidden],
            "mlp.up_proj.weight": [width, hidden],
            "mlp.down_proj.weight": [hidden, width],
            "self_attn.o_proj.weight": [hidden, heads * head],
        }
        for part, rows in (("q", heads * head), ("k", kv_heads * head), ("v", kv_heads * head)):
            parts[f"self_attn.{part}_proj.weight"] = [rows, hidden]
            if family == "qwen2":
                parts[f"self_attn.{part}_proj.bias"] = [rows]
            if family == "qwen3" and part != "v":
                parts[f"self_attn.{part}_norm.weight"] = [head]
        shapes |= {f"model.layers.{layer}.{name}": shape for name, shape in parts.items()}
    return shapes


def encoded(values, stored):
    if stored == "F16":
        return struct.pack(f"<{len(values)}e", *values)
    single = array.array("f", values).tobytes()
    return single if stored == "F32" else array.array("H", single)[1::2].tobytes()


def write_model(folder, family, dtype, hidden, width, heads=4, kv_heads=2, layers=2):
    """A checkpoint of numbers drawn by the names of its tensors, large enough that attention looks at content."""
    stored, spelled = DTYPES[dtype]
    head = hidden // heads + (8 if family == "qwen3" else 0)
    header, data = {}, bytearray()
    for name, shape in shapes_of(family, hidden, width, heads, kv_heads, head, layers).items():
        chance, begin = random.Random(f"{family} {name}"), len(data)
        middle, reach = (1.0 if "norm" in name else 0.0), (1.0 if "embed" in name else 0.22)
        count = shape[0] * (shape[1] if len(shape) == 2 else 1)
        data += encoded([middle + reach * (2 * chance.random() - 1) for _ in range(count)], stored)
        header[name] = {"dtype": stored, "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "tokenizer.json").write_text(json.dumps(byte_tokenizer()))
    (folder / "config.json").write_text(json.dumps({
        "architectures": [f"{family.capitalize()}ForCausalLM"], "model_type": family, "vocab_size": 260,
        "hidden_size": hidden, "intermediate_size": width, "num_hidden_layers": layers, "num_attention_heads": heads,
        "num_key_value_heads": kv_heads, "head_dim": head, "max_position_embeddings": 512, "rope_theta": 10000.0,
        "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": False, "torch_dtype": spelled,
        "bos_token_id": 0, "eos_token_id": 0, "sliding_window": 24 if family == "mistral" else None,
    }))  # fmt: skip


def made_in(folder, program):
    """Heads, a datastore and models, made in `folder`: what stands in flags → its path."""
    places = {f"{{{name}}}": folder / name for name in ("eagle", "hydra", "packed", "random", "datastore")}
    for name in ("eagle", "hydra", "packed"):
        (folder / name).mkdir()
    write_eagle(folder / "eagle")
    write_hydra(folder / "hydra", prefix=True)
    for dtype in DTYPES:
        for family in FAMILIES:
            write_model(folder / "random" / f"{family}-{dtype}", family, dtype, hidden=96, width=172)
        write_model(folder / "random" / f"tiny-{dtype}", "llama", dtype, hidden=64, width=96)
    lines = (f"{STORY} ball. One day she lost it.\n", f"{LIST} three, one, two, three.\n", f"{PREFIX} cried.\n")
    (folder / "text.txt").write_text("".join(lines) * 10)
    model, text, store = ROOT / "models" / "stories", folder / "text.txt", folder / "datastore"
    command = [program, "build-datastore", "--model", model, "--text", text, "--output", store]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return {"{models}": ROOT / "models", **places}


# ---- answers


def sha(value):
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def parts_of(answer):
    """The parts of an answer that must be equal: its tokens, and its scores."""
    counts = {name: answer["usage"][name] for name in COUNTS if name in answer["usage"]}
    if "data" in answer:
        return counts, [one["embedding"] for one in answer["data"]]
    apart = ("logprobs", "prompt_logprobs")
    scores = [[choice.get(name) for name in apart] for choice in answer["choices"]]
    said = [{name: value for name, value in choice.items() if name not in apart} for choice in answer["choices"]]
    return [said, counts], scores


def ask(server, conftest, job):
    """The digests of one answer: of its tokens, of its scores."""
    path, body = job
    if body.get("stream"):
        with server.stream(**{name: value for name, value in body.items() if name != "stream"}) as events:
            texts, usage = conftest.choices_of(events)
        return [sha([texts, {name: usage[name] for name in COUNTS}]), sha(None)]
    answer = server.post_to(path, body)
    if answer.status != 200:
        raise RuntimeError(f"{answer.status} {answer.text} for {json.dumps(body)[:1000]}")
    return [sha(part) for part in parts_of(answer.json)]


def run(one, conftest, places):
    """Starts the server, asks, stops it: what a report says of the configuration."""
    flags = ["--device", "simulated" if one.simulated else "cpu", *one.flags]
    for name, path in places.items():
        flags = [flag.replace(name, str(path)) for flag in flags]
    began = time.monotonic()
    server = conftest.Server(*flags)
    try:
        with concurrent.futures.ThreadPoolExecutor(one.streams) as pool:
            answers = list(pool.map(lambda job: ask(server, conftest, job), one.jobs))
        metrics = server.metrics()
    finally:
        code = server.stop()
    if code != 0:
        raise RuntimeError(f"the server ended with {code}: {server.log[-4000:]}")
    missing = [name for name in one.happens if not metrics[name] > 0]
    if missing:
        raise RuntimeError(f"{', '.join(missing)} stayed 0")
    return {"mode": one.mode, "flags": list(one.flags), "requests": sha(one.jobs), "digest": sha(answers),
            "answers": answers, "seconds": round(time.monotonic() - began, 1)}  # fmt: skip


def unlike_answers(configurations, conftest, places, monkeypatch):
    """Runs them, those of the simulated GPU with the program that has one: (lines of unlike(), reports)."""
    reports, jobs = {}, {}
    for one in configurations:
        monkeypatch.setattr(conftest, "BINARY", conftest.BINARY.with_name("quire-simulated" if one.simulated else "quire"))
        reports[one.name], jobs[one.name] = run(one, conftest, places), one.jobs
    return unlike(reports, jobs), reports


def unlike(reports, jobs_of):
    """Lines about answers of one mode that are not those of the first configuration that was asked the same."""
    first, lines = {}, []
    for name, report in reports.items():
        for number, (job, answer) in enumerate(zip(jobs_of[name], report["answers"], strict=True)):
            known = first.setdefault((report["mode"], sha(job)), (name, number, answer))
            if known[2] != answer:
                lines.append(f"{name}, request {number}: another answer than request {known[1]} of {known[0]}")
    return lines


def differences(before, after):
    """Lines about configurations that differ between two reports."""
    lines = []
    for name in dict.fromkeys([*before, *after]):
        if name not in after or name not in before:
            lines.append(f"{name}: only in the {'first' if name in before else 'second'} report")
        elif any(before[name][key] != after[name][key] for key in ("requests", "flags")):
            lines.append(f"{name}: asked or started otherwise, so nothing is known")
        elif before[name]["digest"] != after[name]["digest"]:
            pairs = list(enumerate(zip(before[name]["answers"], after[name]["answers"], strict=True)))
            tokens, scores = ([number for number, (a, b) in pairs if a[part] != b[part]] for part in (0, 1))
            lines.append(f"{name}: of {len(pairs)} answers tokens differ in {tokens}, scores in {scores}")
    return lines


def compare(paths):
    before, after = (json.loads(pathlib.Path(path).read_text())["configurations"] for path in paths)
    lines = differences(before, after)
    num = sum(len(report["answers"]) for report in before.values())
    print("\n".join(lines) or f"equal: {len(before)} configurations, {num} requests")
    return 1 if lines else 0


def measure(args):
    for name in [name for name in os.environ if name.startswith("QUIRE_")]:
        del os.environ[name]  # settings of the server

    import conftest  # how tests start servers; the client libraries that it brings along take a second to import

    with_gpu = args.simulated.exists()
    if not with_gpu:
        print(f"the simulated GPU is left out: there is no {args.simulated}")
    asked = [one for one in configurations(isas_here(), with_gpu) if args.only in one.name]
    began, reports, failed = time.monotonic(), {}, []
    with tempfile.TemporaryDirectory() as folder:
        places = made_in(pathlib.Path(folder), args.program.resolve())
        for one in asked:
            conftest.BINARY = (args.simulated if one.simulated else args.program).resolve()
            try:
                report = reports[one.name] = run(one, conftest, places)
                print(f"{report['digest']}  {one.name}: {len(one.jobs)} requests, {report['seconds']} s", flush=True)
            except Exception as error:  # the others are of use all the same
                failed.append(f"{one.name}: {type(error).__name__} {error}")
                print(failed[-1], flush=True)
    digest = sha([[name, report["digest"]] for name, report in reports.items()])
    num = sum(len(report["answers"]) for report in reports.values())
    print(f"{digest}  all: {len(reports)} configurations, {num} requests, {time.monotonic() - began:.0f} s")
    if args.out:
        report = {"digest": digest, "requests": num, "configurations": reports}
        args.out.write_text(json.dumps(report, indent=1) + "\n")
    wrong = unlike(reports, {one.name: one.jobs for one in asked})
    modes = len({report["mode"] for report in reports.values()})
    print("\n".join(wrong) or f"configurations of one numeric mode answer alike, in each of {modes} modes")
    if failed:
        print(f"not asked: {len(failed)} configurations, see above")
    return 1 if wrong or failed else 0


def main(words=None):
    build = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", ROOT / "build" / "release"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", type=pathlib.Path, default=build / "quire", help="quire")
    parser.add_argument("--simulated", type=pathlib.Path, default=build / "quire-simulated",
                        help="quire-simulated; where there is none, the GPU is left out")  # fmt: skip
    parser.add_argument("--only", default="", metavar="WORD", help="configurations with this in their name")
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE", help="a report, for --compare")
    parser.add_argument("--compare", nargs=2, metavar=("BEFORE", "AFTER"), help="two reports: 1 where they differ")
    args = parser.parse_args(words)
    return compare(args.compare) if args.compare else measure(args)


if __name__ == "__main__":
    sys.exit(main())
