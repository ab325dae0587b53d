"""llama.cpp's own converter, from the sources of the package llama-cpp-python, on a checkpoint without a tokenizer.

    python gguf_converter.py LLAMA_CPP CHECKPOINT OUT.gguf [ARCHITECTURE]

LLAMA_CPP is a folder with conversion/ and gguf-py/. ARCHITECTURE stands for that of config.json. The vocabulary
is drawn up here: bytes, and tokens for the rest.
"""

import json
import pathlib
import subprocess
import sys
import tarfile

PACKAGE = "llama-cpp-python==0.3.36"
BUILD_BACKEND = "scikit-build-core==0.11.6"


def sources(folder, install):
    """The folder with the converter, made once; `install` runs a command or skips."""
    place = folder / "llama.cpp"
    if not (place / "conversion").is_dir():
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True, capture_output=True, timeout=600)
        pip = folder / "venv/bin/pip"
        install([pip, "install", "-q", BUILD_BACKEND], BUILD_BACKEND)
        install([pip, "download", "-q", "--no-deps", "--no-build-isolation", "--no-binary", ":all:", PACKAGE, "-d", folder], PACKAGE)
        (archive,) = folder.glob("llama_cpp_python-*.tar.gz")
        with tarfile.open(archive) as tar:
            for member in tar.getmembers():
                inside = member.name.partition("/vendor/llama.cpp/")[2]
                if inside.startswith(("conversion/", "gguf-py/gguf/")) and member.isfile():
                    member.name = inside
                    tar.extract(member, place, filter="data")
        archive.unlink()
    return place


def bytes_to_unicode():
    """GPT-2's alphabet of bytes."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {**{byte: chr(byte) for byte in visible}, **{byte: chr(256 + place) for place, byte in enumerate(hidden)}}


def convert(llama_cpp, checkpoint, out, architecture=None):
    sys.path[:0] = [str(llama_cpp), str(llama_cpp / "gguf-py")]
    import gguf
    from conversion import ModelBase, ModelType, get_model_class

    config = json.loads((checkpoint / "config.json").read_text())
    alphabet = list(bytes_to_unicode().values())
    tokens = alphabet + [f"<{place}>" for place in range(len(alphabet), config["vocab_size"] - 1)] + [alphabet[0] + alphabet[1]]
    (checkpoint / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {token: place for place, token in enumerate(tokens)}}, "added_tokens": []}))

    def set_vocab(self):
        writer = self.gguf_writer
        writer.add_tokenizer_model("gpt2"), writer.add_tokenizer_pre("gpt-2"), writer.add_token_list(tokens)
        writer.add_token_types([gguf.TokenType.NORMAL] * len(tokens)), writer.add_token_merges([f"{alphabet[0]} {alphabet[1]}"])

    kind = get_model_class(str(architecture or config["architectures"][0]))
    kind.set_vocab = set_vocab
    if hasattr(kind, "Ministral3Model"):  # `kind` hands everything on to it
        kind.Ministral3Model.set_vocab = set_vocab
    if hasattr(kind, "_stack_qk_norm"):  # a generator returns what it ought to yield: StableLM's norms of heads get lost in this version
        changed = kind.modify_tensors

        def modify_tensors(self, *tensor):
            stacked = yield from changed(self, *tensor)
            yield from stacked or ()

        kind.modify_tensors = modify_tensors
    hparams = {**config, **ModelBase.load_hparams(checkpoint, False)}  # transformers drops keys that the converter asks for
    kind(checkpoint, gguf.LlamaFileType.ALL_F32, out, eager=True, hparams=hparams).write()
    (checkpoint / "tokenizer.json").unlink()
    del ModelType


if __name__ == "__main__":
    convert(*(pathlib.Path(word) for word in sys.argv[1:]))
