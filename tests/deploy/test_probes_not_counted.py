"""Probes and scrapes change no ratio and no alert: a server's own text of metrics, before and after hundreds of them, through promtool."""

import re

import pytest
import yaml

from deploy_tools import CHART, prometheus, run
from servers import answer_of, draining, ready

PROBES = ("/health", "/live", "/ready", "/startup", "/ping", "/load", "/version", "/metrics")
ROUNDS = 40
GOOD, BAD, REFUSED, STREAM = 28, 2, 1, 1  # requests of the client: 200, 400, 503 during the drain, a stream that is still open
COUNTED = re.compile(r"^((?:quire:http_responses_total|http_requests_total|http_request_duration_seconds_count|vllm:admission_rejections_total"
                     r"|quire:client_disconnects_total)\{.*\}) (\d+)$", re.MULTILINE)


def counters(port):
    return {series: int(value) for series, value in COUNTED.findall(answer_of(port, "/metrics")[1])}


@pytest.fixture(scope="module")
def scraped():
    """The counters of a server that drains, before and after its probes, most of which are answered 503."""
    good = {"prompt": "Once upon a time", "max_tokens": 1}
    with ready() as (process, port):
        assert all(answer_of(port, "/v1/completions", good)[0] == 200 for _ in range(GOOD))
        assert all(answer_of(port, "/v1/completions", {**good, "temperature": 9})[0] == 400 for _ in range(BAD))
        with draining(process, port):
            assert all(answer_of(port, "/v1/completions", good)[0] == 503 for _ in range(REFUSED))
            before = counters(port)
            statuses = [answer_of(port, path, method=method)[0] for _ in range(ROUNDS) for path in PROBES for method in ("GET", "HEAD")]
            after = counters(port)
    assert statuses.count(503) >= ROUNDS, "some of them would count as server errors"
    return before, after


def test_no_counter_of_requests_counts_a_probe(scraped):
    before, after = scraped
    assert before == after and len(before) > 8
    assert sum(value for name, value in after.items() if name.startswith("quire:http_responses")) == GOOD + BAD + REFUSED + STREAM
    assert not [name for name in after if any(f'handler="{path}"' in name for path in PROBES)]


def check(tmp_path, series, expected):
    """promtool's word on rules and alerts where each minute brings these counts again. Every expectation is (PromQL, value)."""
    tests = [{
        "interval": "1m",
        "input_series": [{"series": 'quire:build_info{job="quire",instance="a"}', "values": "1x60"}] + [
            {"series": name.replace("{", '{job="quire",instance="a",'), "values": f"0+{value}x60"} for name, value in series.items()],
        "promql_expr_test": [
            {"expr": f"abs({query} - {value}) < bool 1e-9", "eval_time": "30m", "exp_samples": [{"labels": labels, "value": 1}]}
            for query, labels, value in expected],
    }]
    rules = [str(CHART / "files" / name) for name in ("recording-rules.yaml", "alerts.yaml")]
    (tmp_path / "test.yaml").write_text(yaml.safe_dump({"rule_files": rules, "evaluation_interval": "1m", "tests": tests,
                                                        "group_eval_order": ["quire-recording", "quire-alerts"]}))
    done = run(prometheus("promtool"), "test", "rules", tmp_path / "test.yaml")
    return done.returncode == 0, done.stdout + done.stderr


def expectations():
    by_handler = ('sum by (handler) (rate(http_requests_total{status="5xx"}[5m])) / sum by (handler) (rate(http_requests_total[5m]))')
    firing = 'count by (alertname) (ALERTS{alertstate="firing",alertname=~"QuireServerErrors|QuireTurnsAway|QuireClientsLeave"})'
    return [
        ("quire:http_5xx:ratio_5m", '{job="quire"}', REFUSED / (GOOD + BAD + REFUSED + STREAM)),
        (by_handler, '{handler="/v1/completions"}', REFUSED / (GOOD + BAD + REFUSED)),  # the stream has not ended
        (firing, '{alertname="QuireServerErrors"}', 1),
    ]


@pytest.mark.full
def test_the_ratio_and_the_alert_are_those_of_the_clients_requests(scraped, tmp_path):
    for series in scraped:
        good, said = check(tmp_path, series, expectations())
        assert good, said


@pytest.mark.full
@pytest.mark.parametrize("status, count", [("2xx", ROUNDS * 4), ("5xx", ROUNDS * 2)])
def test_a_server_that_counted_probes_would_not_pass(scraped, tmp_path, status, count):
    _, after = scraped
    counted = {name: value + count if f'status="{status}"' in name else value for name, value in after.items()}
    good, said = check(tmp_path, counted, expectations())
    assert not good and "quire:http_5xx:ratio_5m" in said, said
