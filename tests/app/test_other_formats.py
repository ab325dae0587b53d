"""What is given for a model and is none is told for what it is, with the next step, by every command, of models and of drafts."""

import json
import shutil

import pytest
from test_cli import ROOT, quire

STORIES = ROOT / "models" / "stories"
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n"


def with_config(**fields):
    return json.dumps(json.loads((STORIES / "config.json").read_text()) | fields)


# What lies in the directory, beside or instead of a whole model's files, and what is said of it.
WHOLE = ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
WITHOUT_WEIGHTS = [name for name in WHOLE if name != "model.safetensors"]
KINDS = {
    "GGUF": ([], {"tales-Q4_K_M.gguf": "GGUF"}, ["tales-Q4_K_M.gguf: the version at byte 4 needs 4 bytes"]),
    "GGUF beside config.json": (WITHOUT_WEIGHTS, {"tales.gguf": "GGUF"}, ["holds GGUF (tales.gguf)"]),
    "a LoRA adapter": ([], {"adapter_config.json": '{"peft_type": "LORA", "base_model_name_or_path": "a/b"}', "adapter_model.safetensors": "x"},
                       ["is a LoRA adapter for a/b", "merge_and_unload()"]),
    "a LoRA adapter beside its tokenizer": (WITHOUT_WEIGHTS, {"adapter_config.json": "{}"}, ["is a LoRA adapter"]),
    "a pickle": (WITHOUT_WEIGHTS, {"pytorch_model.bin": "PK\3\4"}, ["pytorch_model.bin is a pickle", "save_pretrained("]),
    "pickled shards": (WITHOUT_WEIGHTS, {"pytorch_model-00001-of-00002.bin": "PK\3\4"}, ["pytorch_model-00001-of-00002.bin is a pickle"]),
    "Meta's pickle": ([], {"consolidated.00.pth": "PK", "params.json": "{}", "tokenizer.model": "x"}, ["Meta's own layout"]),
    "AQLM": (WHOLE, {"config.json": with_config(quantization_config={"quant_method": "aqlm", "bits": 2})}, ["quantised by AQLM to 2 bits"]),
    "HQQ": (WHOLE, {"config.json": with_config(quantization_config={"quant_method": "hqq"})}, ["quantised by HQQ", "--quantize int4"]),
    "MLX": (WHOLE, {"config.json": with_config(quantization={"group_size": 64, "bits": 8})}, ["quantised by MLX to 8 bits", "--quantize int8"]),
    "a cache of the hub": ([], {"snapshots/0123/config.json": "{}"}, ["give its snapshot: ", "snapshots/0123"]),
    "a store of ollama": ([], {"blobs/sha256-0": "GGUF", "manifests/x": ""}, ["store of ollama"]),
    "an engine of TensorRT-LLM": ([], {"config.json": '{"pretrained_config": {}}', "rank0.engine": "x"}, ["engine of TensorRT-LLM"]),
    "a model of ONNX Runtime": (WITHOUT_WEIGHTS, {"model.onnx": "x"}, ["ONNX Runtime"]),
    "a training run": ([], {"checkpoint-10/config.json": "{}"}, ["training run", "checkpoint-10"]),
    "a pointer of Git LFS": (WHOLE, {"model.safetensors": POINTER}, ["is a Git LFS pointer", "git lfs pull"]),
    "a tokenizer's pointer": (WHOLE, {"tokenizer.json": POINTER}, ["tokenizer.json is a Git LFS pointer"]),
    "a web page": (WHOLE, {"config.json": "<!doctype html><html>"}, ["is a web page", "download it again"]),
    "a tokenizer of SentencePiece": ([name for name in WHOLE if name != "tokenizer.json"], {"tokenizer.model": "x"},
                                     ["tokenizer in an older form (tokenizer.model)", "AutoTokenizer"]),
}
COMMANDS = {
    "serve": ["serve", "--port", "0", "--model"],
    "serve --plan": ["serve", "--plan", "--model"],
    "generate": ["generate", "--prompt", "Once", "--model"],
}


