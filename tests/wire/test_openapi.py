"""The OpenAPI document, and what becomes of requests that are made from it: whatever they say, the server has an answer."""

import os

import jsonschema
import pytest

from conftest import PATIENCE_S

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


def test_every_reference_leads_somewhere_and_every_body_is_a_schema(document):
    assert document["openapi"].startswith("3.1")
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert operation["summary"] and "200" in operation["responses"], (path, method)
            body = operation.get("requestBody")
            if body:
                jsonschema.Draft202012Validator.check_schema(body["content"]["application/json"]["schema"])
    jsonschema.Draft202012Validator.check_schema(document["components"]["schemas"]["Error"])


def test_a_refusal_is_the_error_of_the_document(server, document):
    validator = jsonschema.Draft202012Validator(document["components"]["schemas"]["Error"])
    for answer in (server.post({"prompt": "a", "max_tokens": -1}), server.get("/nowhere"), server.post("{"),
                   server.get("/v1/requests/x/explain")):
        assert answer.status >= 400
        validator.validate(answer.json)


def test_a_body_that_the_schema_takes_with_plain_values_is_answered(server, document):
    fields = document["paths"]["/v1/completions"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    body = {"prompt": "Once", "max_tokens": 2}
    for name, field in fields["properties"].items():
        if "null" in field["type"]:
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
