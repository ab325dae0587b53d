"""--packed-cache: a second start maps the first one's weights, says so, and answers the same; a cache is never in the way."""

import json
import re
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
from test_cli import ROOT, Server, quire


@pytest.fixture
def model(tmp_path):
    """The embedded model as a directory that may be changed."""
    return shutil.copytree(ROOT / "models" / "stories", tmp_path / "tales")


@pytest.fixture
def cache(tmp_path):
    directory = tmp_path / "cache"
    directory.mkdir()
    return directory


def start(model, cache, *args):
    """What a start says of its weights, its numeric mode, what it answers, and its log."""
    flag = ["--packed-cache", str(cache)] if cache else []
    with Server("--model", str(model), *flag, *args) as server:
        said = "\n".join(server.said)
        with server.complete(model=model.name, max_tokens=24, temperature=0) as answer:
            answered = json.loads(answer.read())
        code, _, log = server.end(signal.SIGTERM)
    assert code == 0
    weights = re.search(r"^weights (packed|mapped from (\S+)) in \d+\.\d+ s$", said, re.M)
    mode = re.search(r"^numeric mode: .*$", said, re.M).group(0)
    return weights.group(2), mode, (answered["choices"][0]["text"], answered["system_fingerprint"]), log


@pytest.mark.parametrize("quantize", ["none", "int8", "int4", "fp8", "w8a8", "w4a8", "w16a16"])
def test_the_second_start_maps_the_first_ones_weights_and_answers_the_same(model, cache, quantize):
    first = start(model, cache, "--quantize", quantize)
    second = start(model, cache, "--quantize", quantize)
    plain = start(model, None, "--quantize", quantize)
    file = cache / f"tales.{quantize}.packed"
    assert first[0] is None and "written for the next start" in first[3]
    assert second[0] == str(file) and "packed_cache" not in second[3]
    assert plain[0] is None and "packed_cache" not in plain[3]
    assert first[1:3] == second[1:3] == plain[1:3]
    assert [path.name for path in cache.iterdir()] == [file.name]
    assert file.stat().st_mode & 0o222 == 0, "it is mapped: nobody should edit it in place"


def test_the_models_own_directory_will_do_and_other_settings_change_nothing(model):
    assert start(model, model)[0] is None
    assert start(model, model, "--isa", "scalar", "--max-model-len", "64", "--kv-cache-dtype", "f32")[0]
    assert quire("generate", "--model", str(model), "--packed-cache", str(model), "--prompt", "Once").returncode == 0
    assert quire("inspect", str(model)).returncode == 0


def test_a_changed_checkpoint_and_a_damaged_file_are_noticed_and_replaced(model, cache):
    start(model, cache)
    weights = model / "model.safetensors"
    raw = bytearray(weights.read_bytes())
    raw[-1] ^= 1
    weights.write_bytes(raw)
    name, mode, _, log = start(model, cache)
    assert name is None and "from another checkpoint, or with other settings; packing again" in log
    file = cache / "tales.none.packed"
    file.chmod(0o644)
    with file.open("r+b") as opened:
        opened.seek(-100, 2)
        opened.write(b"damage")
    name, mode_again, _, log = start(model, cache)
    assert name is None and "its weights are damaged; packing again" in log
    assert mode_again == mode
    assert start(model, cache)[0] == str(file)


def test_where_it_cannot_be_written_the_server_starts_all_the_same(model, cache):
    (cache / "file").write_text("")
    for place, why in [(cache / "none", "No such file or directory"), (cache / "file", "Not a directory")]:
        for _ in range(2):
            name, _, _, log = start(model, place)
            assert name is None and f"not written: cannot make {place}" in log and why in log


def test_three_that_start_at_once_all_serve_and_leave_one_file(model, cache):
    for _ in range(3):
        with ThreadPoolExecutor() as pool:
            answers = [one.result() for one in [pool.submit(start, model, cache) for _ in range(3)]]
        assert answers[0][1:3] == answers[1][1:3] == answers[2][1:3]
        assert [path.name for path in cache.iterdir()] == ["tales.none.packed"]
        assert start(model, cache)[0]
        (cache / "tales.none.packed").unlink()


def test_the_model_inside_the_binary_needs_none(cache):
    with Server("--packed-cache", str(cache)) as server:
        assert "weights packed in" in "\n".join(server.said)
    assert list(cache.iterdir()) == []
