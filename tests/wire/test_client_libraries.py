"""What LangChain, LiteLLM, lm-eval and OpenAI's client for Node hear is what the wire says.

Tokens that are ready at once come in one piece: of a stream, only that it has more than one is certain.
"""

import json

import jsonschema
import pytest

from conftest import idle
from libraries import CALLING, PERSON, QUESTION, heard_by, heard_by_node, wire

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def whole(talker):
    return wire(talker, max_tokens=24)


@pytest.fixture(scope="module")
def called(talker):
    """[name, arguments] of an answer that calls."""
    choice = wire(talker, **CALLING)["choices"][0]
    (call,) = choice["message"]["tool_calls"]
    assert choice["finish_reason"] == "tool_calls"
    return [call["function"]["name"], json.loads(call["function"]["arguments"])]


@pytest.fixture(scope="module")
def text(talker):
    return wire(talker, "/v1/completions", max_tokens=24)["choices"][0]["text"]


def content(answer):
    return answer["choices"][0]["message"]["content"]


# ---- LangChain


@pytest.fixture(scope="module")
def langchain(talker):
    return heard_by("langchain", talker)


def test_langchain_reaches_nobody_else(langchain):
    assert langchain["refused"] == []


def test_langchain_invokes_and_streams_a_chat(langchain, whole):
    assert langchain["invoked"]["content"] == langchain["streamed"]["content"] == content(whole)
    assert langchain["streamed"]["chunks"] > 1
    assert langchain["at_once"] == [content(whole)] * 2
    assert langchain["batch"][0] == langchain["batch"][2] == content(whole)
    assert langchain["invoked"]["finish"] == langchain["streamed"]["finish"] == "length"
    for name in ("invoked", "streamed"):
        usage = langchain[name]["usage"]
        assert (usage["input_tokens"], usage["output_tokens"]) == (whole["usage"]["prompt_tokens"], 24)


def test_langchain_receives_log_probabilities(langchain, talker):
    assert langchain["logprobs"] == wire(talker, max_tokens=24, logprobs=True, top_logprobs=2)["choices"][0]["logprobs"]["content"]


def test_langchain_receives_calls_of_bound_tools_whole_and_streamed(langchain, called):
    for way in ("called", "called_in_a_stream"):
        assert langchain[way]["calls"] == [called] and not langchain[way]["content"], way
    assert langchain["called_in_a_stream"]["finish"] == langchain["called"]["finish"] == "tool_calls"


def test_langchain_goes_on_behind_a_call(langchain):
    assert langchain["second_turn"]["content"] and langchain["second_turn"]["finish"] == "length"


def test_langchain_gets_structured_output(langchain):
    for way in ("person", "person_as_dict", "person_in_a_stream", "person_by_a_call"):
        jsonschema.validate(langchain[way], PERSON)


def test_langchain_raises_the_client_s_errors(langchain):
    assert langchain["fault"] == "model"


def test_langchain_completes_text(langchain, talker):
    """It says `top_p` 1 where nobody says anything."""
    expected = [choice["text"] for choice in wire(talker, "/v1/completions", prompt=[QUESTION["prompt"], "The dog"], n=2, max_tokens=24, top_p=1)["choices"]]
    assert langchain["completed"] == langchain["completed_in_a_stream"] == expected[0]
    assert sum(langchain["completed_several"], []) == expected


# ---- LiteLLM


@pytest.fixture(scope="module")
def litellm(talker):
    return heard_by("litellm", talker)


def test_litellm_reaches_nobody_else(litellm):
    assert litellm["refused"] == []


@pytest.mark.parametrize("provider", ["openai", "hosted_vllm"])
def test_litellm_receives_a_chat_whole_streamed_and_at_once(litellm, provider, whole):
    heard = litellm[provider]
    assert heard["whole"]["content"] == heard["streamed"]["content"] == content(whole)
    assert heard["at_once"] == [content(whole)] * 3
    assert heard["whole"]["finish"] == heard["streamed"]["finish"] == "length"
    assert heard["whole"]["usage"] == 24 and heard["streamed"]["chunks"] > 1
    assert heard["logprobs"] == 24


