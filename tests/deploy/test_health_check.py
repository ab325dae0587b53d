"""What /startup, /live, /ready and /health say in each state of a server, and that the image's HEALTHCHECK, the compose file and the chart's
probes each ask the one they mean."""

import json
import os
import re
import socket
import subprocess
import time

import pytest
import yaml

from deploy_tools import KEY, ROOT
from servers import PATIENCE_S, PLAIN, downloading, draining, ready, started, status_of
from test_chart_scripts import make_pair

DOCKERFILE = (ROOT / "deploy" / "docker" / "cpu.Dockerfile").read_text()
CHECK = ROOT / "deploy" / "docker" / "healthcheck.sh"


def check(**variables):
    """How the health check ends, and what it prints."""
    done = subprocess.run([CHECK], env=PLAIN | {name: str(value) for name, value in variables.items()}, capture_output=True, text=True, timeout=PATIENCE_S)
    return done.returncode, done.stdout.strip()


def statuses(port):
    return {path: status_of(port, path) for path in ("/startup", "/live", "/ready", "/health")}


def test_a_server_that_loads_is_alive_and_nothing_else(tmp_path):
    with downloading(tmp_path) as port:
        assert statuses(port) == {"/startup": 503, "/live": 200, "/ready": 503, "/health": 503}
        code, said = check(QUIRE_PORT=port)
        assert code == 1 and json.loads(said)["status"] in ("downloading", "loading")


def test_a_server_that_is_ready_is_healthy_with_keys_too():
    with ready("--api-key", KEY) as (_, port):
        assert set(statuses(port).values()) == {200} and status_of(port, "/metrics") == 401
        assert check(QUIRE_PORT=port) == (0, '{"status":"ok"}')


def test_a_server_that_drains_is_alive_and_started_and_not_ready():
    with ready() as (process, port), draining(process, port):
        assert statuses(port) == {"/startup": 200, "/live": 200, "/ready": 503, "/health": 503}
        code, said = check(QUIRE_PORT=port)
        assert code == 1 and "shutting down" in said


def test_a_server_with_tls_is_checked_on_its_admin_port(tmp_path):
    pair = make_pair(tmp_path / "pair", "one")
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        admin = one.getsockname()[1]
    words = ["--tls-cert", str(pair / "tls.crt"), "--tls-key", str(pair / "tls.key"), "--admin-port", str(admin)]
    with started(*words, is_up=lambda _: status_of(admin, "/ready") == 200) as (_, port):
        assert check(QUIRE_PORT=port)[0] == 1, "plain HTTP on a port of TLS"
        assert check(QUIRE_PORT=port, QUIRE_ADMIN_PORT=admin) == (0, '{"status":"ok"}')


def test_the_check_fails_where_nobody_listens_or_answers():
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        began = time.monotonic()
        assert check(QUIRE_PORT=deaf.getsockname()[1])[0] not in (0, None)
        assert time.monotonic() - began < 10, "longer than the image's --timeout"
        port = deaf.getsockname()[1]
    assert check(QUIRE_PORT=port)[0] != 0


def test_the_image_checks_health_and_allows_a_start_as_long_as_the_chart_does():
    (options, command), = re.findall(r'^HEALTHCHECK (.*) CMD \["([^"]+)"\]$', DOCKERFILE, re.MULTILINE)
    assert f"COPY deploy/docker/{CHECK.name} {command}\n" in DOCKERFILE and os.access(CHECK, os.X_OK)
    assert "GET /health HTTP/1.1" in CHECK.read_text()
    probe = yaml.safe_load((ROOT / "helm" / "quire" / "values.yaml").read_text())["probes"]["startup"]
    minutes = probe["periodSeconds"] * probe["failureThreshold"] / 60
    assert f"--start-period={minutes:.0f}m" in options


def test_the_composed_server_has_the_images_check_and_the_download_none():
    services = yaml.safe_load((ROOT / "deploy" / "docker" / "compose.yaml").read_text())["services"]
    assert "healthcheck" not in services["quire"] and services["model"]["healthcheck"] == {"disable": True}
    assert not any(word.startswith("--port") for word in services["quire"]["command"]), "the check finds the port by QUIRE_PORT"


@pytest.mark.parametrize("probe, path", [("startup", "/startup"), ("liveness", "/live"), ("readiness", "/ready")])
def test_the_charts_probe_asks_the_path_that_is_called_for(probe, path):
    template = (ROOT / "helm" / "quire" / "templates" / "deployment.yaml").read_text()
    assert f'"{probe}" "{path}"' in re.search(r"range \$probe, \$path := dict (.*) }}", template)[1]
