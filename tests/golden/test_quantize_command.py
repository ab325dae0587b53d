"""`quire quantize`: directories that transformers and compressed-tensors read, and GGUF files with the numbers of gguf's own quantiser."""

import json
import subprocess

import gguf
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="golden tests need torch")
transformers = pytest.importorskip("transformers", reason="golden tests need transformers")

import gguf_models  # noqa: E402
import quantised_numbers  # noqa: E402
from golden_support import Reference, Run, check_greedy, program, random_prompt  # noqa: E402
from quantised_models import MODULES, SHAPE, draw, tensors_of  # noqa: E402
from tiny_model import byte_tokenizer  # noqa: E402

torch.set_num_threads(1)  # as in test_families.py
FORMS = ("w8a8", "fp8", "w4a16")
VOCAB = SHAPE["vocab_size"]


def quantize(model, form, out):
    done = subprocess.run([program("quire"), "quantize", model, "--to", form, "--out", out], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refusal(model, form, out):
    done = subprocess.run([program("quire"), "quantize", model, "--to", form, "--out", out], capture_output=True, text=True)
    assert done.returncode == 2
    return done.stderr


@pytest.fixture(scope="module", params=["bfloat16", "float32"])
def original(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("original") / request.param
    draw(5).to(getattr(torch, request.param)).save_pretrained(folder)
    (folder / "tokenizer.json").write_text(json.dumps(byte_tokenizer(VOCAB)))
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    return folder


def formula(tensors, module, form):
    return (quantised_numbers.packed_integers if form == "w4a16" else quantised_numbers.scaled)(tensors, module)


@pytest.mark.parametrize("form", FORMS)
def test_codes_are_the_nearest_that_the_scale_has(original, form, tmp_path):
    quantize(original, form, tmp_path / "out")
    written, plain = tensors_of(tmp_path / "out"), tensors_of(original)
    for module in MODULES:
        weights = plain[f"{module}.weight"].float().numpy()
        groups = weights.reshape(len(weights), -1, 128 if form == "w4a16" else weights.shape[1])
        scales = written[f"{module}.weight_scale"]
        assert scales.dtype == plain[f"{module}.weight"].dtype
        scales = scales.float().numpy().reshape(len(weights), -1, 1)
        steps = np.abs(groups).max(-1, keepdims=True) / {"w8a8": 127, "fp8": 448, "w4a16": 7.5}[form]
        if form == "w4a16":  # the best of some
            assert (scales <= steps * (1 + 2.0 ** -8)).all() and (scales >= steps * 0.53).all()
            error, widest = (np.square(groups - step * np.clip(np.rint(groups / step), -8, 7)).sum(-1) for step in (scales, steps))
            assert error.sum() < 0.95 * widest.sum()
        else:
            assert np.allclose(scales, steps, rtol=2.0 ** -8)
        numbers = formula(written, module, form).reshape(groups.shape)
        if form == "fp8":
            codes = torch.from_numpy(groups / scales).clamp(-448, 448).to(torch.float8_e4m3fn).float().numpy()
        else:
            codes = np.clip(np.rint(groups / scales), *((-127, 127) if form == "w8a8" else (-8, 7)))
        assert np.array_equal(numbers, codes * scales)
    kept = [name for name in plain if not name.removesuffix(".weight") in MODULES]
    assert all(torch.equal(written[name], plain[name]) for name in kept)


@pytest.mark.parametrize("form", FORMS)
def test_the_config_says_so_and_other_files_are_copied(original, form, tmp_path):
    out = tmp_path / "out"
    assert "14 matrices" in quantize(original, form, out)
    config, before = (json.loads((folder / "config.json").read_text()) for folder in (out, original))
    made = config.pop("quantization_config")
    assert config == before
    assert made["quant_method"] == "compressed-tensors" and made["config_groups"]["group_0"]["targets"] == ["Linear"]
    assert "lm_head" in made["ignore"] and not any("proj" in name for name in made["ignore"])
    for name in ("tokenizer.json", "chat_template.jinja", "generation_config.json"):
        assert (out / name).read_bytes() == (original / name).read_bytes()
    pytest.importorskip("compressed_tensors", reason="it reads its own config").quantization.QuantizationConfig.model_validate(made)


@pytest.mark.parametrize("form", FORMS)
def test_transformers_reads_the_same_model(original, form, tmp_path):
    pytest.importorskip("compressed_tensors", reason="transformers reads such directories with it")
    pytest.importorskip("accelerate", reason="transformers reads such directories with it")
    quantize(original, form, tmp_path / "out")
    options = {"quantization_config": transformers.CompressedTensorsConfig(dequantize=True)}
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out", dtype=torch.float32, attn_implementation="eager", **options).eval()
    written = tensors_of(tmp_path / "out")
    for name, module in model.named_modules():
        if name in MODULES:
            assert np.allclose(module.weight.detach().numpy(), formula(written, name, form), rtol=2.0 ** -8)
    model.save_pretrained(tmp_path / "plain")
    config = json.loads((tmp_path / "plain" / "config.json").read_text())
    config.pop("quantization_config", None)
    (tmp_path / "plain" / "config.json").write_text(json.dumps(config))
    if original.name == "float32":  # transformers rounds numbers to bf16 otherwise
        reference = Reference(tmp_path / "plain")
        prompt = random_prompt(70, VOCAB)
        run = Run(tmp_path / "out", prompt, VOCAB, tmp_path, greedy=16, activations="f32")
        check_greedy(reference, prompt, run.greedy)


def test_an_interrupted_run_goes_on_where_it_ended(tmp_path):
    draw(6).save_pretrained(tmp_path / "model", max_shard_size="400KB")
    (tmp_path / "model" / "tokenizer.json").write_text(json.dumps(byte_tokenizer(VOCAB)))
    out = tmp_path / "out"
    quantize(tmp_path / "model", "w8a8", out)
    shards = sorted(out.glob("*.safetensors"))
    assert len(shards) > 3
    times, whole = [shard.stat().st_mtime_ns for shard in shards], [shard.read_bytes() for shard in shards]
    shards[1].write_bytes(whole[1][:-5])  # as a full disk leaves it
    shards[2].unlink()
    (out / "config.json").unlink()
    quantize(tmp_path / "model", "w8a8", out)
    assert [shard.read_bytes() for shard in shards] == whole
    assert [shard.stat().st_mtime_ns == time for shard, time in zip(shards, times)] == [i not in (1, 2) for i in range(len(shards))]
    quantize(tmp_path / "model", "fp8", out)  # another form: nothing is kept
    assert not any(name.read_bytes() == old for name, old in zip(shards, whole) if b"q_proj" in old)
    index = json.loads((out / "model.safetensors.index.json").read_text())["weight_map"]
    assert {str(name) for name in index.values()} == {shard.name for shard in shards}
    run = Run(out, random_prompt(5, VOCAB), VOCAB, tmp_path, greedy=4)
    assert len(run.greedy) == 4


def test_what_cannot_be_written_is_refused_by_name(original, tmp_path):
    quantize(original, "w8a8", tmp_path / "once")
    assert "is quantised already" in refusal(tmp_path / "once", "fp8", tmp_path / "twice")
    assert "own directory" in refusal(original, "fp8", original)
    assert "is a directory: --to q8_0 takes a GGUF file" in refusal(original, "q8_0", tmp_path / "x.gguf")
    gguf_models.write(tmp_path / "model.gguf")
    assert "is a file: --to w8a8 takes a directory" in refusal(tmp_path / "model.gguf", "w8a8", tmp_path / "y")
    (tmp_path / "file").write_text("")
    assert "cannot be made" in refusal(original, "fp8", tmp_path / "file" / "under")
    assert not (tmp_path / "x.gguf").exists()


@pytest.mark.parametrize("form, kind", [("q8_0", gguf.GGMLQuantizationType.Q8_0), ("q4_0", gguf.GGMLQuantizationType.Q4_0)])
@pytest.mark.parametrize("stored", [gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16, gguf.GGMLQuantizationType.BF16])
def test_gguf_files_have_the_blocks_of_ggufs_own_quantiser(form, kind, stored, tmp_path):
    gguf_models.write(tmp_path / "plain.gguf", stored)
    quantize(tmp_path / "plain.gguf", form, tmp_path / "out.gguf")
    before, after = gguf.GGUFReader(tmp_path / "plain.gguf"), gguf.GGUFReader(tmp_path / "out.gguf")
    changed = {"general.file_type", "general.quantization_version"}
    fields = {name for name in {*before.fields, *after.fields} if not name.startswith("GGUF.")} - changed - {"general.alignment"}
    for name in fields:
        assert before.fields[name].contents() == after.fields[name].contents(), name
    assert after.fields["general.file_type"].contents() == {"q8_0": 7, "q4_0": 2}[form]
    quantised = 0
    for old, new in zip(before.tensors, after.tensors, strict=True):
        assert (old.name, list(old.shape)) == (new.name, list(new.shape))
        if new.tensor_type == old.tensor_type:
            assert np.array_equal(old.data, new.data)
            continue
        quantised += 1
        numbers = gguf.dequantize(old.data, old.tensor_type).reshape(-1, int(old.shape[0]))
        assert new.tensor_type == (gguf.GGMLQuantizationType.Q8_0 if old.name == "token_embd.weight" else kind)  # tied: it is the output matrix
        assert np.array_equal(gguf.quants.quantize(numbers, new.tensor_type).reshape(-1), new.data.reshape(-1)), old.name
    assert quantised > 8


def test_extreme_rows_have_the_blocks_of_ggufs_own_quantiser(tmp_path):
    draws = np.random.default_rng(8)
    rows = draws.normal(size=(320, 64)).astype(np.float32)
    rows[0], rows[1, :32], rows[2] = 0, 0, 1
    rows[3, ::2], rows[3, 1::2] = -2, 2  # equal sizes: the first decides
    rows[4] = np.arange(64) / 2 - 16  # halves
    rows[5] = np.float32(6e-8) * np.sign(rows[5])
    rows[6] = np.float32(6e4) * rows[6] / np.abs(rows[6]).max()
    rows[7] = np.linspace(-8, 7.5, 64, dtype=np.float32)
    writer = gguf.GGUFWriter(tmp_path / "rows.gguf", "llama")
    writer.add_tensor("blk.0.ffn_up.weight", rows)
    writer.add_tensor("blk.0.ffn_gate_inp.weight", rows)
    writer.add_tensor("blk.0.attn_norm.weight", rows[0])
    for step in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file, writer.close):
        step()
    for form, kind in (("q8_0", gguf.GGMLQuantizationType.Q8_0), ("q4_0", gguf.GGMLQuantizationType.Q4_0)):
        quantize(tmp_path / "rows.gguf", form, tmp_path / form)
        tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(tmp_path / form).tensors}
        assert np.array_equal(tensors["blk.0.ffn_up.weight"].data.reshape(-1), gguf.quants.quantize(rows, kind).reshape(-1))
        assert all(tensors[name].tensor_type == gguf.GGMLQuantizationType.F32 for name in ("blk.0.ffn_gate_inp.weight", "blk.0.attn_norm.weight"))
