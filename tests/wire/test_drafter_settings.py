"""Each method that guesses, with each key of --speculative-config: it changes what is guessed, or the start refuses it by name."""

import json
import re
import subprocess

import pytest

from conftest import BINARY, PATIENCE_S, ROOT, Server
from guessers import write_guessers

MODELS = ROOT / "models"
SMALL = str(MODELS / "stories_draft_model")
EAGLE, HYDRA, DATASTORE, NOTHING = "<eagle>", "<hydra>", "<datastore>", "<nothing>"  # made for this module
# What a method has besides its name, in every case below.
METHODS = {
    "draft_model": {"model": SMALL},
    "eagle": {"model": EAGLE},
    "eagle3": {},
    "medusa": {"model": str(MODELS / "stories_medusa")},
    "hydra": {"model": HYDRA},
    "specinfer": {"model": [SMALL, str(MODELS / "stories")]},
    "ngram": {},
    "suffix": {"suffix_decoding_max_spec_offset": 2},
    "rest": {"datastore": DATASTORE},
    "lookahead": {},
    "draft_verify": {},
    "layer_skip": {},
    "magicdec": {"sinks": 128, "window": 1},
    "triforce": {"sinks": 128, "window": 1, "model": SMALL},
    "hybrid": {"suffix_decoding_max_spec_offset": 2},
}
EVERYWHERE = {"num_speculative_tokens": 8, "adaptive": False}
# Another value than above and than the default, by key, and by method where that is not all the same. NOTHING is a path that leads
# nowhere: a path that is read is named by the error.
CHANGES = {
    "num_speculative_tokens": 3,
    "accept": "ratio",
    "adaptive": True,
    "topk": 4,
    "shared_noise": False,
    "model": NOTHING,
    "self_test": False,
    "prompt_lookup_min": 4,
    "prompt_lookup_max": 2,
    "suffix_decoding_max_tree_depth": 2,
    "suffix_decoding_max_cached_tokens": 0,
    "suffix_decoding_max_spec_factor": 0.3,
    "suffix_decoding_max_spec_offset": 8,
    "suffix_decoding_min_token_prob": 0.9,
    "datastore": NOTHING,
    "exit_layer": 1,
    "skip_layers": [1, 2, 3, 4],
    "sinks": 0,
    "window": 96,
    "ngram_size": 2,
    "guesses": 1,
}
CHANGES_OF = {("window", "lookahead"): 1, ("num_speculative_tokens", "medusa"): 2, ("num_speculative_tokens", "hydra"): 1}  # few heads
# The head of random numbers is never right, with the noise or without. That it is looked at is eagle3's case: the drafter is one.
UNSEEN = {("shared_noise", "eagle")}
PROMPT = ("Once upon a time there was a little girl. She had a red ball. Once upon a time there was a big dog. He had a blue ball. "
          "A list: one, two, three, one, two, four, one, two, three, one, two,")
JOBS = [
    {"prompt": PROMPT, "max_tokens": 64, "temperature": 0.8, "seed": 7},
    {"prompt": PROMPT, "max_tokens": 64, "temperature": 2.0, "seed": 7},  # noise decides: who knows it guesses well with any head
    {"prompt": PROMPT, "max_tokens": 64},
    {"prompt": PROMPT + " three", "max_tokens": 64},  # behind past answers
    # The four last tokens stood there once, the two last ones later again; what followed the four is right.
    {"prompt": "One two three red red red. A three red ball. One two three", "max_tokens": 4, "says": " red"},
    # Three ways to go on, and the third one is taken.
    {"prompt": "A red dog. A red ball. A red red hat", "max_tokens": 4, "says": " red"},
    {"prompt": PROMPT * 5, "max_tokens": 96, "temperature": 0.8, "seed": 3},  # past a row's own span of 256 positions, which it always sees
]


KEY = {"X-Request-Key": "a-key-of-my-own-00"}


