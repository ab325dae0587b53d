"""The Dockerfile, the compose file and the systemd unit: what they name exists, and they leave quire time to finish."""

import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

import pytest
import yaml

from deploy_tools import BINARY, ROOT, need, run

DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "docker" / "cpu.Dockerfile").read_text()
COMPOSE = yaml.safe_load((DEPLOY / "docker" / "compose.yaml").read_text())
UNIT = (DEPLOY / "systemd" / "quire.service").read_text()


def packages(section):
    text = (DEPLOY / "packages.txt").read_text().split(f"[{section}]\n")[1]
    return {line for line in re.split(r"^\[", text, maxsplit=1, flags=re.MULTILINE)[0].splitlines() if line and not line.startswith("#")}


def drain_seconds():
    (row,) = [row for row in (ROOT / "docs" / "flags.md").read_text().splitlines() if row.startswith("| `--drain-timeout`")]
    return int(re.search(r"`(\d+)s`", row)[1])


def test_the_image_is_made_by_the_quickstarts_scripts_on_any_base():
    assert re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) == ["${BUILD_IMAGE}", "${BASE_IMAGE}"]
    for script in re.findall(r"deploy/(\w+\.sh)", DOCKERFILE):
        assert (DEPLOY / script).is_file()
    assert "deploy/quickstart.sh --build-only" in DOCKERFILE and "install_packages.sh run" in DOCKERFILE
    assert "apt-get" not in DOCKERFILE and "\nUSER 65532:65532\n" in DOCKERFILE


def test_hadolint_finds_nothing_in_the_dockerfile(tmp_path):
    linter = pathlib.Path(sys.executable).with_name("hadolint")
    if not linter.exists():
        pytest.skip("hadolint is not installed: tests/requirements.txt names it")
    done = run(linter, "--no-color", DEPLOY / "docker" / "cpu.Dockerfile")
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "Dockerfile").write_text(DOCKERFILE.replace("USER 65532:65532\n", "").replace("WORKDIR /src", "WORKDIR src"))
    assert run(linter, "--no-color", tmp_path / "Dockerfile").returncode != 0, "the linter is blind"


def test_the_images_version_is_the_programs():
    version = re.search(r'kVersion = "([^"]+)"', (ROOT / "app" / "config" / "version.h").read_text())[1]
    assert f"image.version={version}\n" in DOCKERFILE and f"-t quire:{version} " in DOCKERFILE
    assert COMPOSE["services"]["quire"]["image"] == f"quire:{version}"


def test_the_context_has_all_that_the_build_reads():
    """Every directory that CMakeLists.txt names is let in, but tools, which an image is built without, and so is what the Dockerfile
    copies."""
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    cmake = (ROOT / "CMakeLists.txt").read_text()
    read = {path.split("/")[0] for path in re.findall(r"(?:quire_layer\(|include\()(\w+)", cmake)} | {"app", "models", "layers.txt", "deploy"}
    assert read - {"tools"} <= let_in and "tools" not in let_in
    assert {path for path in let_in if path != "gpu"} <= {path.name for path in ROOT.iterdir()}


def test_the_run_packages_hold_every_library_of_the_binary():
    need("dpkg-query")
    linked = run("ldd", BINARY).stdout
    names = re.findall(r"^\s*(\S+) => (/\S+)", linked, re.MULTILINE)
    assert names
    wanted, seen = set(packages("run")), {"libc6", "libgcc-s1"}
    while wanted - seen:  # and what those depend on
        package = (wanted - seen).pop()
        seen.add(package)
        depends = run("dpkg-query", "-W", "-f", "${Depends}", package).stdout
        wanted |= {re.split(r"[ :(]", one.strip())[0] for one in re.split(r"[,|]", depends) if one.strip()}
    for name, path in names:
        paths = [path, path.removeprefix("/usr"), "/usr" + path]
        owners = {line.split(":")[0] for one in paths for line in run("dpkg-query", "-S", one).stdout.splitlines()}
        assert owners & seen, f"{name} is in {owners or 'no package'}: add it to [run] in deploy/packages.txt"


def test_compose_mounts_what_there_is():
    named = set(COMPOSE["volumes"])
    for name, service in COMPOSE["services"].items():
        for volume in service.get("volumes", []):
            source = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", volume).split(":")[0]
            assert source in named or (DEPLOY / "docker" / source).exists(), f"{name}: {volume}"
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), f"{name} listens to the world"


def test_compose_lets_streams_finish():
    quire = COMPOSE["services"]["quire"]
    assert int(quire["stop_grace_period"].removesuffix("s")) >= drain_seconds() + 10
    assert quire["read_only"] is True and quire["cap_drop"] == ["ALL"]
    assert (ROOT / quire["build"]["dockerfile"]).is_file()


def test_prometheus_scrapes_the_composed_server():
    config = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
    (job,) = config["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["quire:8000"]}] and "quire" in COMPOSE["services"]
    mounted = " ".join(COMPOSE["services"]["prometheus"]["volumes"])
    assert all(f":/etc/prometheus/{name}:ro" in mounted for name in config["rule_files"])
    source = yaml.safe_load((DEPLOY / "grafana" / "provisioning" / "datasources" / "prometheus.yaml").read_text())
    assert source["datasources"][0]["url"] == "http://prometheus:9090"
    boards = yaml.safe_load((DEPLOY / "grafana" / "provisioning" / "dashboards" / "quire.yaml").read_text())
    assert f":{boards['providers'][0]['options']['path']}:ro" in " ".join(COMPOSE["services"]["grafana"]["volumes"])


def test_the_unit_lets_streams_finish():
    assert int(re.search(r"^TimeoutStopSec=(\d+)$", UNIT, re.MULTILINE)[1]) >= drain_seconds() + 10
    assert re.search(r"^KillMode=", UNIT, re.MULTILINE) is None


def test_the_unit_is_one_that_systemd_takes_and_finds_safe(tmp_path):
    need("systemd-analyze")
    unit = tmp_path / "quire.service"
    unit.write_text(UNIT.replace("/usr/local/bin/quire", shutil.which("true")))
    done = run("systemd-analyze", "verify", unit)
    assert done.returncode == 0 and "quire.service" not in done.stderr, done.stderr
    done = run("systemd-analyze", "security", "--offline=true", "--threshold=20", unit)
    assert done.returncode == 0, done.stdout


def test_the_units_settings_are_the_servers(tmp_path):
    settings = tomllib.loads((DEPLOY / "systemd" / "quire.toml").read_text())
    assert settings["packed-cache"] == "/var/cache/" + re.search(r"^CacheDirectory=(\w+)$", UNIT, re.MULTILINE)[1]
    mine = tmp_path / "quire.toml"
    mine.write_text((DEPLOY / "systemd" / "quire.toml").read_text().replace("/var/cache/quire", str(tmp_path)))
    done = subprocess.run([BINARY, "serve", "--config", mine, "--plan"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
