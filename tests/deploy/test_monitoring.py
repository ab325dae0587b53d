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
UNITS = {"short", "s", "bytes", "percentunit", "reqps", "suffix: tok/s", "suffix: /s", "suffix: cores"}


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
        for path in ("/v1/models", "/metrics"):  # counts of an endpoint begin with its first request
            ask = urllib.request.Request(url + path, headers={"Authorization": f"Bearer {KEY}"})
            with urllib.request.urlopen(ask, timeout=120) as answer:
                text = answer.read().decode()
        yield text
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
        assert panel["title"], where
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


def every_panel():
    for path in DASHBOARDS:
        for panel in panels(path):
            yield f"{path.stem}: {panel['title']}", panel, [target["expr"] for target in panel["targets"]]


def test_a_quantiles_legend_is_its_percentile_and_all_three_are_there():
    seen = 0
    for where, panel, asked in every_panel():
        found = [re.match(r"histogram_quantile\(([\d.]+), ", one) for one in asked]
        if not any(found):
            continue
        seen += 1
        names = [f"p{round(100 * float(match[1]))}" for match in found]
        legends = [target["legendFormat"] for target in panel["targets"]]
        if "by (handler, le)" in asked[0]:  # a panel for each percentile, with a line for each endpoint
            assert legends == ["{{handler}}"] and panel["title"].endswith(f", {names[0]}"), where
        else:
            assert legends == names == ["p50", "p90", "p99"], where
    assert seen > 10


def unit_of(asked):
    """The unit that an expression has, as far as it shows in the expression; None: it does not."""
    name = re.search(r"([\w:]+)\{", asked)[1]
    quotient = re.search(r"[\])] */ ", asked)
    if "histogram_quantile" in asked:
        return "s" if "_seconds_bucket" in asked else "short"
    if quotient and "_sum{" in asked and "_count{" in asked:
        return "s" if "_seconds_sum" in asked else "short"
    if "_seconds_bucket" in asked and quotient:
        return "percentunit"
    if "rate(" in asked and not quotient:
        if re.search(r"_tokens_total|hits_total|queries_total", name) and not name.startswith("quire:kv_block"):
            return "suffix: tok/s"
        if re.search(r"http_|rejections|refused_requests|disconnects", name):
            return None if "_bucket" in name else "reqps"
        if name.startswith("process_cpu"):
            return "suffix: cores"
        return None if "_seconds_" in name else "suffix: /s"
    if name.endswith("_bytes"):
        return "bytes"
    return "percentunit" if name.endswith("_perc") else None


def test_units_are_those_of_the_series():
    known = 0
    for where, panel, asked in every_panel():
        unit = panel["fieldConfig"]["defaults"]["unit"]
        wanted = {unit_of(one) for one in asked} - {None}
        known += bool(wanted)
        assert wanted <= {unit}, f"{where}: {unit}, not {wanted}"
        if unit == "percentunit":
            assert all(" / " in one or "_perc" in one or "_seconds_sum" in one for one in asked), where
    assert known > 40


def test_a_panel_answers_one_question_in_one_sentence():
    for path in DASHBOARDS:
        titles = [panel["title"] for panel in panels(path)]
        assert len(titles) == len(set(titles)), path.name
        queries = [(panel["type"], *sorted(target["expr"] for target in panel["targets"])) for panel in panels(path)]
        assert len(queries) == len(set(queries)), f"{path.name}: two panels show the same"
    for where, panel, _ in every_panel():
        text = panel["description"]
        assert text.endswith(".") and ". " not in text and text[0].isupper() and 20 < len(text) < 160, where


def test_errors_are_broken_down_by_status_class_and_by_endpoint():
    by_status = [where for where, _, asked in every_panel() for one in asked if re.search(r"by \((handler, )?status\)", one)]
    by_handler = [where for where, _, asked in every_panel() for one in asked if "handler" in one and 'status="5xx"' in one]
    slow = [where for where, _, asked in every_panel() for one in asked if "by (handler, le)" in one]
    assert len(by_status) >= 2 and len(by_handler) >= 2 and len(slow) == 3


def test_shares_of_errors_say_that_probes_are_not_counted():
    for where, panel, asked in every_panel():
        if any(re.search(r"http_(requests|responses)_total", one) for one in asked):
            assert panel["description"].endswith(", probes and scrapes not counted."), where
    for rule in ALERTS:
        if re.search(r"http_(requests|responses)_total|http_5xx", rule["expr"]):
            assert rule["annotations"]["description"].endswith(", probes and scrapes not counted."), rule["alert"]


def test_the_deployed_files_are_the_charts():
    for name in ("alerts.yaml", "recording-rules.yaml"):
        assert (ROOT / "deploy" / "prometheus" / name).read_text() == (CHART / "files" / name).read_text()
    assert sorted(path.name for path in (ROOT / "deploy" / "grafana" / "dashboards").iterdir()) == [path.name for path in DASHBOARDS]
