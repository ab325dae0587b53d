"""Alerts, rules and dashboards: they name only metrics that exist, and every alert has its page and its proof."""

import json
import re
import subprocess
import urllib.request

import pytest
import yaml

from deploy_tools import BINARY, CHART, GUESSING, KEY, ROOT

DASHBOARDS = sorted((CHART / "files" / "dashboards").glob("*.json"))
ALERTS = [rule for group in yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"] for rule in group["rules"]]
RECORDED = [
    rule for group in yaml.safe_load((CHART / "files" / "recording-rules.yaml").read_text())["groups"] for rule in group["rules"]
]
NAME = re.compile(r"\b(?:vllm|quire|process|http|llm)[:_][a-z0-9_:]+")
UNITS = {"short", "s", "bytes", "percentunit", "reqps", "ops"}


def panels(path):
    return json.loads(path.read_text())["panels"]


def expressions():
    """(where, PromQL) of everything that asks Prometheus something."""
    for rule in RECORDED + ALERTS:
        yield rule.get("record") or rule["alert"], rule["expr"]
    for path in DASHBOARDS:
        for panel in panels(path):
            for target in panel["targets"]:
                yield f"{path.name}: {panel['title']}", target["expr"]


def named(expression):
    return set(NAME.findall(re.sub(r'"[^"]*"', '""', expression)))


def exported_by(text):
    """Names of the series in a /metrics page, their labels with their values."""
    names, labels = set(), {}
    for line in text.splitlines():
        if match := re.match(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+$", line):
            names.add(match[1])
            for key, value in re.findall(r'(\w+)="([^"]*)"', match[2] or ""):
                labels.setdefault((match[1], key), set()).add(value)
    return names, labels


@pytest.fixture(scope="module")
def metrics():
    """What a real server with keys exports."""
    server = subprocess.Popen([BINARY, "serve", "--port", "0", "--threads", "1", "--api-key", KEY, *GUESSING], stdout=subprocess.PIPE, text=True)
    try:
        url = next(match[0] for line in server.stdout if (match := re.search(r"http://127\.0\.0\.1:\d+", line)))
        ask = urllib.request.Request(url + "/metrics", headers={"Authorization": f"Bearer {KEY}"})
        with urllib.request.urlopen(ask, timeout=120) as answer:
            yield answer.read().decode()
    finally:
        server.terminate()
        server.communicate(timeout=120)


def test_names_are_written_in_the_source():
    sources = [ROOT / "core" / "observe" / "metrics.cc", ROOT / "api" / "limits" / "key_metrics.cc"]
    written = {name for path in sources for name in re.findall(r'"([a-z]+[:_][a-z0-9_:]+)"', path.read_text())}
    written |= {name + tail for name in written for tail in ("_bucket", "_sum", "_count")}
    written |= {rule["record"] for rule in RECORDED}
    for where, expression in expressions():
        assert named(expression) and named(expression) <= written, where


def test_a_running_server_exports_every_series_that_is_asked_for(metrics):
    names, labels = exported_by(metrics)
    known = names | {rule["record"] for rule in RECORDED}
    for rule in RECORDED:  # sums by labels: it has those of what it is computed from
        for (name, key), values in list(labels.items()):
            if name in named(rule["expr"]):
                labels.setdefault((rule["record"], key), set()).update(values)
    for where, expression in expressions():
        assert named(expression) <= known, where
        for name, selector in re.findall(r"([a-z]+[:_][a-z0-9_:]+)\{([^}]*)\}", expression):
            for key, value in re.findall(r'(\w+)="([^"$]*)"', selector):
                assert value in labels[name, key], f"{where}: no series {name} has {key}={value}"


def test_recorded_names_are_used():
    asked = set().union(*(named(expression) for where, expression in expressions() if ":" not in where or ".json" in where))
    assert {rule["record"] for rule in RECORDED} <= asked


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_an_alert_has_a_severity_a_page_and_a_proof(rule):
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert set(rule["annotations"]) == {"summary", "description"}
    assert f"\n### {rule['alert']}\n" in (ROOT / "docs" / "runbook.md").read_text()
    tests = yaml.safe_load((ROOT / "tests" / "deploy" / "alerts_test.yaml").read_text())["tests"]
    fires = [one for test in tests for one in test["alert_rule_test"] if one["alertname"] == rule["alert"] and one["exp_alerts"]]
    assert fires, "no unit test in which it fires"


def test_the_runbook_has_no_entry_without_an_alert():
    entries = re.findall(r"^### (\w+)$", (ROOT / "docs" / "runbook.md").read_text(), re.MULTILINE)
    assert entries == sorted(set(entries), key=entries.index) and set(entries) == {rule["alert"] for rule in ALERTS}


def test_every_rule_says_whose_series_it_means():
    for rule in RECORDED + ALERTS:
        assert "quire:build_info" in rule["expr"], rule


def test_the_runbook_names_panels_that_exist():
    titles = {panel["title"] for path in DASHBOARDS for panel in panels(path)}
    text = " ".join((ROOT / "docs" / "runbook.md").read_text().split())
    named_there = re.findall(r"[Pp]anel `([^`]+)`", text)
    assert named_there and set(named_there) <= titles


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_can_be_read_and_reused(path):
    board = json.loads(path.read_text())
    assert board["uid"] == f"quire-{path.stem}" and board["editable"] is False
    variables = {variable["name"]: variable for variable in board["templating"]["list"]}
    assert list(variables) == ["datasource", "job", "instance"]
    assert all(variables[name]["refresh"] == 2 for name in ("job", "instance")), "lists follow the time range"
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    taken = set()
    for panel in board["panels"]:
        where = panel["title"]
        assert panel["title"] and panel["description"].endswith("."), where
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS, where
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken and place["x"] + place["w"] <= 24, f"{where} lies upon another"
        taken |= cells
        assert panel["datasource"]["uid"] == "${datasource}"
        for target in panel["targets"]:
            assert target["datasource"]["uid"] == "${datasource}"
            expression = target["expr"]
            selectors = re.findall(r"\{([^}]*)\}", expression)
            assert selectors and all('job=~"$job",instance=~"$instance"' in one for one in selectors), where
            ranges = re.findall(r"\[([^\]]*)\]", expression)
            assert all(one == "$__rate_interval" for one in ranges), where
            counters = re.findall(r"[\w:]+(?:_total|_sum|_count|_bucket)\{", expression)
            assert expression.count("rate(") + expression.count("increase(") == len(counters), f"{where}: counters want a rate"


def test_the_deployed_files_are_the_charts():
    for name in ("alerts.yaml", "recording-rules.yaml"):
        assert (ROOT / "deploy" / "prometheus" / name).read_text() == (CHART / "files" / name).read_text()
    assert sorted(path.name for path in (ROOT / "deploy" / "grafana" / "dashboards").iterdir()) == [path.name for path in DASHBOARDS]
