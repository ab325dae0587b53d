"""The OpenAPI document, and what becomes of requests that are made from it: whatever they say, the server has an answer."""

import os

import jsonschema
import pytest

from conftest import PATIENCE_S
from openapi_answers import Document

EXAMPLES = int(os.environ.get("QUIRE_OPENAPI_EXAMPLES", "10"))


@pytest.fixture(scope="module")
def document(server):
    return server.get("/openapi.json").json


@pytest.mark.parametrize("kind", ["positive", "negative"])
def test_no_request_made_from_the_document_is_answered_with_a_fault_of_ours(server, document, kind):
    import hypothesis  # both take seconds
    import schemathesis

    mode, walked = schemathesis.GenerationMode(kind), []
    settings = hypothesis.settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None,
                                   phases=[hypothesis.Phase.generate], suppress_health_check=list(hypothesis.HealthCheck))
    for found in schemathesis.openapi.from_dict(document).get_all_operations():
        operation = found.ok()
        if kind == "negative" and not operation.body:
            continue  # nothing to be wrong

        @settings
        @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
        def ask(case):
            response = case.call(base_url=server.url, timeout=PATIENCE_S)
            late = response.status_code == 504  # asked for by a deadline of its own
            assert response.status_code < 500 or late, (case.as_curl_command(), response.text)
            assert response.headers["x-request-id"]

        ask()
        walked.append(operation.label)
    assert len(walked) >= (15 if kind == "positive" else 5), walked
    assert server.get("/health").status == 200


# Functions of generated clients have these names: one is added with its path, and none changes.
OPERATION_IDS = {
    "createCompletion", "renderCompletion", "createChatCompletion", "renderChatCompletion", "createResponse", "createMessage",
    "countMessageTokens", "createEmbedding", "tokenize", "detokenize", "getTokenizerInfo", "listModels", "retrieveModel", "explainRequest",
    "cancelRequest", "saveCache", "loadCache", "clearCache", "getLiveness", "getReadiness", "getStartup", "getHealth", "getPing", "postPing",
    "getLoad", "getMetrics", "getVersion", "getOpenApi", "listRequests", "explainAnyRequest", "cancelAnyRequest",
}  # fmt: skip


def operations_of(document):
    return [(path, method, operation) for path, operations in document["paths"].items() for method, operation in operations.items()]


def schemas_in(node):
    """Every schema that has a `type`, at any depth."""
    if isinstance(node, dict):
        if "type" in node and not isinstance(node["type"], dict):
            yield node
        for key, one in node.items():
            if key not in ("example", "const", "enum"):
                yield from schemas_in(one)
    elif isinstance(node, list):
        for one in node:
            yield from schemas_in(one)


def test_it_is_a_valid_document_of_openapi(document):
    import openapi_spec_validator

    assert document["openapi"].startswith("3.1")
    openapi_spec_validator.validate(document)
    for name, schema in document["components"]["schemas"].items():
        jsonschema.Draft202012Validator.check_schema(schema), name


def test_every_operation_has_a_stable_id_a_tag_a_summary_and_a_schema_of_each_body(document):
    tags = {tag["name"] for tag in document["tags"]}
    for path, method, operation in operations_of(document):
        assert operation["summary"] and set(operation["tags"]) < tags, (path, method)
        assert {"200", "default"} <= operation["responses"].keys(), (path, method)
        for status, response in operation["responses"].items():
            assert response["description"], (path, method, status)
            for media, content in response.get("content", {}).items():
                assert content["schema"], (path, method, status, media)
    ids = [operation["operationId"] for _, _, operation in operations_of(document)]
    assert sorted(ids) == sorted(OPERATION_IDS)


def test_every_list_has_a_type_of_its_items_and_every_member_is_described(document):
    lists = [one for one in schemas_in(document) if one["type"] == "array" or "array" in one["type"]]
    assert len(lists) > 80
    assert all(one["items"] for one in lists)
    for name, schema in document["components"]["schemas"].items():
        for member, inner in schema.get("properties", {}).items():
            assert inner.get("description"), (name, member)


