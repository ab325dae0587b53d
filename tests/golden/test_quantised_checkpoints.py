"""Quantised safetensors checkpoints: the numbers of their matrices bit for bit, and the tokens of models in each format.

quantised_models.py makes a tiny Llama in each format, with the publishers' own programs where these run here, and has the formula of each. The
tokens are those of transformers in f32 with the numbers of the formula, within the tolerance of golden_support.py; where transformers
reads the quantised folder itself, they are also its own.
"""

import json
import subprocess

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="golden tests need torch")
transformers = pytest.importorskip("transformers", reason="golden tests need transformers")

from golden_support import Reference, Run, check_greedy, check_logits, program, random_prompt  # noqa: E402
from quantised_models import KINDS, SHAPE, make, make_extreme, write_plain  # noqa: E402

torch.set_num_threads(1)  # as in test_families.py
STEPS = 32
VOCAB = SHAPE["vocab_size"]
# Several formats, or one that also holds for the output matrix: config.json alone names the first.
OF_MORE_THAN_ONE = ("ct-two-groups", "ct-w8a16-channel-head", "gptq-8bit-head", "auto-round-mixed")


def needs(kind):
    for package in KINDS[kind].needs:
        pytest.importorskip(package, reason=f"{package} writes this format")


@pytest.fixture(scope="module", params=KINDS)
def checkpoint(request, tmp_path_factory):
    """(kind, folder with the checkpoint in "model" and its numbers in f32 in "plain", {matrix: numbers})"""
    needs(request.param)
    folder = tmp_path_factory.mktemp(request.param)
    matrices = make(request.param, folder / "model")
    write_plain(request.param, folder / "model", folder / "plain")
    return request.param, folder, matrices


def bits(numbers):
    """All zeros are alike: no sum depends on the sign of a product that is zero, and tables of E2M1 have only one."""
    return (numbers + np.float32(0)).view(np.uint32)


def check_numbers(directory, matrices):
    tool = program("coded_tool")
    assert len(matrices) >= 14
    for name, expected in matrices.items():
        done = subprocess.run([tool, directory, name], capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
        ours = np.frombuffer(done.stdout, "<f4").reshape(expected.shape)
        equal = (bits(ours) == bits(expected)) | (np.isnan(ours) & np.isnan(expected))
        places = np.argwhere(~equal)
        assert equal.all(), (name, len(places), [(tuple(place), ours[tuple(place)], expected[tuple(place)]) for place in places[:3]])


def test_numbers_are_those_of_the_formula_bit_for_bit(checkpoint):
    _, folder, matrices = checkpoint
    check_numbers(folder / "model", matrices)


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_random_codes_and_extreme_scales_too(kind, tmp_path):
    needs(kind)
    check_numbers(tmp_path / "model", make_extreme(kind, tmp_path / "model"))


def test_logits_and_greedy_tokens_are_those_of_the_numbers_in_f32(checkpoint, tmp_path):
    _, folder, _ = checkpoint
    reference = Reference(folder / "plain")
    for length in (5, 70):
        prompt = random_prompt(length, VOCAB)
        run = Run(folder / "model", prompt, VOCAB, tmp_path, greedy=STEPS, activations="f32")
        reference.check_rope(run)
        check_logits(run, *reference(prompt))
        check_greedy(reference, prompt, run.greedy)
    assert len(set(run.greedy)) > 4, "the checkpoint repeats itself: equal tokens prove little"


def as_transformers_reads_it(kind, directory):
    """The model with dequantised matrices: its activations are not quantised, as they would be in compressed-tensors' W8A8 and FP8 and in
    bitsandbytes' int8."""
    options = {}
    if kind.startswith("ct-") and kind != "ct-two-groups":  # dequantising, it takes the first group's scheme for the matrices of all groups
        options["quantization_config"] = transformers.CompressedTensorsConfig(dequantize=True)
    model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32, attn_implementation="eager", **options)
    return (model.dequantize().float() if kind.startswith("bnb-") else model).eval()


