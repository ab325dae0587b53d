"""Digests of answers: nothing that is to be looked at is left out, and a difference is found. No server is started."""

import copy
import json
import re

import pytest

import answers_digest

DOCS = answers_digest.ROOT / "docs"
# On a machine with the least: one instruction set, and no simulated GPU.
FEWEST = answers_digest.configurations(("scalar",), simulated=False)


def methods_of_documents():
    """The methods that docs/speculation.md names, in its table of keys and the list below it."""
    text = (DOCS / "speculation.md").read_text()
    rows = text.split("| key | methods |")[1].split("\n\n")[0].splitlines()[2:]
    listed = re.search(r"^Methods are (.*?)\. \"Those that compute\"", text, re.M | re.S)[1]
    return {name for part in (listed, *(row.split("|")[2] for row in rows)) for name in re.findall(r"`(\w+)`", part)}


def values_of(flag):
    """The values that docs/flags.md gives for a choice."""
    row = next(line for line in (DOCS / "flags.md").read_text().splitlines() if line.startswith(f"| `{flag}` |"))
    return set(re.split(r"(?<!\\)\|", row)[5].strip().split(r"\|"))


def given(flag, asked):
    """Values that a flag has in configurations."""
    pairs = (pair for one in asked for pair in zip(one.flags, one.flags[1:]))
    return {value for name, value in pairs if name == flag}


def test_every_drafter_is_asked():
    documented = methods_of_documents()
    assert {"eagle3", "ngram", "hybrid", "draft_verify"} <= documented and len(documented) >= 15
    configs = [json.loads(config) for config in given("--speculative-config", FEWEST)]
    assert documented - {config["method"] for config in configs} == set()
    assert {config.get("accept", "match") for config in configs} == {"match", "ratio", "block"}


@pytest.mark.parametrize("flag", ["--kv-cache-dtype", "--quantize"])
def test_every_type_of_weights_and_caches_is_asked(flag):
    documented = values_of(flag)
    assert {"int8", "int4", "fp8"} <= documented
    assert given(flag, FEWEST) == documented


def test_every_instruction_set_is_asked_where_there_is_one():
    assert given("--isa", answers_digest.configurations()) == values_of("--isa")
    assert "scalar" in answers_digest.isas_here()


def test_five_hundred_requests_are_asked_on_any_machine():
    assert sum(len(one.jobs) for one in FEWEST) >= 500


def test_names_are_a_configurations_own_and_no_request_is_asked_twice():
    for asked in (FEWEST, answers_digest.configurations()):
        assert len({one.name for one in asked}) == len(asked)
        for one in asked:
            assert len({json.dumps(job) for job in one.jobs}) == len(one.jobs), one.name


def reports():
    """Two configurations of one mode, of two requests each, as a run writes them."""
    answers = [["tokens", "scores"], ["more tokens", "more scores"]]
    one = {"mode": "m", "flags": ["--isa", "scalar"], "requests": "r", "answers": answers}
    one["digest"] = answers_digest.sha(answers)
    return {"plain": one, "drafted": copy.deepcopy(one)}


def planted(name, request, part):
    changed = reports()
    changed[name]["answers"][request][part] = "something else"
    changed[name]["digest"] = answers_digest.sha(changed[name]["answers"])
    return changed


def compare(folder, before, after):
    """The exit code of --compare."""
    paths = folder / "before.json", folder / "after.json"
    for path, configurations in zip(paths, (before, after), strict=True):
        path.write_text(json.dumps({"configurations": configurations}))
    return answers_digest.main(["--compare", *map(str, paths)])


def test_equal_reports_are_equal(tmp_path, capsys):
    assert compare(tmp_path, reports(), reports()) == 0
    assert capsys.readouterr().out == "equal: 2 configurations, 4 requests\n"


@pytest.mark.parametrize("part, told", [(0, "tokens differ in [1], scores in []"),
                                        (1, "tokens differ in [], scores in [1]")])  # fmt: skip
def test_a_planted_difference_is_found(tmp_path, capsys, part, told):
    assert compare(tmp_path, reports(), planted("drafted", 1, part)) == 1
    assert capsys.readouterr().out == f"drafted: of 2 answers {told}\n"


def test_what_only_one_report_has_is_a_difference(tmp_path, capsys):
    fewer = {"plain": reports()["plain"]}
    assert compare(tmp_path, reports(), fewer) == compare(tmp_path, fewer, reports()) == 1
    assert capsys.readouterr().out == "drafted: only in the first report\ndrafted: only in the second report\n"


@pytest.mark.parametrize("key, value", [("requests", "others"), ("flags", ["--isa", "avx2"])])
def test_other_requests_and_flags_are_no_comparison(tmp_path, capsys, key, value):
    other = reports()
    other["plain"][key] = value
    assert compare(tmp_path, reports(), other) == 1
    assert capsys.readouterr().out == "plain: asked or started otherwise, so nothing is known\n"


def test_configurations_of_one_mode_are_held_to_the_same_answers():
    jobs = {name: [("/path", {"seed": 1}), ("/path", {"seed": 2})] for name in reports()}
    assert answers_digest.unlike(reports(), jobs) == []
    wrong = planted("drafted", 1, 1)
    assert answers_digest.unlike(wrong, jobs) == ["drafted, request 1: another answer than request 1 of plain"]
    wrong["drafted"]["mode"] = "another"
    assert answers_digest.unlike(wrong, jobs) == []


def test_digests_are_of_tokens_and_scores_and_of_nothing_else():
    choice = {"index": 0, "text": "a", "token_ids": [5], "finish_reason": "stop"}
    choice["logprobs"] = {"token_logprobs": [-0.5]}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2, "prompt_tokens_details": {"cached": 0}}
    answer = {"id": "cmpl-1", "created": 1, "timings": {}, "choices": [choice], "usage": usage}

    def digests(**changes):
        return [answers_digest.sha(part) for part in answers_digest.parts_of({**answer, **changes})]

    tokens, scores = digests()
    found = {**usage, "prompt_tokens_details": {"cached": 1}}
    assert digests(id="cmpl-2", created=2, usage=found) == [tokens, scores]
    for changes in ({"text": "b"}, {"token_ids": [6]}, {"finish_reason": "length"}):
        changed = digests(choices=[{**choice, **changes}])
        assert changed[0] != tokens and changed[1] == scores
    for changes in ({"logprobs": {"token_logprobs": [-0.50000006]}}, {"prompt_logprobs": [None]}):
        changed = digests(choices=[{**choice, **changes}])
        assert changed[0] == tokens and changed[1] != scores
    assert digests(usage={**usage, "completion_tokens": 2})[0] != tokens


@pytest.mark.parametrize("dtype, data", [("F32", "0000803f000040c0"), ("F16", "003c00c2"), ("BF16", "803f40c0")])
def test_random_models_are_stored_in_their_type(dtype, data):
    assert answers_digest.encoded([1.0, -3.0], dtype).hex() == data
