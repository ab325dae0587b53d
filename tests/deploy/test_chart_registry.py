"""The chart's package through a registry: pushed to one on this machine, by Helm 3 and 4, and installed from there."""

import subprocess

import pytest
import yaml

from deploy_tools import CHART, case_file, helm, on_a_free_port, run, unpacked

pytestmark = pytest.mark.full

PATIENCE_S = 120


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    """Where a registry answers: host and port."""
    home = tmp_path_factory.mktemp("registry")
    program = unpacked("docker-registry", "docker-registry")

    def start(port):
        settings = {"version": 0.1, "storage": {"filesystem": {"rootdirectory": str(home / "data")}}, "http": {"addr": f"127.0.0.1:{port}"}}
        (home / "config.yml").write_text(yaml.safe_dump(settings))
        with (home / "log").open("w") as log:
            return subprocess.Popen([program, "serve", home / "config.yml"], stdout=log, stderr=log)

    server, port = on_a_free_port(start, lambda _: "listening on" in (home / "log").read_text(), (home / "log").read_text)
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(PATIENCE_S)


@pytest.mark.parametrize("major", [3, 4])
def test_a_pushed_chart_renders_as_the_one_here(major, registry, tmp_path):
    made = run(helm(major), "package", CHART, "-d", tmp_path, "--version", f"{major}.0.0")
    assert made.returncode == 0, made.stderr
    (package,) = tmp_path.glob("quire-*.tgz")
    pushed = run(helm(major), "push", package, f"oci://{registry}/charts", "--plain-http")
    assert pushed.returncode == 0, pushed.stderr
    words = ["--version", f"{major}.0.0", "-f", case_file("monitoring"), "--kube-version", "1.35", "--plain-http"]
    pulled = run(helm(major), "template", "stories", f"oci://{registry}/charts/quire", *words)
    assert pulled.returncode == 0, pulled.stderr
    here = run(helm(major), "template", "stories", package, "-f", case_file("monitoring"), "--kube-version", "1.35")
    assert pulled.stdout == here.stdout != ""


def test_a_version_that_nobody_pushed_is_not_found(registry):
    asked = run(helm(4), "template", "stories", f"oci://{registry}/charts/quire", "--version", "9.9.9", "--plain-http")
    assert asked.returncode != 0