def test_an_example_keeps_to_its_schema(document):
    strict, count = Document(document), 0
    for path, method, operation in operations_of(document):
        bodies = [operation["requestBody"]] if "requestBody" in operation else []
        for body in bodies + list(operation["responses"].values()):
            for media, content in body.get("content", {}).items():
                if "example" in content:
                    assert not strict.errors(content["schema"], content["example"]), (path, method, media, content["example"])
                    count += 1
        if method == "post" and path != "/ping":
            assert "example" in operation["requestBody"]["content"]["application/json"], path
            assert "example" in operation["responses"]["200"]["content"]["application/json"], path
    assert count > 50


def test_an_example_of_a_request_is_answered(server, document):
    asked = 0
    for path, method, operation in operations_of(document):
        if "requestBody" in operation and not path.startswith("/admin/cache/"):
            example = operation["requestBody"]["content"]["application/json"]["example"]
            answer = server.post_to(path, example)
            assert answer.status == 200 and "x-quire-warnings" not in answer.headers, (path, answer.text)
            asked += 1
    assert asked == 10


def test_a_refusal_is_the_error_of_the_document(server, document):
    strict, error = Document(document), {"$ref": "#/components/schemas/Error"}
    for answer in (server.post({"prompt": "a", "max_tokens": -1}), server.get("/nowhere"), server.post("{"),
                   server.get("/v1/requests/x/explain")):
        assert answer.status >= 400
        assert not strict.errors(error, answer.json), answer.text


def test_a_body_that_the_schema_takes_with_plain_values_is_answered(server, document):
    fields = document["components"]["schemas"]["CompletionRequest"]
    body = {"prompt": "Once", "max_tokens": 2}
    for name, field in fields["properties"].items():
        if not Document(document).errors(field, None):
            assert server.post({**body, name: None}).status == 200, name
    for name, field in fields["properties"].items():
        for bound, beyond in (("minimum", -1), ("maximum", 1)):
            if bound in field:
                value = field[bound] + beyond
                if abs(value) < 2**31:
                    answer = server.post({**body, name: value})
                    assert answer.status == 400 and answer.error["param"] == name, (name, value, answer.text)


def test_headers_are_parameters_and_are_read_as_documented(server, document):
    """Of each header: what its schema takes is answered, what is out of its range is refused by its name."""
    operation = document["paths"]["/v1/completions"]["post"]
    body = {"prompt": "Once", "max_tokens": 1}
    headers = {p["name"]: p["schema"] for p in operation["parameters"] if p["in"] == "header"}
    assert {"X-Request-Id", "traceparent", "x-slo-ttft-ms", "x-slo-tpot-ms", "X-Request-Timeout", "x-session-id"} <= set(headers)
    for name, schema in headers.items():
        jsonschema.Draft202012Validator.check_schema(schema)
        if schema["type"] == "number":
            good, bad = str(schema["maximum"]), (str(schema["maximum"] + 1), str(schema["minimum"] / 2))
        elif name in ("X-Request-Id", "traceparent", "tracestate"):
            good, bad = "x" * schema.get("maxLength", 64), ()  # what breaks their rules is left out
        else:
            good = "x" * schema["maxLength"]
            bad = ("x" * (schema["maxLength"] + 1),)
            if "minLength" in schema:
                assert server.post(body, {name: "x" * schema["minLength"]}).status == 200, name
                bad += ("x" * (schema["minLength"] - 1),)
        answer = server.post(body, {name: good})
        assert answer.status == 200, (name, answer.text)
        assert set(operation["responses"]["200"]["headers"]) >= {"X-Request-Id", "X-Request-Key"} and answer.headers["x-request-id"]
        for value in bad:
            answer = server.post(body, {name: value})
            assert answer.status == 400 and answer.error["param"] == name, (name, value, answer.text)
