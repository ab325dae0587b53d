"""`quire inspect`: what it says of a model, as text and as JSON, and how it reaches a running server."""

import json
import os
import re
import subprocess

import gguf_models
import pytest
from test_cli import ENVIRONMENT, QUIRE, ROOT, OtherServer, Server, quire

CONFIG = json.loads((ROOT / "models" / "stories" / "config.json").read_text())


def inspect_json(*args):
    done = quire("inspect", "--json", *map(str, args))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def inspect_text(*args):
    done = quire("inspect", *map(str, args))
    assert done.returncode == 0, done.stderr
    return done.stdout


def facts(text):
    """The rows between the headline and the table of the KV cache."""
    rows = text.split("\n\n")[1].splitlines()
    return {row[:16].strip(): row[16:] for row in rows if row[:16].strip()}


def test_it_begins_with_name_family_and_parameters_in_words():
    first = inspect_text().splitlines()[0]
    assert first == "stories: LlamaForCausalLM (family llama), 5.5M parameters"


def test_a_row_answers_each_question_of_a_newcomer():
    rows, seen = facts(inspect_text()), inspect_json()
    assert rows["parameters"] == str(seen["parameters"])
    assert rows["weights"] == f"bf16, {seen['bytes'] / 2**20:.1f} MiB on disk in {seen['num_tensors']} tensors"
    assert rows["vocabulary"] == f"{CONFIG['vocab_size']} tokens"
    assert rows["context"] == f"{CONFIG['max_position_embeddings']} tokens"
    assert rows["packed"] == f"{seen['packed_bytes'] / 2**20:.1f} MiB in memory with --quantize none"
    bf16 = next(row for row in seen["kv"] if row["dtype"] == "bf16")
    assert rows["KV cache"] == f"{bf16['bytes_per_token']} bytes per token in bf16"
    assert "(an estimate: " in inspect_text() and "tokens/s for one stream" in rows["decoding speed"]


def test_tensors_are_listed_only_when_asked_for():
    assert "model.embed_tokens.weight" not in inspect_text() and "tensors" not in inspect_json()
    assert "model.embed_tokens.weight" in inspect_text("--tensors")
    seen = inspect_json("--tensors")
    assert seen["num_tensors"] == len(seen["tensors"])
    assert seen["bytes"] == sum(tensor["bytes"] for tensor in seen["tensors"])
    counts = [shape[0] * (shape[1] if len(shape) > 1 else 1) for shape in (tensor["shape"] for tensor in seen["tensors"])]
    assert seen["parameters"] == sum(counts)


def leaves(value, path=()):
    if isinstance(value, dict):
        for name, member in value.items():
            yield from leaves(member, (*path, name))
    elif isinstance(value, list):
        for member in value:
            yield from leaves(member, path)
    else:
        yield path, value


def test_every_number_in_the_json_is_a_number():
    done = quire("inspect", "--json", "--tensors")
    seen = json.loads(done.stdout)
    texts = {path[-1] for path, value in leaves(seen) if isinstance(value, str)}
    assert texts == {"model", "architecture", "family", "description", "weights", "quantize", "kv_dtype", "dtype", "name", "tool_calls"}
    numbers = {path[-1]: value for path, value in leaves(seen) if isinstance(value, (int, float)) and not isinstance(value, bool)}
    speeds = {"tokens_per_s", "tokens_per_s_at_max_model_len"}
    assert {name for name, value in numbers.items() if isinstance(value, float)} <= speeds
    assert not re.search(r":-?\d+(\.\d+)?[eE]", done.stdout)


def test_the_table_says_how_many_streams_of_a_context_fit():
    seen = inspect_json("--kv-cache-memory", "64MiB")
    assert seen["kv_memory_bytes"] == 64 << 20
    for row in seen["kv"]:
        (context,) = row["contexts"]
        assert context["tokens"] == CONFIG["max_position_embeddings"]
        assert context["bytes"] >= context["tokens"] * row["bytes_per_token"] * 0.99
        assert context["streams"] * context["bytes"] <= 64 << 20 < (context["streams"] + 1) * context["bytes"]
    f32 = next(row for row in seen["kv"] if row["dtype"] == "f32")["contexts"][0]
    assert f"{f32['streams']} x 3.0 MiB" in inspect_text("--kv-cache-memory", "64MiB")


def test_the_streams_of_the_table_are_those_of_a_plan():
    plan = quire("serve", "--plan", "--kv-cache-memory", "64MiB", "--max-num-seqs", "4096", "--speculative-config", '{"method": "none"}')
    assert plan.returncode == 0, plan.stderr
    longest = CONFIG["max_position_embeddings"]
    fit = int(re.search(rf"^ *{longest} +(\d+) +\d+$", plan.stdout, re.MULTILINE).group(1))
    seen = inspect_json("--kv-cache-memory", "64MiB")
    assert next(row for row in seen["kv"] if row["dtype"] == seen["kv_dtype"])["contexts"][-1]["streams"] == fit


def on_one_cpu(*args):
    """With one thread nothing waits for a thread that another program keeps from running."""
    command = ["taskset", "--cpu-list", str(min(os.sched_getaffinity(0))), QUIRE, *args]
    return json.loads(subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300, check=True, env=ENVIRONMENT).stdout)