def keys_of_the_documents():
    """The first column of the table of keys."""
    table = (ROOT / "docs" / "speculation.md").read_text().split("| key | methods |")[1].split("\n\n")[0]
    return {key for row in table.splitlines()[2:] for key in re.findall(r"`(\w+)`", row.split("|")[1])}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """What some guess from: name → path."""
    folder = tmp_path_factory.mktemp("guesses")
    write_guessers(folder, "".join(f"{PROMPT} {more}, five.\n" for more in ("three", "four", "four", "six", "seven") * 4))
    return {EAGLE: folder / "eagle", HYDRA: folder / "hydra", DATASTORE: folder / "store", NOTHING: folder / "nothing"}


def config_of(made, method, **changes):
    config = {"method": method, **EVERYWHERE, **METHODS[method], **changes}
    return json.dumps({key: str(made.get(value, value)) if isinstance(value, str) else value for key, value in config.items()})


def refusal(config):
    """Of a plan and of a start alike."""
    said = []
    for more in (["--plan"], []):
        done = subprocess.run([BINARY, "serve", "--port", "0", "--speculative-config", config, *more], capture_output=True, text=True,
                              timeout=PATIENCE_S)
        assert done.returncode == 2, (config, more, done.stdout)
        said.append(done.stderr.partition("quire: ")[2])
    assert said[0] == said[1]
    return said[0]


def explained(server, name):
    return server.request("GET", f"/v1/requests/{name}/explain", headers=KEY).json


def guessed(config):
    """What a server's answers say, and all that is told of how they were guessed."""
    server = Server("--speculative-config", config)
    answers, drafts, modes = [], [], []
    for number, job in enumerate(JOBS):
        name, fields = f"job-{number}", {"temperature": 0, "ignore_eos": True, "return_token_ids": True, **job}
        if word := fields.pop("says", None):
            ids = server.post_to("/tokenize", {"prompt": word}).json["tokens"]
            fields["logit_bias"] = {str(ids[0]): 100}
        answer = server.post(fields, {"X-Request-Id": name, **KEY})
        assert answer.status == 200, answer.text
        answers.append(answer.json["choices"][0]["token_ids"])
        modes.append(answer.json["system_fingerprint"])
        server.wait_until(lambda _: explained(server, name).get("state") == "finished", f"{name} among the finished")
        drafts.append(explained(server, name)["sequences"][0]["drafts"])
    tested = re.findall(r"draft_self_test (?!skipped)", server.log)
    proposed = server.metrics()["quire:spec_decode_proposed_tokens_total"]
    assert server.stop() == 0, server.log[-4000:]
    return answers, (drafts, modes, len(tested), proposed)


@pytest.mark.parametrize("config", [
    {"method": "eagle", "model": str(MODELS / "stories_draft")},
    {"method": "eagle3", "model": EAGLE},
    {"method": "medusa", "model": str(MODELS / "stories_draft")},
    {"method": "hydra", "model": str(MODELS / "stories_medusa")},
    {"method": "draft_model", "model": str(MODELS / "stories_draft")},
    {"method": "layer_skip", "exit_layer": 7},
    {"method": "draft_verify", "skip_layers": [6]},
    {"method": "rest", "datastore": str(ROOT / "README.md")},
    {"method": "triforce", "model": SMALL, "topk": 2},
], ids=lambda config: config["method"])
def test_a_plan_refuses_what_a_start_would(made, config):
    assert refusal(json.dumps({key: str(made.get(value, value)) if isinstance(value, str) else value for key, value in config.items()}))


def test_the_table_of_keys_is_whole():
    assert keys_of_the_documents() == set(CHANGES) | {"method"}


@pytest.mark.parametrize("method", METHODS)
def test_every_setting_has_an_effect_or_is_refused_by_name(method, made):
    answers, plain = guessed(config_of(made, method))
    effective = set()
    for key, value in CHANGES.items():
        config = config_of(made, method, **{key: CHANGES_OF.get((key, method), value)})
        done = subprocess.run([BINARY, "serve", "--plan", "--speculative-config", config], capture_output=True, text=True, timeout=PATIENCE_S)
        if done.returncode != 0:
            said = refusal(config)
            assert key in said or (value is NOTHING and str(made[NOTHING]) in said), said
            continue
        changed_answers, changed = guessed(config)
        assert changed != plain or (key, method) in UNSEEN, f"{method}: {key} has no effect"
        assert changed_answers == answers or key == "accept", (method, key)
        effective.add(key)
    assert {"num_speculative_tokens", "accept"} <= effective
