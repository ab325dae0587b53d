"""Rules through promtool, and every rule and panel against a real Prometheus that scrapes a real server."""

import contextlib
import json
import re
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest
import yaml

from deploy_tools import BINARY, CHART, GUESSING, KEY, ROOT, case_file, on_a_free_port, only, prometheus, render, run

pytestmark = pytest.mark.full

RULES = [CHART / "files" / "recording-rules.yaml", CHART / "files" / "alerts.yaml"]
PATIENCE_S = 120
PROMISES = {"X-Request-Timeout": "3600", "x-slo-ttft-ms": "3600000", "x-slo-tpot-ms": "3600000"}


def test_alerts_fire_when_they_should_and_not_otherwise():
    done = run(prometheus("promtool"), "test", "rules", ROOT / "tests" / "deploy" / "alerts_test.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("alert", ["QuireServerErrors", "QuireEngineStalled"])
def test_the_proof_bites(alert, tmp_path):
    """A rule that never fires fails its test."""
    groups = yaml.safe_load(RULES[1].read_text())
    for rule in groups["groups"][0]["rules"]:
        if rule["alert"] == alert:
            rule["expr"] += " and on () vector(0) > 1"
    (tmp_path / "alerts.yaml").write_text(yaml.safe_dump(groups))
    tests = yaml.safe_load((ROOT / "tests" / "deploy" / "alerts_test.yaml").read_text())
    tests["rule_files"] = [str(RULES[0]), str(tmp_path / "alerts.yaml")]
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(tests))
    done = run(prometheus("promtool"), "test", "rules", tmp_path / "test.yaml")
    assert done.returncode != 0 and alert in done.stdout + done.stderr


def test_files_are_valid():
    done = run(prometheus("promtool"), "check", "rules", *RULES)
    assert done.returncode == 0, done.stderr
    done = run(prometheus("promtool"), "check", "config", ROOT / "deploy" / "prometheus" / "prometheus.yml")
    assert done.returncode == 0, done.stderr


