"""What clients of vLLM, SageMaker and Anthropic ask besides for answers is there under the names that they know."""

import datetime

import anthropic
import pytest

from conftest import PATIENCE_S


@pytest.fixture(scope="module")
def claude(server):
    with anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0, timeout=PATIENCE_S) as client:
        yield client


def test_anthropics_clients_get_the_models_in_its_shape(server, claude):
    page = claude.models.list()
    (model,) = page.data
    assert (page.first_id, page.last_id, page.has_more) == ("stories", "stories", False)
    assert (model.id, model.display_name, model.type, model.lifecycle) == ("stories", "stories", "model", "active")
    assert abs(model.created_at - datetime.datetime.now(datetime.timezone.utc)) < datetime.timedelta(hours=1)
    assert model.max_input_tokens == server.get("/v1/models").json["data"][0]["max_model_len"]
    assert claude.models.retrieve("stories") == model
    with pytest.raises(anthropic.NotFoundError) as refusal:
        claude.models.retrieve("other")
    assert refusal.value.body["type"] == "error"


def test_others_get_them_in_openais(server):
    models = server.get("/v1/models").json
    assert models["object"] == "list" and models["data"][0]["object"] == "model"


def test_an_answer_of_anthropics_paths_has_its_id_under_both_names(server, claude):
    raw = claude.messages.with_raw_response.create(model="stories", max_tokens=1, messages=[{"role": "user", "content": "a"}])
    assert raw.headers["request-id"] == raw.headers["x-request-id"]
    refused = server.post_to("/v1/messages", {"max_tokens": 0})
    assert refused.status == 400 and refused.headers["request-id"] == refused.headers["x-request-id"]
    assert "request-id" not in server.post_to("/v1/completions", {"prompt": "a", "max_tokens": 1}).headers


def test_a_ping_is_answered_without_a_word(server):
    for method in ("GET", "POST"):
        answer = server.request(method, "/ping")
        assert answer.status == 200 and answer.text == ""
    assert server.request("DELETE", "/ping").status == 405


def test_the_load_counts_what_runs_and_waits(server):
    assert server.get("/load").json == {"server_load": 0}
    with server.stream("Once upon a time", max_tokens=400, ignore_eos=True) as events:
        next(events)
        assert server.get("/load").json["server_load"] >= 1
        for _ in events:
            pass


def test_a_post_of_nothing_at_all_is_taken_as_curl_sends_it(server):
    with server.socket() as raw:
        raw.sendall(b"POST /admin/cache/clear HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n\r\n")
        assert raw.recv(1000).startswith(b"HTTP/1.1 200 ")


def test_the_tokenizers_settings_are_returned_where_the_operator_wants_that(server, start_server, tmp_path):
    closed = server.get("/tokenizer_info")
    assert closed.status == 404 and "--tokenizer-info on" in closed.json["error"]["message"]
    (tmp_path / "t.jinja").write_text("{{ messages[0].content }}")
    told = start_server("--tokenizer-info", "on", "--chat-template", tmp_path / "t.jinja").get("/tokenizer_info")
    assert told.status == 200 and told.headers["content-type"].startswith("application/json")
    assert told.json["chat_template"] == "{{ messages[0].content }}" and told.json["tokenizer_class"]
    assert not {"vocab_file", "merges_file", "tokenizer_file"} & told.json.keys()
    assert all(not isinstance(told.json.get(name), dict) for name in ("bos_token", "eos_token", "unk_token"))
    assert server.request("POST", "/tokenizer_info", "{}").status == 405
