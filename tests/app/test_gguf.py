"""Models in GGUF files, from the command line: the text of the same model in a directory, and refusals by name."""

import os
import pathlib
import shutil
import subprocess

import pytest

gguf = pytest.importorskip("gguf", reason="GGUF files are written by the package gguf")
pytest.importorskip("torch", reason="the weights are read by torch")

import gguf_models  # noqa: E402
from child_process import started  # noqa: E402
from gguf_models import KINDS, STORIES  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUIRE = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", ROOT / "build" / "release")) / "quire"
ENVIRONMENT = {**{name: value for name, value in os.environ.items() if not name.startswith("QUIRE_")}, "HF_HUB_OFFLINE": "1"}


def quire(*arguments):
    return subprocess.run([QUIRE, *map(str, arguments)], env=ENVIRONMENT, capture_output=True, text=True, timeout=120)


def generate(model):
    done = quire("generate", "--model", model, "--prompt", "Once upon a time", "--temperature", "0", "--max-tokens", "40")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def expected():
    return generate(STORIES)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return gguf_models.write(tmp_path_factory.mktemp("gguf") / "stories.gguf")


def refused(path, *parts):
    for command in (("inspect", path), ("serve", path, "--port", "0"), ("serve", path, "--plan")):
        done = quire(*command)
        assert done.returncode == 2, (command, done.stdout)
        for part in parts:
            assert part in done.stderr, (command, done.stderr)


@pytest.mark.parametrize("kind", ["BF16", "F32"])
def test_the_text_is_that_of_the_directory(kind, expected, tmp_path):
    assert generate(gguf_models.write(tmp_path / "stories.gguf", KINDS[kind])) == expected


def test_a_quantised_file_tells_a_story(tmp_path):
    for kind in ("Q8_0", "Q4_1"):
        assert "there was a little girl named Lily" in generate(gguf_models.write(tmp_path / f"{kind}.gguf", KINDS[kind]))


@pytest.mark.parametrize("flags, says", [((), ", Q8_0 times int8, "), (("--activations", "f32"), ", Q8_0 times f32, "),
                                         (("--quantize", "int8"), ", Q8_0 quantised to int8, ")])