@pytest.mark.parametrize("provider", ["openai", "hosted_vllm"])
def test_litellm_receives_calls_and_forms(litellm, provider, called):
    heard = litellm[provider]
    assert heard["called"]["finish"] == heard["called_in_a_stream"]["finish"] == "tool_calls"
    assert heard["called"]["calls"] == heard["called_in_a_stream"]["calls"]
    ((name, arguments),) = heard["called"]["calls"]
    if provider == "openai":
        assert [name, arguments] == called
    else:  # it leaves parts of a tool's schema out, so the prompt is another one
        assert name == "look" and arguments["at"] in ("sky", "sea")
    jsonschema.validate(heard["person"], PERSON)


@pytest.mark.parametrize("provider", ["openai", "hosted_vllm"])
def test_litellm_raises_typed_errors(litellm, provider):
    assert litellm[provider]["unknown"] == ["NotFoundError", 404]
    assert litellm[provider]["wrong"] == ["BadRequestError", 400]


def test_litellm_completes_text(litellm, text):
    assert litellm["text"] == litellm["text_in_a_stream"] == litellm["text_by_openai"] == text


# ---- lm-eval


@pytest.fixture(scope="module")
def lm_eval(server):
    return heard_by("lm_eval", server)


def test_lm_eval_reaches_nobody_else(lm_eval):
    assert lm_eval["refused"] == []


def test_lm_eval_scores_the_same_however_it_sends(lm_eval):
    for way in ("batches", "at_once"):
        assert lm_eval[way] == lm_eval["one"]


def test_lm_eval_s_log_likelihoods_are_those_of_transformers(lm_eval):
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(QUESTION["model_folder"], dtype=torch.float32, local_files_only=True)
    for (context, continuation), (score, is_greedy) in zip(lm_eval["pairs"], lm_eval["one"]["scores"], strict=True):
        with torch.no_grad():
            logits = model(torch.tensor([context + continuation])).logits[0]
        rows = torch.log_softmax(logits.double(), dim=-1)[len(context) - 1 : -1]
        scores = rows[range(len(continuation)), continuation]
        # Weights are the same; ours keeps K and V as bf16, an 8-bit mantissa: a few thousandths a token at logits of this size.
        assert score == pytest.approx(float(scores.sum()), abs=0.02 * len(continuation))
        gaps = rows.max(dim=-1).values - scores
        if (gaps == 0).all() or gaps.max() > 0.05:  # else they are too close to tell
            assert is_greedy == bool((gaps == 0).all())


def test_lm_eval_s_rolling_scores_of_a_long_text_add_up(lm_eval):
    short, long = lm_eval["one"]["rolling"]
    assert long < short < 0


def test_lm_eval_generates_until_a_stop(lm_eval, server):
    sentence, words = lm_eval["one"]["until"]
    assert sentence == server.text("Once upon a time", temperature=0, max_tokens=40, stop=["."], seed=1234)
    assert words == server.text("The dog", temperature=0, max_tokens=30, stop=["\n", " the"])
    assert sentence and "." not in sentence


# ---- OpenAI's client for Node


@pytest.fixture(scope="module")
def node(talker):
    return heard_by_node(talker)


def test_node_receives_a_chat_whole_and_streamed(node, whole):
    assert node["whole"]["content"] == node["streamed"]["content"] == content(whole)
    assert node["whole"]["finish"] == node["streamed"]["finish"] == "length"
    assert node["whole"]["usage"]["completion_tokens"] == node["streamed"]["usage"]["completion_tokens"] == 24
    assert node["streamed"]["chunks"] > 1


def test_node_receives_calls_whole_streamed_and_from_the_helper(node, called):
    for way in ("called", "called_in_a_stream", "called_with_the_helper"):
        assert (node[way]["calls"], node[way]["finish"]) == ([called], "tool_calls"), way


def test_node_gets_structured_output(node):
    jsonschema.validate(node["person"], PERSON)
    assert json.loads(node["person_parsed"]) == node["person"]


def test_node_receives_log_probabilities(node, talker):
    assert node["logprobs"] == wire(talker, max_tokens=24, logprobs=True, top_logprobs=2)["choices"][0]["logprobs"]["content"]


def test_node_completes_text_and_lists_models(node, text):
    assert node["text"] == node["text_in_a_stream"] == text and node["models"] == ["stories"]


def test_node_throws_typed_errors(node):
    assert node["unknown"] == ["NotFoundError", 404, "model", "string"]
    assert node["wrong"] == ["BadRequestError", 400, "temperature", "string"]
    assert node["wrong_in_a_stream"] == ["BadRequestError", 400, "top_p", "string"]


def test_node_may_leave_a_stream(node, talker):
    assert node["left"] == 0
    talker.wait_until(idle, "an idle engine")
