"""Checkpoints as people have them: what is in their small files is read, ignored where nobody asks for it, and meant as it says."""

import json
import shutil
import urllib.request

import pytest
from test_cli import ROOT, Server, quire

# Legal JSON, whatever a parser of 64 bits thinks of it.
NUMBERS = ["1000000000000000019884624838656", "-1000000000000000019884624838656", "18446744073709551616", "1e400", "-1e400", "1E+30", "1e-500",
           "1e99999999999", "0e99999999999", "123456789012345678901234567890.5", "-0", "0.0000000000000000000000000000000000000000001"]
FILES = ["config.json", "generation_config.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "tokenizer.json"]


@pytest.fixture
def model(tmp_path):
    return shutil.copytree(ROOT / "models" / "stories", tmp_path / "tales")


def generate(model, prompt="Once upon a time", max_tokens=3):
    done = quire("generate", "--model", str(model), "--prompt", prompt, "--max-tokens", str(max_tokens), "--temperature", "0")
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("name", FILES)
def test_any_number_of_json_may_stand_in_a_key_that_nobody_asks_for(model, name):
    plain = generate(model)[:2]
    file = model / name
    members = json.dumps(json.loads(file.read_text()) if file.exists() else {})[1:-1]
    unknown = ", ".join(f'"unknown {i}": {number}, "list {i}": [[{number}], {{"a": {number}}}]' for i, number in enumerate(NUMBERS))
    file.write_text("{" + unknown + (", " if members else "") + members + "}")
    assert generate(model)[:2] == plain, name


def test_a_model_max_length_as_transformers_writes_it_loads(model):
    config = json.loads((model / "tokenizer_config.json").read_text())
    (model / "tokenizer_config.json").write_text(json.dumps({**config, "model_max_length": 1000000000000000019884624838656}))
    assert generate(model)[0] == 0


def test_a_number_that_json_does_not_have_is_refused_by_its_file(model):
    for number in ("01", "1.", "--1", "1e"):
        (model / "tokenizer_config.json").write_text('{"a": ' + number + "}")
        code, _, said = generate(model)
        assert code != 0 and "tokenizer_config.json" in said, number


def token_after(model, words):
    """A token of the vocabulary that the model says soon."""
    answer = generate(model, max_tokens=24)[1]
    vocabulary = json.loads((model / "tokenizer.json").read_text())["model"]["vocab"]
    for word in words:
        if word in vocabulary and word.replace("\u0120", " ") in answer[1:]:
            return word
    raise AssertionError(answer)


@pytest.mark.parametrize("where", ["tokenizer_config.json", "special_tokens_map.json", "tokenizer_config.json, a token with marks"])
def test_an_answer_ends_with_the_tokenizers_own_end_too(model, where):
    whole = generate(model, max_tokens=24)[1]
    end = token_after(model, [",", ".", "\u0120was", "\u0120there"])
    config = json.loads((model / "tokenizer_config.json").read_text())
    generation = json.loads((model / "generation_config.json").read_text())
    assert generation.get("eos_token_id") is not None or "eos_token_id" in json.loads((model / "config.json").read_text())
    named = {"content": end, "lstrip": False, "rstrip": False, "special": True} if "marks" in where else end
    if where.startswith("special"):
        config.pop("eos_token")
        (model / "special_tokens_map.json").write_text(json.dumps({"eos_token": named}))
    else:
        config["eos_token"] = named
    (model / "tokenizer_config.json").write_text(json.dumps(config))
    code, said, _ = generate(model, max_tokens=24)
    assert code == 0 and len(said) < len(whole) and whole.startswith(said.rstrip("\n")), (said, whole)


def test_the_ends_of_generation_config_hold_beside_it(model):
    whole = generate(model, max_tokens=24)[1]
    end = token_after(model, [",", ".", "\u0120was", "\u0120there"])
    vocabulary = json.loads((model / "tokenizer.json").read_text())["model"]["vocab"]
    generation = json.loads((model / "generation_config.json").read_text())
    (model / "generation_config.json").write_text(json.dumps({**generation, "eos_token_id": [vocabulary[end]]}))
    said = generate(model, max_tokens=24)[1]
    assert len(said) < len(whole)


DEFAULTS = {"temperature": 0.6, "top_p": 0.95, "top_k": 20, "min_p": 0.05, "repetition_penalty": 1.05, "max_new_tokens": 40}


def sampling_of(server, path, body):
    """What a request comes to."""
    request = urllib.request.Request(f"{server.url}{path}/render", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        told = json.loads(answer.read())
    return (told[0] if isinstance(told, list) else told)["sampling_params"]


def test_every_sampling_default_of_generation_config_holds_where_a_request_says_nothing(model):
    generation = json.loads((model / "generation_config.json").read_text())
    (model / "generation_config.json").write_text(json.dumps({**generation, "do_sample": True, **DEFAULTS}))
    chat = {"messages": [{"role": "user", "content": "Once upon a time"}]}
    names = ["temperature", "top_p", "top_k", "min_p", "repetition_penalty"]
    with Server("--model", str(model)) as server:
        (line,) = [line for line in server.said if "sampling defaults" in line]
        assert "temperature 0.6, top_p 0.95, top_k 20, min_p 0.05, repetition_penalty 1.05, max_new_tokens 40" in line
        told = sampling_of(server, "/v1/chat/completions", chat)
        assert {name: round(told[name], 4) for name in names} == {name: DEFAULTS[name] for name in names}
        assert told["max_tokens"] == 40
        assert sampling_of(server, "/v1/chat/completions", {**chat, "max_tokens": 90})["max_tokens"] == 90, "no cap"
        assert sampling_of(server, "/v1/completions", {"prompt": "Once"})["max_tokens"] == 16
        asked = sampling_of(server, "/v1/completions", {"prompt": "Once", "repetition_penalty": 1, "temperature": 1, "top_k": -1})
        assert (asked["repetition_penalty"], asked["temperature"], asked["top_k"]) == (1, 1, -1) or asked["top_k"] in (-1, 0)
        search = {"prompt": "Once", "use_beam_search": True, "n": 2, "best_of": 2}
        assert sampling_of(server, "/v1/completions", search)["repetition_penalty"] == 1
    with Server("--model", str(model), "--generation-config", "none") as server:
        assert not any("sampling defaults" in line for line in server.said)
        told = sampling_of(server, "/v1/chat/completions", chat)
        assert (told["temperature"], told["repetition_penalty"]) == (1, 1) and told["max_tokens"] > 40


def test_a_repetition_penalty_that_is_a_default_gives_the_answer_of_one_that_is_asked_for(model):
    def answer(**fields):
        with Server("--model", str(model)) as server, server.complete(model="tales", max_tokens=40, temperature=0, **fields) as got:
            return json.loads(got.read())["choices"][0]["text"]
    plain, asked = answer(), answer(repetition_penalty=1.5)
    generation = json.loads((model / "generation_config.json").read_text())
    (model / "generation_config.json").write_text(json.dumps({**generation, "repetition_penalty": 1.5}))
    assert answer() == asked != plain
    assert generate(model, max_tokens=12)[1].rstrip("\n") == asked[:len(generate(model, max_tokens=12)[1].rstrip("\n"))]


def test_a_token_that_the_model_has_no_row_for_is_reported_wherever_it_is_spelt(model):
    (model / "added_tokens.json").write_text(json.dumps({"[PAD]": json.loads((model / "config.json").read_text())["vocab_size"]}))
    code, said, error = generate(model, "Once [PAD] upon")
    assert (code, said) == (2, "") and "--prompt: it has a token id outside the model's vocabulary" in error
    prefix = model / "prefix.txt"
    prefix.write_text("Once [PAD]")
    for command in (("serve",), ("serve", "--plan")):
        done = quire(*command, "--model", str(model), "--pin-prefix", str(prefix), "--port", "0")
        assert done.returncode == 2 and "has a token id outside the model's vocabulary" in done.stderr, done.stderr