def test_the_start_says_which_blocks_there_are_and_the_form_of_their_input(tmp_path, flags, says):
    path = gguf_models.write(tmp_path / "x.gguf", KINDS.Q8_0)
    with started([QUIRE, "serve", path, "--port", "0", *flags], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as served:
        line = next(line for line in served.stdout if " packed" in line and line.startswith("x: "))
        served.terminate()
    assert says in line and "less with --quantize" not in line


def test_the_form_is_part_of_the_fingerprint_and_refused_by_name(tmp_path):
    path = gguf_models.write(tmp_path / "x.gguf", KINDS.Q8_0)
    modes = set()
    for flags in ((), ("--activations", "int8"), ("--activations", "f32"), ("--quantize", "int8")):
        with started([QUIRE, "serve", path, "--port", "0", *flags], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as served:
            modes.add(next(line for line in served.stdout if "checkpoint=" in line))
            served.terminate()
    assert len(modes) == 3, modes
    done = quire("serve", path, "--activations", "int4")
    assert done.returncode == 2 and "--activations" in done.stderr and "int8" in done.stderr, done.stderr


@pytest.mark.parametrize("flags", [(), ("--activations", "f32"), ("--quantize", "w4a8")])
def test_packed_blocks_are_mapped_at_the_next_start(tmp_path, flags):
    path = gguf_models.write(tmp_path / "x.gguf", KINDS.Q4_1)
    told = []
    for cache in ((), ("--packed-cache", tmp_path), ("--packed-cache", tmp_path)):
        done = quire("generate", path, "--prompt", "Once upon a time", "--temperature", "0", "--max-tokens", "40", *flags, *cache)
        assert done.returncode == 0, done.stderr
        told.append(done.stdout)
    assert told[0] == told[1] == told[2]
    assert next(tmp_path.glob("*.packed")).stat().st_size < 2 * path.stat().st_size


def test_the_factor_of_an_nvfp4_matrix_is_one_finite_number(tmp_path):
    import numpy as np

    assert quire("inspect", gguf_models.write_drawn(tmp_path / "x.gguf", "NVFP4")).returncode == 0
    for numbers, says in (([1, 2], "has 2 numbers; expected 1"), ([float("nan")], "not finite")):
        listed = [(gguf_models.gguf_name(name), raw, kind) for name, raw, kind, _ in gguf_models.drawn_tensors("NVFP4")]
        path = gguf_models.write(tmp_path / "y.gguf", listed=[*listed, ("blk.1.ffn_up.scale", np.array(numbers, np.float32), KINDS.F32)])
        refused(path, "blk.1.ffn_up.scale", says)
    listed = [(gguf_models.gguf_name(name), *gguf_models.stored(name, values, KINDS.F32)) for name, values in gguf_models.weights().items()]
    path = gguf_models.write(tmp_path / "z.gguf", listed=[*listed, ("blk.1.ffn_up.scale", np.ones(1, np.float32), KINDS.F32)])
    done = quire("serve", path, "--port", "0")  # of a matrix in another type
    assert done.returncode == 2 and "'blk.1.ffn_up.scale' is not part of" in done.stderr, done.stderr


def test_a_split_model_is_named_by_any_part_or_by_its_directory(expected, tmp_path):
    gguf_models.write(tmp_path / "stories.gguf", parts=20)
    parts = sorted(path.name for path in tmp_path.iterdir())
    assert parts[0] == "stories-00001-of-00003.gguf" and len(parts) == 3
    assert generate(tmp_path / parts[0]) == generate(tmp_path / parts[2]) == generate(tmp_path) == expected
    assert quire("inspect", tmp_path / parts[1]).stdout.startswith("stories: LlamaForCausalLM")
    (tmp_path / parts[1]).rename(tmp_path / "gone")
    refused(tmp_path / parts[0], parts[1], "No such file")
    shutil.copy(tmp_path / parts[2], tmp_path / parts[1])
    refused(tmp_path / parts[0], f"{parts[1]}: key 'split.no' is 2")
    (tmp_path / parts[0]).rename(tmp_path / "alone.gguf")
    refused(tmp_path / "alone.gguf", "key 'split.count' is 3, and its name is that of one of 1 parts")


def test_internlm2_is_llama_by_another_name(expected, tmp_path):
    assert generate(gguf_models.write(tmp_path / "x.gguf", architecture="internlm2")) == expected


def test_a_directory_with_one_model_is_that_model(model, expected, tmp_path):
    shutil.copy(model, tmp_path / "a.gguf")
    (tmp_path / "mmproj-a.gguf").write_bytes(b"GGUF")
    assert generate(tmp_path) == expected
    shutil.copy(model, tmp_path / "b.gguf")
    refused(tmp_path, "holds several GGUF models: give one of a.gguf, b.gguf")


def test_a_chat_template_and_end_tokens_come_along(model):
    shown = quire("inspect", model, "--json").stdout
    assert '"model":"stories"' in shown
    plan = quire("serve", model, "--plan")
    assert plan.returncode == 0, plan.stderr


def test_sampling_settings_that_the_file_recommends_are_the_defaults(expected, tmp_path):
    settings = {"temp": 0.0, "top_p": 0.5, "min_p": 0.25, "penalty_repeat": 1.0, "top_k": 7}
    path = gguf_models.write(tmp_path / "x.gguf", sampling=settings)
    done = quire("generate", "--model", path, "--prompt", "Once upon a time", "--max-tokens", "40")
    assert done.returncode == 0 and done.stdout == expected, done.stderr
    path = gguf_models.write(tmp_path / "y.gguf", sampling={"top_p": 1.5})
    done = quire("serve", path, "--port", "0")
    assert done.returncode == 2 and "'top_p' is 1.5" in done.stderr, done.stderr


def test_a_draft_model_may_be_gguf(model, expected):
    done = quire("generate", "--model", STORIES, "--prompt", "Once upon a time", "--temperature", "0", "--max-tokens", "40", "--speculative-config",
                 f'{{"method": "draft_model", "model": "{model}", "num_speculative_tokens": 2}}')
    assert done.returncode == 0, done.stderr
    assert done.stdout == expected


def test_the_packed_cache_keeps_it_for_the_next_start(model, expected, tmp_path):
    for _ in range(2):
        done = quire("generate", "--model", model, "--prompt", "Once upon a time", "--temperature", "0", "--max-tokens", "40", "--packed-cache", tmp_path)
        assert done.returncode == 0 and done.stdout == expected
    assert [path.name for path in tmp_path.iterdir()] == ["stories.none.packed"]


# ---- refusals

def test_an_architecture_that_is_not_read_is_named_with_those_that_are(tmp_path):
    gguf_models.write(tmp_path / "x.gguf", architecture="mamba")
    refused(tmp_path / "x.gguf", "key 'general.architecture' is 'mamba'", "llama, qwen2, qwen2vl, qwen3, qwen3vl, mistral3")


def test_a_tokenizer_that_is_not_read_is_named(tmp_path):
    gguf_models.write(tmp_path / "x.gguf", pre="superbpe")
    done = quire("serve", tmp_path / "x.gguf", "--port", "0")
    assert done.returncode == 2 and "key 'tokenizer.ggml.pre' is 'superbpe'" in done.stderr


@pytest.mark.parametrize("kind, instead", [("IQ3_XXS", "Q3_K"), ("TQ1_0", "Q2_K"), ("IQ1_S", "Q2_K")])
def test_a_type_that_is_not_read_is_named_with_one_to_take(tmp_path, kind, instead):
    import numpy as np

    elements, size = gguf.GGML_QUANT_SIZES[KINDS[kind]]
    listed = [(name, np.zeros((raw.shape[0], 256 // elements * size), np.uint8), KINDS[kind]) if name.endswith("attn_q.weight") else (name, raw, stored)
              for name, raw, stored in gguf_models.tensors()]
    gguf_models.write(tmp_path / "x.gguf", listed=listed)
    refused(tmp_path / "x.gguf", f"tensor 'blk.0.attn_q.weight' has type {kind}", f"take a file of type {instead}")


def test_a_cut_file_is_said_with_the_tensor(model, tmp_path):
    (tmp_path / "x.gguf").write_bytes(model.read_bytes()[:-100_000])
    refused(tmp_path / "x.gguf", "ends beyond the file", "fetch it again")


def test_other_kinds_of_gguf_files_are_named(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "a.gguf", "llama")
    writer.add_type("adapter")
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file(), writer.close()
    refused(tmp_path / "a.gguf", "is no model: its general.type is 'adapter'; merge the adapter into its model")
    (tmp_path / "b.gguf").write_bytes(b"PK\3\4")
    refused(tmp_path / "b.gguf", "is a pickle or an archive")


def test_a_blob_without_an_ending_is_known_by_its_first_bytes(model, expected, tmp_path):
    shutil.copy(model, tmp_path / "sha256-0123")
    assert generate(tmp_path / "sha256-0123") == expected
