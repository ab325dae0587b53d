"""deploy/docker/cpu.Dockerfile, built by buildah from its first line to its last, and run as Kubernetes would run it."""

import json
import re
import subprocess

import pytest

from containers import INSTALL_CCACHE, Buildah, Container, bytes_of, compiler_cache, debian
from deploy_tools import CHART, ROOT, run

pytestmark = pytest.mark.heavy

DOCKERFILE = ROOT / "deploy" / "docker" / "cpu.Dockerfile"
MOST_ABOVE_BASE = 60_000_000
LOCAL = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def buildah(tmp_path_factory):
    home = tmp_path_factory.mktemp("images")
    tool = Buildah(home)
    try:
        tool.image_of(debian(), "localhost/debian:12")
        yield tool
    finally:
        tool.close()


@pytest.fixture(scope="module")
def image(buildah):
    """The image. What another test, or this machine, has compiled already comes from a cache."""
    build_image = "localhost/debian-ccache:12"
    buildah.add_to("localhost/debian:12", build_image, "bash", "-ec", INSTALL_CCACHE)
    cache = ["--volume", f"{compiler_cache()}:/var/cache/ccache:rw"]
    buildah("bud", "--isolation", "chroot", "--format", "docker", "--build-arg", "BASE_IMAGE=localhost/debian:12",
            "--build-arg", f"BUILD_IMAGE={build_image}", *cache, "-f", DOCKERFILE, "-t", "localhost/quire", ROOT, timeout=3000)
    return "localhost/quire"


@pytest.fixture(scope="module")
def files(buildah, image):
    return buildah.files_of(image)


@pytest.fixture
def container(buildah, image, files, tmp_path):
    one = Container(tmp_path / "container", files, buildah.settings_of(image))
    try:
        one.wait_for("ready in")
        yield one
    finally:
        one.close()


def test_the_image_is_small(buildah, files):
    above = bytes_of(files) - bytes_of(buildah.files_of("localhost/debian:12"))
    print(f"{above / 1e6:.1f} MB above its base")
    assert 0 < above <= MOST_ABOVE_BASE


def test_the_image_holds_what_runs_and_nothing_that_builds(files):
    assert (files / "usr/local/bin/quire").is_file() and (files / "usr/share/doc/quire/LICENSE").is_file()
    assert not (files / "src").exists() and not list(files.glob("usr/bin/*g++*")) and not list((files / "tmp").iterdir())
    missing = [line for line in run("chroot", files, "ldd", "/usr/local/bin/quire").stdout.splitlines() if "not found" in line]
    assert not missing


def test_the_image_has_labels_and_settings(buildah, image):
    settings = buildah.settings_of(image)
    version = re.search(r'kVersion = "([^"]+)"', (ROOT / "app" / "config" / "version.h").read_text())[1]
    assert settings["User"] == "65532:65532" and "8000/tcp" in settings["ExposedPorts"]
    assert settings["Labels"]["org.opencontainers.image.version"] == version
    assert settings["Entrypoint"] == ["/usr/local/bin/quire"]


def test_it_answers_as_an_ordinary_user_who_can_write_nothing(container):
    script = (CHART / "files" / "ask_for_one_token.sh").read_text()
    asked = container.exec("bash", "-c", script, "ask", "127.0.0.1", "8000")
    assert asked.returncode == 0, asked.stdout + asked.stderr + container.text()
    status = dict(re.findall(r"^(\w+):\s*(.*)$", container.exec("cat", "/proc/1/status").stdout, re.MULTILINE))
    assert status["Name"] == "quire" and set(status["Uid"].split()) == set(status["Gid"].split()) == {"65532"}
    assert status["CapEff"] == status["CapBnd"] == 16 * "0" and status["NoNewPrivs"] == "1"
    for path in ("/new", "/var/tmp/new"):
        wrote = container.exec("bash", "-c", f": >>{path}")
        assert wrote.returncode != 0 and "Read-only file system" in wrote.stderr, path


def test_its_health_check_finds_it_healthy(buildah, image, container):
    check = json.loads(buildah("inspect", "--type", "image", image))["Docker"]["config"]["Healthcheck"]["Test"]
    assert check[0] == "CMD"
    done = container.exec(*check[1:])
    assert done.returncode == 0, done.stdout + done.stderr


def test_sigterm_lets_streams_finish_and_ends_well(container):
    body = {"prompt": "Once upon a time", "n": 8, "max_tokens": 400, "ignore_eos": True, "stream": True,
            "stream_options": {"include_usage": True}}
    client = subprocess.Popen(
        container.inside("curl", "-sSN", f"{LOCAL}/v1/completions", "-H", "Content-Type: application/json", "-d", json.dumps(body)),
        stdout=subprocess.PIPE, text=True)
    first = client.stdout.readline()
    container.terminate()
    rest, _ = client.communicate(timeout=300)
    events = [line.removeprefix("data: ") for line in (first + rest).splitlines() if line.startswith("data: ")]
    assert events[-1] == "[DONE]"
    assert json.loads(events[-2])["usage"]["completion_tokens"] == 8 * 400
    assert container.process.wait(120) == 0, container.text()
    assert "every answer was finished" in container.text()
    assert container.text().index("drain") < container.text().index("every answer was finished")
