"""Texts to token ids and back, by the server's own tokenizer."""

import json

import pytest
import tokenizers

from conftest import ROOT

TOKENIZER = tokenizers.Tokenizer.from_file(str(ROOT / "models" / "stories" / "tokenizer.json"))
TEXTS = ["", "Once upon a time", " a  b\n\nc", "naïve 日本語 👍🏽", "x" * 5000, "<|endoftext|> a"]


def ask(server, path, body):
    return server.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_becomes_its_ids_and_they_become_the_text(server, text):
    told = ask(server, "/tokenize", {"prompt": text, "add_special_tokens": False, "return_token_strs": True}).json
    expected = TOKENIZER.encode(text, add_special_tokens=False)
    assert told["tokens"] == expected.ids and told["count"] == len(expected.ids)
    assert told["token_strs"] == expected.tokens
    assert told["max_model_len"] == server.get("/v1/models").json["data"][0]["max_model_len"]
    assert ask(server, "/detokenize", {"tokens": told["tokens"]}).json == {"prompt": text}


def test_a_count_is_what_the_prompt_costs(server):
    for text in TEXTS[1:4]:
        count = ask(server, "/tokenize", {"prompt": text}).json["count"]
        assert server.complete(text, max_tokens=1)["usage"]["prompt_tokens"] == count


def test_a_conversation_has_the_tokens_that_it_is_run_with(server):
    body = {"messages": [{"role": "user", "content": "Once upon a time"}]}
    told = ask(server, "/tokenize", body).json
    assert told["tokens"] == ask(server, "/v1/chat/completions/render", body).json["token_ids"]
    usage = ask(server, "/v1/chat/completions", body | {"max_tokens": 1}).json["usage"]
    assert told["count"] == usage["prompt_tokens"]


def test_faults_name_their_field(server):
    for path, body, param in (("/tokenize", {}, "prompt"), ("/tokenize", {"prompt": 1}, "prompt"),
                              ("/tokenize", {"prompt": "a" * (1 << 20) + "b"}, "prompt"),
                              ("/tokenize", {"prompt": "a", "return_token_strs": 1}, "return_token_strs"),
                              ("/detokenize", {}, "tokens"), ("/detokenize", {"tokens": [1 << 31]}, "tokens"),
                              ("/detokenize", {"tokens": [1] * ((1 << 18) + 1)}, "tokens")):
        answer = ask(server, path, body)
        assert answer.status == 400 and answer.error["param"] == param, answer.text
    assert ask(server, "/tokenize", {"prompt": "a" * (1 << 20)}).status == 200
    assert ask(server, "/detokenize", {"tokens": [1] * (1 << 18)}).status == 200
    assert server.get("/tokenize").status == 405
