"""POST /v1/embeddings: vectors over the wire, by the official client and by hand."""

import base64
import json
import struct
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest

from conftest import idle

PATH = "/v1/embeddings"
TEXTS = ["Once upon a time", "The dragon said hello", "naïve 日本語 👍🏽"]


def embed(server, value, **fields):
    answer = server.post_to(PATH, {"input": value, **fields})
    assert answer.status == 200, answer.text
    return answer.json


def vector(server, value, **fields):
    return embed(server, value, **fields)["data"][0]["embedding"]


def floats(text):
    data = base64.b64decode(text, validate=True)
    return list(struct.unpack(f"<{len(data) // 4}f", data))


def length(numbers):
    return sum(number * number for number in numbers) ** 0.5


def test_the_official_client_reads_what_it_asks_for(server, client):
    """Without an encoding_format it asks for base64 and decodes that."""
    told = client.embeddings.create(model="stories", input=TEXTS)
    numbers = client.embeddings.create(model="stories", input=TEXTS, encoding_format="float")
    assert [one.index for one in told.data] == [0, 1, 2] and {one.object for one in told.data} == {"embedding"}
    assert told.object == "list" and told.model == "stories"
    count = sum(server.post_to("/tokenize", {"prompt": text}).json["count"] for text in TEXTS)
    assert told.usage.prompt_tokens == told.usage.total_tokens == count
    for decoded, said in zip(told.data, numbers.data, strict=True):
        assert struct.pack(f"{len(decoded.embedding)}f", *decoded.embedding) == struct.pack(
            f"{len(said.embedding)}f", *said.embedding)
        assert length(decoded.embedding) == pytest.approx(1.0, abs=1e-6)


def test_dimensions_are_the_first_numbers_normalised_again(client, server):
    whole = vector(server, TEXTS[0], normalize=False)
    for count in (1, 2, len(whole) - 1, len(whole)):
        told = client.embeddings.create(model="stories", input=TEXTS[0], dimensions=count).data[0].embedding
        expected = [number / length(whole[:count]) for number in whole[:count]]
        assert told == pytest.approx(expected, rel=1e-6)
    with pytest.raises(openai.BadRequestError) as caught:
        client.embeddings.create(model="stories", input=TEXTS[0], dimensions=len(whole) + 1)
    assert caught.value.param == "dimensions"


@pytest.mark.parametrize("pooling", ["last", "mean"])
def test_a_text_and_its_tokens_have_the_same_vector_alone_and_in_company(server, pooling):
    ids = [server.post_to("/tokenize", {"prompt": text}).json["tokens"] for text in TEXTS]
    alone = [vector(server, text, pooling=pooling, encoding_format="base64") for text in TEXTS]
    assert [vector(server, one, pooling=pooling, encoding_format="base64") for one in ids] == alone
    for values in (TEXTS, ids):
        told = embed(server, values, pooling=pooling, encoding_format="base64")["data"]
        assert [one["embedding"] for one in told] == alone
    with ThreadPoolExecutor(8) as pool:  # among others, and some that talk
        talking = [pool.submit(server.text, text, max_tokens=40, temperature=0) for text in TEXTS]
        asking = [pool.submit(vector, server, TEXTS[i % 3], pooling=pooling, encoding_format="base64") for i in range(24)]
        assert [one.result() for one in asking] == alone * 8
        assert all(one.result() for one in talking)
    assert len(set(alone)) == 3


def test_the_last_tokens_vector_reads_the_cache_and_a_mean_does_not(server):
    text = "Far away there lived a fox that nobody had asked before. " * 8
    first, second = (embed(server, text, encoding_format="base64", cache_salt="vectors") for _ in range(2))
    assert first["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert second["usage"]["prompt_tokens_details"]["cached_tokens"] == first["usage"]["prompt_tokens"] - 1
    assert second["data"] == first["data"]
    mean = embed(server, text, encoding_format="base64", pooling="mean", cache_salt="vectors")
    assert mean["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert embed(server, text, encoding_format="base64", pooling="mean", cache_salt="other")["data"] == mean["data"]


def test_an_input_as_long_as_the_model_takes_is_embedded_and_a_longer_one_is_refused(server):
    limit = server.get("/v1/models").json["data"][0]["max_model_len"]
    assert embed(server, [5] * limit)["usage"]["prompt_tokens"] == limit
    answer = server.post_to(PATH, {"input": [5] * (limit + 1)})
    assert answer.status == 400 and answer.error["param"] == "input" and str(limit) in answer.error["message"]
    cut = vector(server, [7] * limit + [5] * limit, truncate_prompt_tokens=-1)
    assert cut == vector(server, [5] * limit)


@pytest.mark.parametrize("body,param", [
    ({}, "input"), ({"input": ""}, "input"), ({"input": []}, "input"), ({"input": ["a", ""]}, "input"),
    ({"input": ["a"] * 2049}, "input"), ({"input": [1 << 31]}, "input"), ({"input": "a", "pooling": "cls"}, "pooling"),
    ({"input": "a", "encoding_format": "int8"}, "encoding_format"), ({"input": "a", "dimensions": 0}, "dimensions"),
    ({"input": "a", "normalize": "no"}, "normalize"), ({"input": "a", "user": "u" * 257}, "user"),
])
def test_a_wrong_field_is_refused_by_its_name(server, body, param):
    answer = server.post_to(PATH, body)
    assert answer.status == 400 and answer.error["param"] == param, answer.text


@pytest.mark.parametrize("n", [2047, 2048])
def test_a_list_may_have_2048_inputs(server, n):
    told = embed(server, (["a", "b"] * n)[:n], dimensions=1)["data"]
    assert [one["index"] for one in told] == list(range(n))


def test_a_running_one_can_be_found_and_is_counted(server):
    before = server.wait_until(idle, "an idle engine")
    answer = server.request("POST", PATH, json.dumps({"input": TEXTS[1], "request_id": "vector-1", "pooling": "mean"}),
                            {"Content-Type": "application/json"})
    told = answer.json
    assert told["id"] == "embd-vector-1" and told["timings"]["prompt_n"] == told["usage"]["prompt_tokens"]
    after = server.wait_until(idle, "an idle engine")
    assert after["vllm:generation_tokens_total"] == before["vllm:generation_tokens_total"]
    assert after["vllm:prompt_tokens_total"] - before["vllm:prompt_tokens_total"] == told["usage"]["prompt_tokens"]
    assert server.request("GET", PATH).status == 405
