"""The chart's files by themselves, without Helm: what they repeat is current, the schema is closed, cases and comments are whole."""

import copy
import json
import re
import subprocess
import sys

import jsonschema
import pytest
import yaml

from deploy_tools import BINARY, CASES, CHART, ROOT, case_file

VALUES = (CHART / "values.yaml").read_text()
DEFAULTS = yaml.safe_load(VALUES)
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
SETTINGS = SCHEMA["properties"]["config"]["properties"]

sys.path.insert(0, str(ROOT / "helm"))
import generate  # noqa: E402


def merged(values, over):
    out = copy.deepcopy(values)
    for key, value in (over or {}).items():
        out[key] = merged(out[key], value) if isinstance(value, dict) and isinstance(out.get(key), dict) else value
    return out


def check(over):
    jsonschema.Draft7Validator(SCHEMA).validate(merged(DEFAULTS, over))


def tree(path, value):
    for part in reversed(path.split(".")):
        value = {part: value}
    return value


def test_what_is_generated_is_current():
    done = subprocess.run([sys.executable, ROOT / "helm" / "generate.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_flag_of_serve_is_a_setting():
    rows = [row for row in (ROOT / "docs" / "flags.md").read_text().splitlines() if row.startswith("| `--")]
    names = {re.match(r"\| `--([\w-]+)`", row)[1] for row in rows if "serve" in row.rsplit("|", 3)[1] or "| all |" in row}
    assert set(SETTINGS) == names - {"admin-host", "admin-port", "config", "model", "port"}
    assert len(SETTINGS) > 30


def test_the_schema_is_one_and_is_closed():
    jsonschema.Draft7Validator.check_schema(SCHEMA)

    def walk(schema, values, path):
        assert schema["additionalProperties"] is False, path
        assert path in ("config", "resources") or set(schema["properties"]) == set(values), f"{path}: values and schema do not know the same"
        for key, value in values.items():
            below = schema["properties"][key]
            if "properties" in below and isinstance(value, dict) and below.get("additionalProperties") is False and value:
                walk(below, value, f"{path}.{key}".strip("."))

    walk(SCHEMA, DEFAULTS, "")


def test_every_value_has_its_line():
    documented = {path for _, path, _ in generate.parameters(VALUES)}

    def leaves(values, path):
        for key, value in values.items():
            here = f"{path}.{key}".strip(".")
            if here in documented:
                continue
            assert isinstance(value, dict) and value, f"{here} has no ## @param"
            leaves(value, here)

    leaves(DEFAULTS, "")
    for path in documented:
        generate.default_of(DEFAULTS, path)  # a comment about a value that is not there is a KeyError


@pytest.mark.parametrize("case", CASES)
def test_a_case_follows_the_schema(case):
    check(yaml.safe_load(case_file(case).read_text()))


@pytest.mark.parametrize(
    "path, value",
    [
        ("config.max-num-seqs", 0),
        ("config.max-num-seqs", 16385),
        ("config.max-num-seqs", "many"),
        ("config.kv-cache-memory", "4 GiB"),
        ("config.drain-timeout", 30),
        ("config.drain-timeout", "30"),
        ("config.drain-timeout", "half"),
        ("config.dtype", "f8"),
        ("config.served-model-name", 7),
        ("config.kv-debug", ["nope"]),
        ("config.port", 80),
        ("config.config", "other.toml"),
        ("config.Max-Num-Seqs", 4),
        ("replicas", 2),
        ("image.pullPolicy", "Sometimes"),
        ("image.digest", "sha256:abc"),
        ("containerPort", 80),
        ("adminPort", 80),
        ("config.admin-port", 8002),
        ("gpu.count", 0),
        ("gpu.resource", "gpu"),
        ("shm.sizeLimit", "big"),
        ("podSecurityContext.runAsUser", 0),
        ("shutdown.terminationGracePeriodSeconds", 0),
        ("autoscaling.kvCacheUsage", 1.1),
        ("pdb.minAvailable", "half"),
        ("service.type", "ExternalName"),
        ("ingress.paths", []),
        ("httpRoute.requestTimeout", "soon"),
        ("inferencePool.endpointPicker.failureMode", "failOpen"),
        ("prometheusRule.disabledAlerts", ["QuireNope"]),
        ("extraObjects", [7]),
        ("auth.existingSecret", "Not a name"),
        ("auth.secretKey", ""),
        ("auth.keys", "name=alice"),
    ],
)
def test_a_value_that_cannot_be_is_refused(path, value):
    with pytest.raises(jsonschema.ValidationError):
        check(tree(path, value))


@pytest.mark.parametrize(
    "path, value",
    [
        ("config.max-num-seqs", 1),
        ("config.max-num-seqs", 16384),
        ("config.max-model-len", "auto"),
        ("config.max-model-len", "32k"),
        ("config.kv-cache-memory", "1.5GiB"),
        ("config.swap-space", 0),
        ("config.drain-timeout", "1.5m"),
        ("config.drain-timeout", 0),
        ("config.served-model-name", "a,b"),
        ("config.kv-debug", ["check", "poison"]),
        ("shutdown.terminationGracePeriodSeconds", None),
        ("pdb.minAvailable", "50%"),
        ("pdb.maxUnavailable", 0),
        ("global", {"storageClass": "of a parent chart"}),
    ],
)
def test_a_value_at_its_limit_is_taken(path, value):
    check(tree(path, value))


UNITS = {
    "max-queue-tokens": ["2", "2.5k", "2m", "2K", "2M"],
    "body-limit": ["2000", "2k", "2K", "2m", "2M", "2000B", "2kB", "2KB", "2MB", "1.5KiB", "2MiB"],
    "kv-cache-memory": ["auto", "1GB", "1GiB", "1g", "1G"],
    "drain-timeout": ["0", "2000000ns", "2000us", "2ms", "2s", "1.5m", "1h", "0.01d"],
}
NO_UNITS = {
    "max-queue-tokens": ["2x", "-2", "2 k", "k", "1.", "2KiB"],
    "body-limit": ["2Mi", "2kib", "2 MiB", "auto"],
    "drain-timeout": ["30", "2min", "2S", "-1s", "auto", "1h30m"],
}


def server_takes(name, text, tmp_path):
    settings = tmp_path / "quire.toml"
    settings.write_text(f"{name} = {json.dumps(text)}\n")
    return subprocess.run([BINARY, "serve", "--config", settings, "--plan"], capture_output=True, timeout=120).returncode == 0


@pytest.mark.parametrize("name, text, good", [(n, x, True) for n in UNITS for x in UNITS[n]] + [(n, x, False) for n in NO_UNITS for x in NO_UNITS[n]])
def test_schema_and_server_agree_about_units(name, text, good, tmp_path):
    said = jsonschema.Draft7Validator(SETTINGS[name]).is_valid(text)
    assert (said, server_takes(name, text, tmp_path)) == (good, good)


def test_versions_agree():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = re.search(r'kVersion = "([^"]+)"', (ROOT / "app" / "config" / "version.h").read_text())[1]
    assert chart["appVersion"] == version
    assert chart["kubeVersion"] == ">=1.25.0-0" and "dependencies" not in chart


def test_probes_ask_paths_that_the_server_has():
    router = (ROOT / "api" / "routes" / "router.cc").read_text()
    deployment = (CHART / "templates" / "deployment.yaml").read_text()
    asked = set(re.findall(r'Probe|"(/\w+)"', deployment)) - {""}
    assert asked == {"/startup", "/ready", "/live"}
    assert all(f'{{"{path}",' in router for path in asked | {"/metrics"})


def test_every_value_is_read_by_a_template():
    text = "".join(path.read_text() for path in (CHART / "templates").rglob("*.*"))
    for _, path, _ in generate.parameters(VALUES):
        last = path.split(".")[-1]
        assert re.search(rf"\b{re.escape(last)}\b", text) or path == "config.host", f"{path} is read by nobody"


def test_every_yaml_file_parses():
    paths = [path for home in (ROOT / "deploy", ROOT / "helm") for path in home.rglob("*.y*ml") if "templates" not in path.parts]
    assert len(paths) > 15
    for path in paths:
        list(yaml.safe_load_all(path.read_text()))
