"""Files of draft heads as other programs write them: heads inside a whole model, and pickles that are converted first."""
import json
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT, Server

STORIES, MEDUSA = ROOT / "models/stories", ROOT / "models/stories_medusa"
CONVERT = ROOT / "models/convert_head.py"
JOB = {"prompt": "Once upon a time there was a little girl.", "max_tokens": 48, "temperature": 0}

torch = pytest.importorskip("torch", reason="pickles are written by torch")
from safetensors.torch import load_file, save_file  # noqa: E402


def answer_and_drafts(model, head=None):
    config = {"method": "medusa", "model": str(head), "adaptive": False} if head else {"method": "none"}
    server = Server("--model", model, "--speculative-config", json.dumps(config))
    try:
        text = server.text(**JOB)
        return text, server.metrics().get("vllm:spec_decode_num_draft_tokens_total", 0)
    finally:
        server.stop()


@pytest.fixture(scope="module")
def plain():
    return answer_and_drafts(STORIES)[0]


def test_a_whole_model_with_medusa_heads_inside_is_served_and_drafts_for_itself(tmp_path, plain):
    shutil.copytree(STORIES, tmp_path / "model")
    whole = load_file(STORIES / "model.safetensors")
    whole.update({f"medusa_head.{name}": tensor for name, tensor in load_file(MEDUSA / "model.safetensors").items()})
    save_file(whole, tmp_path / "model/model.safetensors")
    config = json.loads((STORIES / "config.json").read_text())
    config.update({key: value for key, value in json.loads((MEDUSA / "config.json").read_text()).items() if key.startswith("medusa_")})
    (tmp_path / "model/config.json").write_text(json.dumps(config))
    text, drafts = answer_and_drafts(tmp_path / "model", tmp_path / "model")
    assert text == plain and drafts > 0
    assert answer_and_drafts(tmp_path / "model")[0] == plain, "the model alone is served without its heads"


def convert(path):
    return subprocess.run([sys.executable, CONVERT, path], capture_output=True, text=True, timeout=120)


def test_a_pickle_is_converted_to_a_file_of_the_same_tensors_that_is_served(tmp_path, plain):
    tensors = load_file(MEDUSA / "model.safetensors")
    torch.save(tensors, tmp_path / "medusa_lm_head.pt")
    shutil.copy(MEDUSA / "config.json", tmp_path)
    done = convert(tmp_path / "medusa_lm_head.pt")
    assert done.returncode == 0, done.stderr
    written = load_file(tmp_path / "medusa_lm_head.safetensors")
    assert written.keys() == tensors.keys() and all(torch.equal(written[name], tensors[name]) for name in tensors)
    text, drafts = answer_and_drafts(STORIES, tmp_path)
    assert text == plain and drafts > 0


class Program:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("content", ["program", "list", "text"])
def test_a_pickle_of_anything_but_tensors_is_refused_and_not_run(tmp_path, content):
    ran = tmp_path / "ran"
    path = tmp_path / "medusa_lm_head.pt"
    if content == "text":
        path.write_text("not a pickle")
    else:
        torch.save({"0.1.weight": Program(str(ran))} if content == "program" else [torch.zeros(2)], path)
    done = convert(path)
    assert done.returncode != 0 and "was not converted" in done.stderr and "Traceback" not in done.stderr
    assert not ran.exists() and not path.with_suffix(".safetensors").exists()
