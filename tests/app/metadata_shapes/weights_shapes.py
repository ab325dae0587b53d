"""model.safetensors.index.json, and what stands in the header of model.safetensors. The weights are always those of the plain checkpoint,
so the answer must be the plain one's. A row's files stand in `beside`: functions of the plain checkpoint's tensors."""

import json
import random

from metadata_shapes import shape
from metadata_shapes.shape import Link, Shape, without
from metadata_shapes.tiny_checkpoints import KINDS, safetensors

INDEX = "model.safetensors.index.json"


def halves(tensors, count=2):
    """Names cut into so many lists, in order."""
    names = list(tensors)
    size = -(-len(names) // count)
    return [names[at:at + size] for at in range(0, len(names), size)]


def numbered(count, stem="model"):
    return [f"{stem}-{at:05d}-of-{count:05d}.safetensors" for at in range(1, count + 1)]


def part(names_of, **header):
    """The file of some of the tensors."""
    return lambda tensors: safetensors({name: tensors[name] for name in names_of(tensors)}, **({"metadata": {"format": "pt"}} | header))


def map_of(tensors, files):
    return {name: file for names, file in zip(halves(tensors, len(files)), files, strict=True) for name in names}


def shards(files, **header):
    parts = {file: part(lambda tensors, at=at: halves(tensors, len(files))[at], **header) for at, file in enumerate(files)}
    return {"model.safetensors": None} | parts


def total(tensors):
    return sum(len(raw) for _, _, raw in tensors.values())


def size_alone(tensors):
    return {"total_size": total(tensors)}


def unchanged(told):
    return told


def index(name, files=None, metadata=size_alone, order=unchanged, written=unchanged, more=None, **header):
    """Shards and their index. `metadata` None: the key is not there; `order` changes weight_map, `written` the text."""
    files = files or numbered(2)

    def text(tensors):
        told = {} if metadata is None else {"metadata": metadata(tensors)}
        return written(told | {"weight_map": order(map_of(tensors, files))})

    return Shape(name, None, beside=shards(files, **header) | {INDEX: text} | (more or {}))


def one(name, change=unchanged, kind="llama", config=None, **header):
    """One file, whose tensors `change` makes of the plain ones."""
    files = {"model.safetensors": lambda tensors: safetensors(change(tensors), **({"metadata": {"format": "pt"}} | header))}
    return Shape(name, None, beside=files | ({"config.json": config} if config else {}), kind=kind)


def shuffled(mapped):
    items = list(mapped.items())
    random.Random(5).shuffle(items)
    return dict(items)


def as_in_the_model(named):
    """The head last, as state_dict() has it; save_pretrained writes names in alphabetical order."""
    return without(named, "lm_head.weight") | {"lm_head.weight": named["lm_head.weight"]}


def with_rope(tensors):
    """Frequencies that Llama's older code saved."""
    frequencies = ("F32", [8], b"\0\0\200\077" * 8)
    return dict(tensors) | {f"model.layers.{layer}.self_attn.rotary_emb.inv_freq": frequencies for layer in range(2)}


def flat(tensors):
    return {name.removeprefix("model."): told for name, told in tensors.items()}


def with_copy_of_head(tensors):
    return dict(tensors) | {"lm_head.weight": tensors["model.embed_tokens.weight"]}


def old_index(tensors):
    return {"metadata": {"total_size": 1}, "weight_map": dict.fromkeys(tensors, "model-00001-of-00009.safetensors")}


def zeros(tensors):
    return safetensors({name: (dtype, size, bytes(len(raw))) for name, (dtype, size, raw) in tensors.items()}, {"format": "pt"})


SHAPES = [
    # ---- the index's metadata
    index("transformers 4.28: total_size, names in alphabetical order", metadata=size_alone),
    index("transformers 4.52: total_parameters beside",
          metadata=lambda tensors: {"total_parameters": total(tensors) // 4, "total_size": total(tensors)}),
    index("mergekit 0.0.4: its version and no size", metadata=lambda tensors: {"mergekit_version": "0.0.4.1"}),
    index("mergekit 0.1: its version beside", metadata=lambda tensors: {"total_size": total(tensors), "mergekit_version": "0.1.4"}),
    index("axolotl's merge of shards: a size that is a fraction", metadata=lambda tensors: {"total_size": float(total(tensors))}),
    index("a size of an exponent",
          metadata=lambda tensors: {}, written=lambda told: json.dumps(told).replace('"metadata": {}', '"metadata": {"total_size": 1.4e+10}')),
    index("a size that is wrong", metadata=lambda tensors: {"total_size": 7}),
    index("a size beyond 64 bits", metadata=lambda tensors: {"total_size": 10**30}),
    index("a size that is a text", metadata=lambda tensors: {"total_size": str(total(tensors))}),
    index("NaN in metadata, as Python's json writes it", metadata=lambda tensors: {"total_size": total(tensors), "mean_loss": float("nan")}),
    index("empty metadata", metadata=lambda tensors: {}),
    index("metadata null", metadata=lambda tensors: None),
    index("no metadata", metadata=None),
    index("more in metadata: objects and lists",
          metadata=lambda tensors: {"total_size": total(tensors), "quantized": False, "source": {"repo": "a/b", "files": [1, 2]}}),
    index("metadata behind weight_map", written=shape.backwards),
    index("unknown keys beside", written=lambda told: told | {"format": "safetensors", "version": 1}),

    # ---- weight_map
    index("names in the model's order", order=as_in_the_model),
    index("names in no order", order=shuffled),
    index("the last first", order=shape.backwards),
    index("three files", numbered(3)),
    index("a file for each tensor", [f"model-{at:05d}-of-00021.safetensors" for at in range(1, 22)]),
    index("mlx: one file, with an index",
          numbered(1), metadata=lambda tensors: {"total_size": total(tensors), "total_parameters": total(tensors) // 4}),
    Shape("one file under its own name, with an index", None, beside={
        INDEX: lambda tensors: {"metadata": {"total_size": total(tensors)}, "weight_map": dict.fromkeys(tensors, "model.safetensors")}}),
    index("numbers from zero", [f"model-{at:05d}-of-00001.safetensors" for at in range(2)]),
    index("lightning's names", ["pytorch_model-00001-of-00002.safetensors", "pytorch_model-00002-of-00002.safetensors"]),
    index("Mistral's names", ["consolidated-00001-of-00002.safetensors", "consolidated-00002-of-00002.safetensors"]),
    index("names with blanks and capitals", ["Model part A.safetensors", "Model part B.SAFETENSORS"]),
    index("an index without the frequencies that a file has", more={numbered(2)[0]: lambda tensors: safetensors(
        {name: told for name, told in with_rope(tensors).items() if name in halves(tensors)[0] or "inv_freq" in name}, {"format": "pt"})}),
    index("unsloth: an index that lacks a tensor of a file it names", order=lambda mapped: dict(list(mapped.items())[1:])),
    index("copies in a file that is not named for them", more={numbered(2)[1]: lambda tensors: safetensors(
        {name: tensors[name] for name in halves(tensors)[1] + halves(tensors)[0][:2]}, {"format": "pt"})}),

    # ---- files beside
    index("Mistral: consolidated.safetensors beside", more={"consolidated.safetensors": zeros, "params.json": {"dim": 64}}),
    index("trl: what training leaves",
          more={"training_args.bin": b"PK", "optimizer.pt": b"PK", "trainer_state.json": {"best_metric": None}, "adapter_model.safetensors": zeros}),
    index("an index of PyTorch's files beside", more={"pytorch_model.bin.index.json": old_index}),
    index("one file that is not named, of an earlier save", more={"model.safetensors": zeros}),
    Shape("one file, and the index of an earlier save whose files are gone", None, beside={INDEX: old_index}),
    index("the hub's cache: links to files of other names", more={
        **{f"blobs/{at}": part(lambda tensors, at=at: halves(tensors)[at]) for at in range(2)},
        **{file: Link(f"blobs/{at}") for at, file in enumerate(numbered(2))}}),
    Shape("one file, and PyTorch's beside", None, beside={"pytorch_model.bin": b"PK", "original/params.json": {"dim": 64}}),

    # ---- how the index is written
    index("an editor's CR LF", written=shape.crlf),
    index("an editor's byte order mark", written=shape.byte_order_mark),
    index("one line without blanks", written=shape.one_line),
    index("every letter escaped", written=shape.all_escaped),
    index("tabs", written=shape.tabs),
    index("a name twice, of which the later counts", written=lambda told: json.dumps(told).replace(
        '"weight_map": {', '"weight_map": {"model.norm.weight": "model-00009-of-00009.safetensors", ')),

    # ---- the header of one file
    one("format pt", metadata={"format": "pt"}),
    one("format mlx", metadata={"format": "mlx"}),
    one("a header without metadata", metadata=None),
    one("a header with empty metadata", metadata={}),
    one("more metadata: of a trainer", metadata={"format": "pt", "step": "1000", "config": json.dumps({"a": [1, 2]}), "unicode": "\u6a21"}),
    one("a header whose metadata comes last", metadata_last=True),
    one("a header that is not padded", pad=False),
    one("tensors in the model's order", as_in_the_model),
    one("tensors in no order", shuffled),
    Shape("data in another order than names", None, beside={
        "model.safetensors": lambda tensors: safetensors(tensors, {"format": "pt"}, data_order=list(shuffled(tensors)))}),
    one("keys of a tensor in another order", keys=("data_offsets", "shape", "dtype")),
    one("transformers 4.28: frequencies of each layer", with_rope),
    one("transformers 4.45: frequencies of the model", lambda tensors: dict(tensors) | {"model.rotary_emb.inv_freq": ("F32", [8], bytes(32))}),
    one("tied, with a copy of the embedding as the head", with_copy_of_head, kind="llama_tied"),
    one("sentence-transformers, Qwen3-Embedding: names without `model.`", flat, kind="qwen3"),
    Shape("Qwen3-Embedding of two files: names without `model.`", None, kind="qwen3", beside={
        "model.safetensors": None,
        **{file: lambda tensors, at=at: safetensors({name: flat(tensors)[name] for name in halves(flat(tensors))[at]}, {"format": "pt"})
           for at, file in enumerate(numbered(2))},
        INDEX: lambda tensors: {"metadata": {"total_size": total(tensors)}, "weight_map": map_of(flat(tensors), numbered(2))}}),
    one("torch_dtype in config.json is not the file's", config=KINDS["llama"] | {"torch_dtype": "bfloat16"}),
]