def test_the_charts_own_rules_are_valid_and_still_fire(tmp_path):
    """As the chart narrows them to a release: they fire for its pods, and for nobody else's."""
    spec = only(render("-f", case_file("monitoring")), "PrometheusRule")["spec"]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(spec))
    done = run(prometheus("promtool"), "check", "rules", tmp_path / "rules.yaml")
    assert done.returncode == 0, done.stderr

    def series(name, namespace, pod, values):
        return {"series": f'{name}{{job="quire",namespace="{namespace}",pod="{pod}",instance="{namespace}-{pod}"}}', "values": values}

    pods = [("llm", "stories-quire-7c5d-x2x4z"), ("llm", "other-quire-7c5d-x2x4z"), ("dev", "stories-quire-7c5d-x2x4z")]
    alert = next(rule for rule in spec["groups"][1]["rules"] if rule["alert"] == "QuireCacheFull")
    fills = {"instance": "llm-" + pods[0][1], "value": "99%"}
    test = {
        "rule_files": [str(tmp_path / "rules.yaml")],
        "evaluation_interval": "1m",
        "tests": [{
            "interval": "1m",
            "input_series": [
                series(name, *pod, values)
                for pod in pods
                for name, values in [("quire:build_info", "1x60"), ("vllm:kv_cache_usage_perc", "0.99x60"), ("vllm:num_requests_waiting", "1x60")]
            ],
            "alert_rule_test": [{
                "alertname": "QuireCacheFull",
                "eval_time": "30m",
                "exp_alerts": [{
                    "exp_labels": {**alert["labels"], "job": "quire", "namespace": "llm", "pod": pods[0][1], "instance": fills["instance"]},
                    "exp_annotations": {
                        key: re.sub(r"\{\{ \$value[^}]*\}\}", fills["value"], text.replace("{{ $labels.instance }}", fills["instance"]))
                        for key, text in alert["annotations"].items()
                    },
                }],
            }],
        }],
    }
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(test))
    done = run(prometheus("promtool"), "test", "rules", tmp_path / "test.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def get(url):
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        return answer.read().decode()


def wait_until(condition, what):
    """What the condition gives, once it is true."""
    end = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < end, what()
        time.sleep(0.2)
    return found


@contextlib.contextmanager
def traffic(url):
    """One request after the other, as long as it lasts."""
    over = threading.Event()

    def ask_again():
        body = json.dumps({"prompt": "Once upon a time", "max_tokens": 8}).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}", **PROMISES}
        while not over.wait(0.1):
            with urllib.request.urlopen(urllib.request.Request(url + "/v1/completions", body, headers), timeout=PATIENCE_S) as answer:
                answer.read()

    thread = threading.Thread(target=ask_again)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(PATIENCE_S)


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """A server, a Prometheus that scrapes it each second with our rules, and traffic meanwhile: the URL of Prometheus."""
    home = tmp_path_factory.mktemp("prometheus")
    program = prometheus("prometheus")
    server = subprocess.Popen([BINARY, "serve", "--port", "0", "--threads", "1", "--api-key", KEY, *GUESSING], stdout=subprocess.PIPE, text=True)
    url = next(match[0] for line in server.stdout if (match := re.search(r"http://127\.0\.0\.1:\d+", line)))
    config = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(path) for path in RULES]
    config["scrape_configs"][0] |= {"static_configs": [{"targets": [url.removeprefix("http://")]}], "authorization": {"credentials": KEY}}
    (home / "prometheus.yml").write_text(yaml.safe_dump(config))

    def start(port):
        with (home / "log").open("a") as log:
            return subprocess.Popen(
                [program, f"--config.file={home / 'prometheus.yml'}", f"--storage.tsdb.path={home / 'data'}",
                 f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)

    watcher, port = on_a_free_port(start, lambda port: get(f"http://127.0.0.1:{port}/-/ready"), (home / "log").read_text)
    at = f"http://127.0.0.1:{port}"
    try:
        with traffic(url):
            # Several scrapes between which requests ended, so that rates are of something.
            wait_until(lambda: ask(at, "changes(vllm:generation_tokens_total[10s]) >= 3"), (home / "log").read_text)
            yield at
    finally:
        watcher.terminate()
        server.terminate()
        watcher.wait(PATIENCE_S)
        server.communicate(timeout=PATIENCE_S)


def ask(url, query):
    try:
        return json.loads(get(f"{url}/api/v1/query?query={urllib.parse.quote(query)}"))["data"]["result"]
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{query}: {error.read().decode()}") from error


def test_every_panel_shows_something(watched):
    queries = {}
    for path in sorted((CHART / "files" / "dashboards").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                query = target["expr"].replace("$__rate_interval", "10s").replace("$job", ".+").replace("$instance", ".+")
                queries[f"{path.name}: {panel['title']}: {query}"] = query

    def shown():
        for name in [name for name, query in queries.items() if ask(watched, query)]:
            del queries[name]
        return not queries

    wait_until(shown, lambda: "\n".join(queries))


def test_rules_are_evaluated_without_errors_and_none_fires(watched):
    def evaluated():
        groups = json.loads(get(f"{watched}/api/v1/rules"))["data"]["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        # A scrape that a busy machine was late with makes an alert pending, until the next one.
        return rules if all(rule["health"] != "unknown" and rule.get("state") != "pending" for rule in rules) else None

    rules = wait_until(evaluated, lambda: get(f"{watched}/api/v1/rules"))
    assert len(rules) == sum(len(yaml.safe_load(path.read_text())["groups"][0]["rules"]) for path in RULES)
    for rule in rules:
        assert rule["health"] == "ok", rule
        assert rule.get("state", "inactive") == "inactive", rule
    for rule in rules:
        if rule["type"] == "recording":
            wait_until(lambda: ask(watched, rule["name"]), lambda: f"{rule['name']} records nothing")  # noqa: B023


def test_promtool_finds_nothing_in_the_metrics_but_names_we_owe_to_others():
    server = subprocess.Popen([BINARY, "serve", "--port", "0", "--threads", "1", *GUESSING], stdout=subprocess.PIPE, text=True)
    try:
        url = next(match[0] for line in server.stdout if (match := re.search(r"http://127\.0\.0\.1:\d+", line)))
        done = run(prometheus("promtool"), "check", "metrics", input=get(url + "/metrics"))
    finally:
        server.terminate()
        server.communicate(timeout=PATIENCE_S)
    said = [line for line in done.stderr.splitlines() + done.stdout.splitlines() if line]
    assert said, "promtool looked at nothing"
    allowed = ("metric names should not contain ':'", 'non-counter metrics should not have "_total" suffix')
    assert all(line.endswith(allowed) for line in said), "\n".join(said)
