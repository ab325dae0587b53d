"""No answer tells a client where the model and the settings' files lie on the server."""

import json
import shutil

import pytest

from conftest import ROOT, TALKING_TEMPLATE, Server

SECRET = "hidden-folder-7f3a"
NAME = "shown-name"
VALUES = [
    {}, {"model": "another"}, {"model": 5}, {"unknown_field": 1}, {"prompt": 5}, {"prompt": "Once", "max_tokens": 1},
    {"prompt": "Once", "max_tokens": 1, "stream": True}, {"messages": [{"role": "user", "content": "Once"}], "max_tokens": 1},
    {"messages": [{"role": "nobody", "content": "Once"}]}, {"input": "Once", "max_output_tokens": 16}, {"input": "Once"},
    {"messages": [{"role": "user", "content": "Once"}], "tools": [{"type": "function", "function": {"name": "f"}}], "max_tokens": 1},
    {"prompt": "Once", "max_tokens": 1, "logprobs": 1, "speculative": {"method": "none"}}, {"tokens": [1]}, {"path": "saved"},
    {"path": "../saved"},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("served") / SECRET
    shutil.copytree(ROOT / "models" / "stories", place / NAME)
    (place / "chat.jinja").write_text(TALKING_TEMPLATE + "{% if messages[0].content == 'raise' %}{{ raise_exception('no') }}{% endif %}")
    (place / "pinned.txt").write_text("Once upon a time")
    for name in ("caches", "packed"):
        (place / name).mkdir()
    return place


@pytest.fixture(scope="module")
def hiding(folder):
    running = Server("--model", folder / NAME, "--chat-template", folder / "chat.jinja", "--pin-prefix", folder / "pinned.txt",
                     "--cache-dir", folder / "caches", "--packed-cache", folder / "packed", "--tokenizer-info", "on")
    assert SECRET in running.log, "the operator is told"
    yield running
    assert running.stop() == 0, running.log[-4000:]


def everything(answer):
    return answer.text + json.dumps(answer.headers)


def paths_of(server):
    paths = server.get("/openapi.json").json["paths"]
    assert len(paths) > 20
    return [(path, method.upper()) for path, methods in paths.items() for method in methods if method in ("get", "post", "delete")]


def test_no_answer_of_any_path_names_the_folder(hiding):
    seen = set()
    for path, method in [*paths_of(hiding), ("/props", "GET"), ("/api/tags", "GET"), ("/slots", "GET"), ("/admin/cache/none", "POST"), ("/", "GET")]:
        for name in (NAME, "none", "%2e%2e") if "{" in path else ("",):
            where = path.replace("{model}", name).replace("{id}", name)
            bodies = [None] if method != "POST" else [json.dumps(value) for value in VALUES] + ["", "{", "[]", '"text"']
            for body in bodies:
                answer = hiding.request(method, where, body, {"Content-Type": "application/json", "anthropic-version": "2023-06-01"}
                                        if path.startswith("/v1/messages") else {"Content-Type": "application/json"})
                assert SECRET not in everything(answer), (method, where, body)
                seen.add(answer.status)
    assert {200, 400, 404} <= seen, "some were answered and some refused"


def test_a_failed_save_or_load_names_the_file_alone(hiding, folder):
    save = "/admin/cache/save"
    (folder / "caches" / "closed").mkdir(exist_ok=True)
    refused = [hiding.post_to(save, {"path": "closed"}), hiding.post_to("/admin/cache/load", {"path": "closed"}),
               hiding.post_to("/admin/cache/load", {"path": "never-saved"})]
    for answer in refused:
        assert answer.status >= 400 and SECRET not in everything(answer), answer.text
    assert all("closed" in answer.text for answer in refused[:2]) and "never-saved" in refused[2].text


def test_a_template_that_raises_does_not_name_its_file(hiding):
    answer = hiding.post_to("/v1/chat/completions", {"messages": [{"role": "user", "content": "raise"}]})
    assert answer.status == 400 and SECRET not in everything(answer), answer.text


def test_the_models_are_listed_by_the_last_part_of_the_path(hiding):
    (model,) = hiding.get("/v1/models").json["data"]
    assert (model["id"], model["root"], model["parent"], model["owned_by"], model["object"]) == (NAME, NAME, None, "quire", "model")
    assert model["max_model_len"] == 512
    (other,) = hiding.request("GET", "/v1/models", headers={"anthropic-version": "2023-06-01"}).json["data"]
    assert other["id"] == NAME


def test_an_unknown_model_is_answered_with_the_names_to_use(hiding):
    refused = hiding.post({"model": "another", "prompt": "a"})
    assert refused.status == 404 and refused.error["message"].endswith(f"served models: {NAME}")


def test_a_client_that_was_set_up_with_the_path_is_served(hiding, folder):
    for name in (str(folder / NAME), NAME):
        assert hiding.post({"model": name, "prompt": "Once", "max_tokens": 1}).json["model"] == name
    assert hiding.post({"model": str(folder), "prompt": "Once"}).status == 404


def test_a_name_that_the_operator_gives_is_the_only_one(start_server, folder):
    server = start_server("--model", folder / NAME, "--served-model-name", "one,two")
    assert [model["id"] for model in server.get("/v1/models").json["data"]] == ["one", "two"]
    assert {model["root"] for model in server.get("/v1/models").json["data"]} == {"one"}
    for name in (NAME, str(folder / NAME)):
        refused = server.post({"model": name, "prompt": "Once"})
        assert refused.status == 404 and refused.error["message"].endswith("served models: one, two")


def test_a_gguf_file_is_known_by_its_name_without_the_folder(start_server, folder):
    import gguf_models

    (folder / "files").mkdir()
    server = start_server("--model", gguf_models.write(folder / "files" / "small.gguf"))
    assert [model["id"] for model in server.get("/v1/models").json["data"]] == ["small"]
    assert not any(SECRET in everything(server.get(path)) for path in ("/v1/models", "/metrics", "/health", "/version", "/tokenizer_info"))