@pytest.fixture
def make(tmp_path):
    def made(kind):
        names, files, _ = KINDS[kind]
        folder = tmp_path / "given"
        folder.mkdir()
        for name in names:
            shutil.copy(STORIES / name, folder / name)
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        return folder
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_each_command_reports_what_a_directory_is_and_the_next_step(make, kind):
    folder = make(kind)
    for name, command in COMMANDS.items():
        done = quire(*command, str(folder))
        assert done.returncode == 2, (name, done.stdout, done.stderr)
        for part in KINDS[kind][2]:
            assert part in done.stderr, name


@pytest.mark.parametrize("given, told", [
    ("someone/tales-1B", "someone/tales-1B is not in"),
    ("https://huggingface.co/someone/tales-1B/tree/main", "is given by its name alone: someone/tales-1B"),
    ("tales:1b", "a name of ollama"),
    ("tales-1B", "there is no such directory"),
    (str(STORIES / "model.safetensors"), f"give its directory: {STORIES}"),
])
def test_each_command_reports_what_a_name_or_a_file_is(given, told):
    for name, command in COMMANDS.items():
        done = quire(*command, given)
        assert done.returncode == 2 and told in done.stderr, (name, done.stderr)


# config.json is a head's or a model's; what is there instead of its weights is told alike.
HEADS = {
    "medusa": {"medusa_num_heads": 3, "medusa_num_layers": 1},
    "hydra": {"hydra_num_heads": 3, "hydra_num_layers": 1, "hydra_head_arch": "mlp"},
}


@pytest.mark.parametrize("method, pickle", [
    ("medusa", "medusa_lm_head.pt"), ("hydra", "hydra_lm_head.pt"), ("medusa", "pytorch_model.bin"), ("draft_model", "pytorch_model.bin"),
    ("eagle", "pytorch_model.bin"), ("specinfer", "pytorch_model.bin"), ("triforce", "pytorch_model.bin")])
def test_a_pickle_is_recognised_where_a_draft_is_served_and_planned(tmp_path, method, pickle):
    config = json.loads((STORIES / "config.json").read_text())
    config = HEADS.get(method, config | ({"architectures": ["LlamaForCausalLMEagle"], "num_hidden_layers": 1} if method == "eagle" else {}))
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / pickle).write_text("PK\3\4")
    names = [str(tmp_path)] * (2 if method == "specinfer" else 1)
    settings = {"method": method, "num_speculative_tokens": 2, "model": names if len(names) > 1 else names[0]}
    for command in (("serve", "--port", "0"), ("serve", "--plan")):
        done = quire(*command, "--model", str(STORIES), "--speculative-config", json.dumps(settings))
        assert done.returncode == 2 and f"{pickle} is a pickle" in done.stderr, (command, done.stderr)


@pytest.mark.parametrize("method", ["draft_model", "eagle3", "medusa"])
@pytest.mark.parametrize("given, told", [("someone/head", "someone/head is not in"), ("GGUF", "head.gguf"), ("LoRA", "is a LoRA adapter")])
def test_a_draft_that_is_no_directory_of_one_is_reported_as_a_model_is(tmp_path, method, given, told):
    if given == "GGUF":
        (tmp_path / "head.gguf").write_text("GGUF")
        given = str(tmp_path / "head.gguf")
    if given == "LoRA":
        (tmp_path / "adapter_config.json").write_text("{}")
        given = str(tmp_path)
    settings = json.dumps({"method": method, "num_speculative_tokens": 2, "model": given})
    for command in (("serve", "--port", "0"), ("serve", "--plan")):
        done = quire(*command, "--model", str(STORIES), "--speculative-config", settings)
        assert done.returncode == 2 and told in done.stderr, (command, done.stderr)
