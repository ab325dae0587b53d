"""Asks the server through lm-eval's model for completions; prints what it heard as one line of JSON."""

import only_loopback  # isort: skip: it watches what the others do

import contextlib
import json
import sys

from lm_eval.api.instance import Instance
from lm_eval.api.registry import get_model

PAIRS = [
    ("Once upon a time", " there was a little girl"), ("Once upon a time", " xylophone"), ("The dog was", " happy and wanted to play"),
    ("The dog was ", "big"), ("", "Lily"), ("Tom said:", " \"Hello!\"\n\nThe end."), ("a" * 40, " b c d"), ("One day, ", "Grüße 🙂"),
]  # fmt: skip
LONG = "Once upon a time there was a little dog. He liked to play in the park with his friends. " * 40


def ask(kind, arguments):
    return [Instance(kind, {}, one, i) for i, one in enumerate(arguments)]


question = json.load(sys.stdin)
heard = {}
with contextlib.redirect_stdout(sys.stderr):
    for name, options in {"one": {}, "batches": {"batch_size": 3}, "at_once": {"num_concurrent": 4}}.items():
        model = get_model("local-completions")(base_url=question["url"] + "/v1/completions", model=question["model"], tokenizer=question["model_folder"],
                                               max_length=512, max_retries=1, **options)  # fmt: skip
        until = [("Once upon a time", {"until": ["."], "max_gen_toks": 40}), ("The dog", {"until": ["\n", " the"], "max_gen_toks": 30, "temperature": 0})]
        heard[name] = {
            "scores": [list(score) for score in model.loglikelihood(ask("loglikelihood", PAIRS), disable_tqdm=True)],
            "rolling": model.loglikelihood_rolling(ask("loglikelihood_rolling", [("The little cat sat on the mat.",), (LONG,)]), disable_tqdm=True),
            "until": model.generate_until(ask("generate_until", until), disable_tqdm=True),
        }
    heard["pairs"] = [model._encode_pair(*pair) if pair[0] else ([model.prefix_token_id], model.tok_encode(pair[1])) for pair in PAIRS]
heard["refused"] = only_loopback.refused
print(json.dumps(heard))