def agree_within_three(*args):
    """Other programs slow either of them down for a while: of a few tries, the fastest of each count."""
    told = measured = 0
    for _ in range(5):
        speed = on_one_cpu("inspect", "--json", *args)["estimated_speed"]
        assert speed["threads"] == 1 and speed["tokens_per_s_at_max_model_len"] < speed["tokens_per_s"]
        rows = on_one_cpu("bench", "--json", "--runs", "3", *args)["rows"]
        run = next(row["tokens_per_s"] for row in rows if row["what"] == "decode" and row["sequences"] == 1)
        told, measured = max(told, speed["tokens_per_s"]), max(measured, run)
        if measured / 3 < told < measured * 3:
            return
    pytest.fail(f"the estimate is {told} tokens/s, a run has {measured}")


def test_the_estimated_speed_is_within_a_factor_of_three_of_a_measured_run():
    """docs/start.md names the factor."""
    agree_within_three()


def test_fewer_bits_are_fewer_bytes_for_a_token_to_read():
    bytes_of = {kind: inspect_json("--quantize", kind)["estimated_speed"]["step_bytes"] for kind in ("none", "int8", "int4")}
    assert bytes_of["none"] > 1.9 * bytes_of["int8"] > 1.9 * 1.4 * bytes_of["int4"]


# ---- the chat template


TOOLS = ("{%- for t in tools or [] -%}{{ t.function.name }}{%- endfor -%}{%- for m in messages -%}{{ m.content or '' }}"
         "{%- for c in m.tool_calls or [] -%}<tool_call>{{ c.function | tojson }}</tool_call>{%- endfor -%}{%- endfor -%}"
         "{# <think> </think> #}")


def model_with(tmp_path, **tokenizer_config):
    for file in (ROOT / "models" / "stories").iterdir():
        if file.name != "tokenizer_config.json":
            (tmp_path / file.name).symlink_to(file)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(tokenizer_config))
    return tmp_path


def test_the_form_of_tools_and_reasoning_is_the_templates(tmp_path):
    model = model_with(tmp_path, chat_template=TOOLS)
    chat = inspect_json(model)["chat"]
    assert chat == {"template": True, "tool_template": False, "tool_calls": "hermes", "reasoning": "think", "problem": None}
    assert facts(inspect_text(model))["chat template"] == "yes; tool calls as hermes, reasoning as think"


def test_a_model_without_a_template_says_so(tmp_path):
    model = model_with(tmp_path)
    assert inspect_json(model)["chat"] == {"template": False, "tool_template": False, "tool_calls": None, "reasoning": None, "problem": None}
    assert facts(inspect_text(model))["chat template"].startswith("none: chat requests get status 400")


def test_a_template_that_cannot_be_used_is_a_fact_beside_the_others(tmp_path):
    model = model_with(tmp_path, chat_template="{% for %}")
    assert "tokenizer_config.json" in inspect_json(model)["chat"]["problem"]
    assert facts(inspect_text(model))["chat template"].startswith("cannot be used: ")


def test_a_gguf_file_has_its_block_types_for_weights(tmp_path):
    seen = inspect_json(gguf_models.write_drawn(tmp_path / "x.gguf", "Q4_0"))
    assert "Q4_0" in seen["weights"] and seen["architecture"] == "LlamaForCausalLM"


# ---- a running server


@pytest.fixture(scope="module")
def server():
    with Server() as running:
        yield running


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/", "/metrics"])
def test_a_url_is_taken_as_clients_have_it(server, end):
    done = quire("inspect", "--url", server.url + end, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["model"] == "stories"


def test_counts_of_a_server_are_whole_numbers(server):
    text = quire("inspect", "--url", server.url, "--json").stdout
    floats = [path[-1] for path, value in leaves(json.loads(text)) if isinstance(value, float)]
    assert floats == ["block_hit_rate"] and not re.search(r"\d[eE]", text)
    assert {path[-1] for path, value in leaves(json.loads(text)) if isinstance(value, str)} == {"model", "version"}


@pytest.mark.parametrize("status,advice", [(401, "Give a key that may read /metrics"), (403, "role monitor or admin"), (404, "not a quire server")])
def test_a_refusal_says_what_to_do(status, advice):
    with OtherServer(status) as url:
        done = quire("inspect", "--url", url)
    assert done.returncode == 2 and f"status {status}" in done.stderr and advice in done.stderr


def test_a_key_that_is_refused_is_not_asked_for_again():
    with OtherServer(401) as url:
        done = quire("inspect", "--url", url, "--api-key", "sk-secret")
    assert "Give another key" in done.stderr and "sk-secret" not in done.stderr


def test_https_to_a_plain_server_says_to_try_http(server):
    done = quire("inspect", "--url", server.url.replace("http://", "https://"))
    assert done.returncode == 2 and "does not speak TLS" in done.stderr and "http://" in done.stderr


def test_flags_that_do_not_go_together_are_refused():
    for args, message in ((("--cacert", "x"), "--cacert is for an https:// URL"), (("--cacert", "x", "--url", "http://a"), "--cacert is for"),
                          (("--tensors", "--url", "http://a"), "leave --tensors out")):
        done = quire("inspect", *args)
        assert done.returncode == 2 and message in done.stderr
    missing = quire("inspect", "--url", "https://127.0.0.1:1", "--cacert", "/nonexistent.pem")
    assert missing.returncode == 2 and "--cacert /nonexistent.pem" in missing.stderr