@pytest.mark.full
def test_greedy_tokens_are_those_of_transformers_on_the_same_folder(checkpoint, tmp_path):
    """transformers rounds the numbers of most formats to bf16: tokens may differ where its logits are nearer to each other than twice what
    bf16 does to the logits of the numbers in f32."""
    kind, folder, _ = checkpoint
    if KINDS[kind].cannot_load:
        pytest.skip(f"transformers: {KINDS[kind].cannot_load}")
    pytest.importorskip("accelerate", reason="transformers reads quantised folders with accelerate")
    prompt = random_prompt(70, VOCAB)
    run = Run(folder / "model", prompt, VOCAB, tmp_path, greedy=STEPS, activations="f32")
    models = [as_transformers_reads_it(kind, folder / "model")]
    for dtype in (torch.float32, torch.bfloat16):
        models.append(transformers.AutoModelForCausalLM.from_pretrained(folder / "plain", dtype=dtype, attn_implementation="eager").eval())
    with torch.no_grad():
        theirs, exact, rounded = (model(torch.tensor([prompt + run.greedy]), use_cache=False).logits[0].float().numpy() for model in models)
    tolerance = np.abs(rounded - exact).max()
    print(f"transformers' own logits are off by {np.abs(theirs - exact).max():.3g}, by {tolerance:.3g} in bf16")
    assert np.abs(theirs - exact).max() <= 2 * tolerance
    check_greedy(lambda _: (theirs, np.full(len(theirs), tolerance)), prompt, run.greedy)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in OF_MORE_THAN_ONE])
def test_a_plan_by_config_alone_has_the_size_of_the_packed_weights(kind, tmp_path):
    needs(kind)
    make(kind, tmp_path / "model")
    (tmp_path / "config").mkdir()
    for name in ("config.json", "hf_quant_config.json"):
        if (tmp_path / "model" / name).exists():
            (tmp_path / "config" / name).write_bytes((tmp_path / "model" / name).read_bytes())
    sizes = []
    for folder in ("model", "config"):
        done = subprocess.run([program("quire"), "inspect", tmp_path / folder, "--json"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        sizes.append(json.loads(done.stdout)["packed_bytes"])
    assert sizes[0] == sizes[1]


def test_biases_of_zeros_that_autogptq_writes_for_every_module_are_nothing(tmp_path):
    from safetensors.torch import load_file, save_file

    make("gptq", tmp_path / "model")
    prompt = random_prompt(5, VOCAB)
    plain = Run(tmp_path / "model", prompt, VOCAB, tmp_path)
    path = tmp_path / "model" / "model.safetensors"
    tensors = load_file(path)
    biases = {name.replace("qweight", "bias"): torch.zeros(tensor.shape[1], dtype=torch.float16) for name, tensor in tensors.items() if "qweight" in name}
    save_file({**tensors, **biases}, path, {"format": "pt"})
    assert np.array_equal(Run(tmp_path / "model", prompt, VOCAB, tmp_path).logits, plain.logits)
    next(iter(biases.values()))[3] = 0.5
    save_file({**tensors, **biases}, path, {"format": "pt"})
    done = subprocess.run([program("quire"), "generate", tmp_path / "model", "a"], capture_output=True, text=True)
    assert done.returncode == 2 and ".bias' is not part of a LlamaForCausalLM" in done.stderr


def test_the_mode_names_the_form_of_activations_whatever_the_first_matrix_is(tmp_path):
    """The first layer's attention is plain, as modules_to_not_convert leaves it."""
    from safetensors.torch import load_file, save_file

    matrices = make("ct-w8a8", tmp_path / "model")
    path = tmp_path / "model" / "model.safetensors"
    tensors = load_file(path)
    for part in ("q_proj", "k_proj", "v_proj"):
        module = f"model.layers.0.self_attn.{part}"
        tensors[f"{module}.weight"] = torch.from_numpy(matrices[f"{module}.weight"].copy()).to(torch.bfloat16)
        del tensors[f"{module}.weight_scale"]
    save_file(tensors, path, {"format": "pt"})
    modes = [Run(tmp_path / "model", random_prompt(5, VOCAB), VOCAB, tmp_path, activations=form).mode for form in ("int8", "f32")]
    assert "activations=int8" in modes[0] and "activations=f32" in modes[1]
