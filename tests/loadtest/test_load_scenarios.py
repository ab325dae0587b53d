"""Scenarios of loadtest/load.py: which are taken, and which are refused with the field's name and its limit."""

import json
import re

import jsonschema
import pytest
from driver import scenario
from driver.scenario import ScenarioError

CLOSED = {"kind": "closed", "concurrency": 2, "requests": 4}
POISSON = {"kind": "poisson", "rate_per_s": 4, "duration_s": 10}


def refused(**fields):
    with pytest.raises(ScenarioError) as caught:
        scenario.checked({"arrivals": CLOSED} | fields)
    return str(caught.value)


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(json.loads((scenario.SCENARIOS / "schema.json").read_text()))


@pytest.mark.parametrize("name", scenario.names())
def test_every_scenario_that_is_there_is_taken_and_described(name):
    assert scenario.load(name).description


def test_there_is_a_scenario_for_each_kind_of_load():
    assert {"chat", "rag-shared-prefix", "burst", "long-context", "idle-streams"} <= set(scenario.names())
    assert scenario.load("idle-streams").streams == 10_000


LIMITS = [  # field, what is around it, least, most
    ("arrivals.requests", CLOSED, 1, 2_000_000),
    ("arrivals.concurrency", CLOSED, 1, 60_000),
    ("prompt.tokens", {}, 1, 1_000_000),
    ("answer.tokens", {}, 1, 1_000_000),
    ("streams", None, 2, 60_000),  # at least the concurrency
]


@pytest.mark.parametrize("field, around, least, most", LIMITS, ids=[limit[0] for limit in LIMITS])
def test_a_limit_is_the_last_value_that_is_taken(field, around, least, most):
    *parent, last = field.split(".")

    def document(value):
        inner = {last: value} if around is None else {parent[0]: around | {last: value}}
        return {"arrivals": CLOSED} | inner

    for value in (least, least + 1, most - 1, most):
        scenario.checked(document(value))
    for value in (least - 1, most + 1):
        with pytest.raises(ScenarioError, match=re.escape(field)) as caught:
            scenario.checked(document(value))
        assert f"{value}" in str(caught.value)


@pytest.mark.parametrize("field, most", [("rate_per_s", 20_000), ("duration_s", 86_400)])
def test_rates_and_durations_are_more_than_nothing(field, most):
    small = {"kind": "constant", "rate_per_s": 0.001, "duration_s": 1}
    for value in (0.001, most):
        scenario.checked({"arrivals": small | {field: value}})
    assert f"arrivals.{field}: 0 was given, expected more than 0" in refused(arrivals=small | {field: 0})
    assert f"arrivals.{field}: {most + 1} was given, expected at most {most:,}" in refused(arrivals=small | {field: most + 1})


@pytest.mark.parametrize(
    "fields, told",
    [
        ({"arrivals": {"kind": "sometimes"}}, "arrivals.kind: sometimes was given, expected one of poisson, constant, bursts, closed, trace"),
        ({"arrivals": {"kind": "poisson", "rate_per_s": 1}}, "arrivals: 'duration_s' is a required property"),
        ({"arrivals": CLOSED | {"rate_per_s": 1}}, "'rate_per_s' was unexpected"),
        ({"arrivals": POISSON | {"rate_per_s": "fast"}}, "arrivals.rate_per_s: 'fast' is not of type 'number'"),
        ({"endpoint": "responses"}, "endpoint: responses was given, expected one of completions, chat"),
        ({"speed": 1}, "'speed' was unexpected"),
        ({"slo": {"ttft": 1}}, "slo: Additional properties"),
        ({"slo": {"ttft_ms": 0}}, "slo.ttft_ms: 0 was given, expected more than 0"),
        ({"prompt": {"tokens": {"uniform": [1]}}}, "prompt.tokens.uniform: [1] was given, expected at least 2 items"),
        ({"prompt": {"tokens": {"uniform": [9, 8]}}}, "prompt.tokens.uniform: [9, 8] was given, expected the shorter length first"),
        ({"answer": {"tokens": {"lognormal": {"median": 5, "sigma": 1, "min": 9, "max": 8}}}}, "answer.tokens.lognormal: min is more than max"),
        ({"answer": {"tokens": {"lognormal": {"median": 5, "sigma": 1, "min": 1}}}}, "'max' is a required property"),
        ({"endpoint": "chat", "prompt": {"as": "token_ids"}}, "prompt.as: token_ids was given, but chat messages are text"),
        ({"prompt": {"as": "token_ids", "ids": [10, 265]}}, "prompt.ids: [10, 265] was given"),
        ({"arrivals": POISSON, "warmup_s": 10}, "warmup_s: 10 was given, expected less than arrivals.duration_s, 10"),
        ({"streams": 1}, "streams: 1 was given, expected at least arrivals.concurrency, 2"),
        ({"arrivals": POISSON | {"rate_per_s": 20_000, "duration_s": 100.1}}, "requests would come, expected at most 2,000,000"),
        ({"body": {"max_tokens": 5}}, "body"),
    ],
    ids=range(18),
)
def test_a_bad_field_is_refused_by_its_name(fields, told):
    assert told in refused(**fields)


def test_every_problem_is_reported_at_once():
    told = refused(endpoint="x", timeout_s=0, speed=3)
    assert len(told.splitlines()) == 3 and "endpoint" in told and "timeout_s" in told and "'speed'" in told


def test_a_setting_replaces_a_field_and_is_checked_like_the_file():
    settings = [("arrivals.rate_per_s", "9.5"), ("slo", "{ttft_ms: 7}"), ("prompt.shared_prefix.tokens", "5")]
    changed = scenario.load("chat", settings)
    assert changed.arrivals["rate_per_s"] == 9.5 and changed.slo == {"ttft_ms": 7} and changed.shared_prefix == {"groups": 1, "tokens": 5}
    with pytest.raises(ScenarioError, match="chat: arrivals.rate_per_s: -1 was given"):
        scenario.load("chat", [("arrivals.rate_per_s", "-1")])
    with pytest.raises(ScenarioError, match="endpoint.x: endpoint is not a mapping"):
        scenario.load("chat", [("endpoint.x", "1")])
    with pytest.raises(ScenarioError, match="is not YAML"):
        scenario.load("chat", [("slo", "{")])


def test_what_is_no_scenario_is_refused(tmp_path):
    with pytest.raises(ScenarioError, match="nothing: No such file or directory; there are: burst, chat"):
        scenario.load("nothing")
    for text, told in (("[", "not YAML"), ("- 1\n", "expected fields"), ("", "expected fields")):
        (tmp_path / "bad.yaml").write_text(text)
        with pytest.raises(ScenarioError, match=told):
            scenario.load(str(tmp_path / "bad.yaml"))
