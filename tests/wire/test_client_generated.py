"""A client that is generated from the OpenAPI document, typed throughout, hears what the wire says."""

import pytest

from libraries import CALLING, heard_by_generated_client, wire

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def heard(talker, tmp_path_factory):
    """The document is turned into code without a warning: nothing of it was left out."""
    return heard_by_generated_client(talker, tmp_path_factory.mktemp("generated"))


def test_it_reaches_nobody_else(heard):
    assert heard["refused"] == []


def test_it_completes_a_chat_whose_answer_is_an_object_of_its_type(heard, talker):
    expected = wire(talker, max_tokens=24)
    for way in ("chat", "asynchronous"):
        assert heard[way]["content"] == expected["choices"][0]["message"]["content"], way
        assert (heard[way]["finish"], heard[way]["tokens"], heard[way]["calls"]) == ("length", 24, []), way
        assert heard[way]["cached"] >= 0, way
    assert heard["unset"], "an answer without calls has none"


def test_it_receives_calls_and_log_probabilities(heard, talker):
    (call,) = wire(talker, **CALLING)["choices"][0]["message"]["tool_calls"]
    ((name, _),) = heard["called"]["calls"]
    assert name == call["function"]["name"] and heard["called"]["finish"] == "tool_calls"
    content = wire(talker, max_tokens=24, logprobs=True, top_logprobs=2)["choices"][0]["logprobs"]["content"]
    assert heard["logprobs"] == [[one["token"], one["logprob"], [top["token"] for top in one["top_logprobs"]]] for one in content]


def test_it_lists_models_in_either_shape(heard, talker):
    assert heard["models"] == [model["id"] for model in talker.get("/v1/models").json["data"]]
    assert heard["as_anthropic"] == "AnthropicModelList"
    assert heard["model"] == talker.get("/v1/models").json["data"][0]["max_model_len"]


def test_it_gets_an_error_of_the_type_that_the_path_has(heard):
    assert heard["unknown"] == [404, "not_found_error", "model", 404]
    assert heard["wrong"] == [400, "invalid_request_error", "temperature", 400]
    assert heard["message_fault"] == ["error", "not_found_error"]
    assert heard["no_model"] == "model"


def test_it_asks_the_other_forms_of_conversation_and_embeds(heard, talker):
    message = talker.post_to("/v1/messages", {"model": "stories", "messages": [{"role": "user", "content": "Once"}], "max_tokens": 8, "seed": 5, "temperature": 0.8})
    assert heard["message"] == [message.json["content"][0]["text"], "max_tokens"]
    response = talker.post_to("/v1/responses", {"model": "stories", "input": "Once", "max_output_tokens": 8, "seed": 5, "temperature": 0.8})
    assert heard["response"] == [response.json["output"][0]["content"][0]["text"], "incomplete"]
    assert heard["embedding"] == 2
