"""The chart through real Helm, 3 and 4: every case renders, into objects that Kubernetes 1.25 to 1.37 takes."""

import json
import warnings

import pytest
import yaml

from deploy_tools import (CASES, CHART, case_file, helm, kubernetes_models, objects_of, only, pod_of, render, run, server_of, set_at,
                          settings_of, template)

pytestmark = pytest.mark.full
kubernetes_validate = pytest.importorskip("kubernetes_validate")

VERSIONS = [f"1.{minor}" for minor in range(25, 38)]
OLDEST = {"image-volume": 31}  # minor versions that a case needs
FOREIGN = ("monitoring.coreos.com", "keda.sh", "gateway.networking.k8s.io", "inference.networking.k8s.io")



@pytest.mark.parametrize("major", [3, 4])
@pytest.mark.parametrize("case", CASES)
def test_lint_finds_nothing(major, case):
    done = run(helm(major), "lint", "--strict", CHART, "-f", case_file(case), "--kube-version", "1.35")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[WARNING]" not in done.stdout and "[ERROR]" not in done.stdout


@pytest.mark.parametrize("case", CASES)
def test_both_helms_render_the_same(case):
    assert render("-f", case_file(case), major=3) == render("-f", case_file(case), major=4)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", CASES)
def test_kubernetes_takes_every_object(case, version):
    minor = int(version.split(".")[1])
    if minor < OLDEST.get(case, 25):
        done = template(4, "-f", case_file(case), kube=version)
        assert done.returncode != 0 and "image volumes need Kubernetes 1.31" in done.stderr
        return
    objects = render("-f", case_file(case), kube=version)
    assert objects
    for one in objects:
        if not one["apiVersion"].startswith(FOREIGN):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                kubernetes_validate.validate(one, version, strict=True)


def test_the_check_of_objects_is_not_blind():
    deployment = only(render(), "Deployment")
    deployment["spec"]["template"]["spec"]["containers"][0]["bogus"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, "1.35", strict=True)


def test_a_duplicate_key_is_found():
    with pytest.raises(AssertionError, match="said twice: .'a', 'a'."):
        objects_of("b: {a: 1, a: 2}")


def test_an_older_kubernetes_than_1_25_is_refused():
    done = template(4, kube="1.24")
    assert done.returncode != 0 and "1.25" in done.stderr


def test_foreign_objects_follow_their_definitions():
    home = kubernetes_models()
    objects = [one for case in CASES for one in render("-f", case_file(case)) if one["apiVersion"].startswith(FOREIGN)]
    known = [one for one in objects if one["kind"] != "InferencePool"]
    assert {one["kind"] for one in known} == {"ServiceMonitor", "PodMonitor", "PrometheusRule", "ScaledObject", "HTTPRoute", "BackendTLSPolicy"}
    bad = json.loads(json.dumps(next(one for one in known if one["kind"] == "ServiceMonitor")))
    bad["spec"]["endpoints"][0]["interval"] = 15
    script = """
        import { readFileSync } from "node:fs";
        import * as monitoring from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1";
        import * as keda from "@kubernetes-models/keda/keda.sh/v1alpha1";
        import * as gateway from "@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1";
        const kinds = { ...monitoring, ...keda, ...gateway };
        for (const one of JSON.parse(readFileSync(0, "utf8"))) {
          let said = "ok";
          try { new kinds[one.kind](one).validate(); } catch (error) { said = error.message.split("\\n")[0]; }
          console.log(said);
        }"""
    done = run("node", "--input-type=module", "-e", script, cwd=home, input=json.dumps([*known, bad]))
    said = done.stdout.splitlines()
    assert said[:-1] == ["ok"] * len(known), done.stdout + done.stderr
    assert said[-1] != "ok", "the check is blind"


@pytest.mark.parametrize("case", CASES)
def test_selectors_find_the_servers_pods_and_no_others(case):
    objects = render("-f", case_file(case))
    deployment = only(objects, "Deployment")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"].items() <= labels.items()
    others = [one["metadata"]["labels"] for one in objects if one["kind"] == "Pod"]
    for one in objects:
        spec = one.get("spec", {})
        selector = spec.get("selector") if one["kind"] == "Service" else (
            spec.get("podSelector", {}).get("matchLabels") if one["kind"] == "NetworkPolicy" else None)
        if selector:
            assert selector.items() <= labels.items(), one["kind"]
            assert not any(selector.items() <= other.items() for other in others), one["kind"]


@pytest.mark.parametrize("case", CASES)
def test_pods_are_restricted(case):
    """What the restricted level of the Pod Security Standards asks for, and no token."""
    objects = render("-f", case_file(case))
    pods = [pod_of(objects)] + [one["spec"] for one in objects if one["kind"] == "Pod"]
    for pod in pods:
        assert pod["automountServiceAccountToken"] is False and pod["enableServiceLinks"] is False
        security = pod["securityContext"]
        assert security["runAsNonRoot"] is True and security["runAsUser"] == 65532
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
        for container in pod["containers"] + pod.get("initContainers", []):
            own = container["securityContext"]
            assert own["allowPrivilegeEscalation"] is False and own["capabilities"] == {"drop": ["ALL"]}
            assert own["readOnlyRootFilesystem"] is (case != "gpu")
    if case not in ("hpa",):
        assert only(objects, "ServiceAccount")["automountServiceAccountToken"] is False


def test_settings_become_the_servers_file():
    settings = settings_of(render("-f", case_file("cpu")))
    given = yaml.safe_load(case_file("cpu").read_text())["config"]
    del given["speculative-config"]  # which the draft model's path goes into
    assert given.items() <= settings.items()
    assert settings["max-queue-tokens"] == 4194304, "a large number is written as one"
    assert settings["port"] == 8000 and settings["model"] == "/models/org/llama-3.2-1b"


def test_a_changed_setting_changes_the_pods():
    def checksum(*args):
        return only(render(*args), "Deployment")["spec"]["template"]["metadata"]["annotations"]["checksum/config"]

    assert checksum() == checksum() != checksum(*set_at("config.max-num-seqs", 65))


@pytest.mark.parametrize(
    "drain, seconds",
    [("30s", 30), ("500ms", 1), ("1.5m", 90), ("1h", 3600), ("0", 0), (0, 0), ("3000ms", 3), ("3001ms", 4)],
)
def test_the_grace_period_covers_pre_stop_and_drain(drain, seconds):
    pod = pod_of(render(*set_at("config.drain-timeout", drain), *set_at("shutdown.preStopSeconds", 7)))
    assert pod["terminationGracePeriodSeconds"] == 7 + seconds + 10


@pytest.mark.parametrize("grace, good", [(49, False), (50, True), (51, True)])
def test_a_shorter_grace_period_is_refused(grace, good):
    done = template(4, *set_at("shutdown.terminationGracePeriodSeconds", grace))
    assert (done.returncode == 0) == good
    if not good:
        assert "shutdown.terminationGracePeriodSeconds is 49: it must be at least 50" in done.stderr


@pytest.mark.parametrize("kube, handler", [("1.29", {"exec": {"command": ["sleep", "10"]}}), ("1.30", {"sleep": {"seconds": 10}})])
def test_pre_stop_sleeps_as_the_version_can(kube, handler):
    assert server_of(render(kube=kube))["lifecycle"] == {"preStop": handler}


def test_a_rollout_waits_as_long_as_a_start_may_take():
    objects = render()
    probe = server_of(objects)["startupProbe"]
    assert (probe["httpGet"]["path"], probe["periodSeconds"], probe["failureThreshold"]) == ("/startup", 5, 360)
    assert only(objects, "Deployment")["spec"]["progressDeadlineSeconds"] > 5 * 360
    assert server_of(objects)["readinessProbe"]["httpGet"]["path"] == "/ready"
    assert server_of(objects)["livenessProbe"]["httpGet"]["path"] == "/live"
    assert {server_of(objects)[f"{name}Probe"]["httpGet"]["port"] for name in ("startup", "readiness", "liveness")} == {"admin"}
    assert {port["name"]: port["containerPort"] for port in server_of(objects)["ports"]} == {"http": 8000, "admin": 8001}
    assert settings_of(objects)["admin-port"] == 8001 and settings_of(objects)["admin-host"] == "0.0.0.0"


def test_rules_are_this_releases_own():
    rule = only(render("-f", case_file("monitoring")), "PrometheusRule")
    rules = [one for group in rule["spec"]["groups"] for one in group["rules"]]
    scoped = 'quire:build_info{namespace="llm",pod=~"stories-quire-[a-z0-9]+-[a-z0-9]+"}'
    for one in rules:
        bare = one["expr"].replace(scoped, "")
        assert scoped in one["expr"] and "quire:build_info" not in bare
    alerts = {one["alert"]: one for one in rules if "alert" in one}
    written = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"][0]["rules"]
    assert set(alerts) == {one["alert"] for one in written} - {"QuireClientsLeave"}
    for name, one in alerts.items():
        assert one["labels"]["team"] == "language" and one["labels"]["severity"]
        assert one["annotations"]["runbook_url"] == f"https://runbooks.example.com/quire#{name.lower()}"


def test_dashboards_arrive_unchanged():
    data = only(render("-f", case_file("monitoring")), "ConfigMap", "dashboards")["data"]
    files = sorted((CHART / "files" / "dashboards").glob("*.json"))
    assert {name: json.loads(text) for name, text in data.items()} == {f"quire-{file.name}": json.loads(file.read_text()) for file in files}
    assert data


def test_names_stay_within_63_letters():
    for one in render("-f", case_file("gateway"), release="r" * 53):
        assert len(one["metadata"]["name"]) <= 63
        assert all(len(label) <= 63 for label in one["metadata"]["labels"].values())


def test_notes_have_a_curl_that_names_the_service():
    done = run(helm(4), "install", "stories", CHART, "--dry-run=client", "-n", "llm")
    assert done.returncode == 0, done.stderr
    assert "port-forward service/stories-quire 8000:80" in done.stdout and "/v1/completions" in done.stdout


def test_a_package_holds_what_a_release_needs(tmp_path):
    done = run(helm(4), "package", CHART, "-d", tmp_path)
    assert done.returncode == 0, done.stderr
    (package,) = tmp_path.glob("quire-*.tgz")
    plain = run(helm(4), "template", "stories", CHART, "-f", case_file("monitoring"), "--kube-version", "1.35").stdout
    packed = run(helm(4), "template", "stories", package, "-f", case_file("monitoring"), "--kube-version", "1.35").stdout
    assert plain == packed != ""
    assert package.stat().st_size < 200_000


@pytest.mark.parametrize("major", [3, 4])
@pytest.mark.parametrize(
    "path, value, said",
    [
        ("bogus", 1, "bogus"),
        ("config.bogus", 1, "bogus"),
        ("config.max-num-seqs", 0, "max-num-seqs"),
        ("config.kv-cache-dtype", "int3", "kv-cache-dtype"),
        ("config.model", "/models/a", "model"),
        ("model.source", "ftp", "source"),
        ("model.source", "pvc", "model.source is pvc: set model.pvc.claimName"),
        ("model", {"source": "hostPath", "hostPath": {"path": "/m"}}, "set config.served-model-name"),
        ("model.subPath", "a/../../etc", "subPath"),
        ("replicaCount", -1, "replicaCount"),
        ("podSecurityContext.runAsUser", 0, "runAsUser"),
        ("config.max-num-batched-tokens", 15, "config.max-num-batched-tokens (15) must not be below config.max-num-seqs (64), or 16"),
        ("pdb", {"minAvailable": 1, "maxUnavailable": 1}, "exclude each other"),
        ("autoscaling", {"hpa": {"enabled": True}, "keda": {"enabled": True}}, "both enabled"),
        ("autoscaling", {"minReplicas": 5, "hpa": {"enabled": True}}, "autoscaling.minReplicas (5) is above"),
        ("autoscaling", {"minReplicas": 0, "hpa": {"enabled": True}}, "autoscaling.minReplicas is 0"),
        ("autoscaling.keda.enabled", True, "set autoscaling.keda.serverAddress"),
        ("autoscaling", {"minReplicas": 0, "keda": {"enabled": True, "serverAddress": "http://p"}}, "autoscaling.keda.extraTriggers"),
        ("extraArgs", ["--drain-timeout=10m"], "extraArgs has --drain-timeout=10m: set adminPort, config.drain-timeout"),
        ("extraArgs", ["--port", "80"], "extraArgs has --port"),
        ("extraArgs", ["--admin-port", "80"], "extraArgs has --admin-port"),
        ("adminPort", 8000, "adminPort and containerPort are both 8000"),
        ("adminPort", 8002, None),
        ("extraArgs", ["--drain-timeout-of-another-kind"], None),
        ("extraEnv", [{"name": "QUIRE_DRAIN_TIMEOUT", "value": "10m"}], "extraEnv has QUIRE_DRAIN_TIMEOUT: set config.drain-timeout"),
        ("ingress.enabled", True, "set ingress.hosts"),
        ("httpRoute.enabled", True, "set httpRoute.parentRefs"),
        ("inferencePool.enabled", True, "set inferencePool.endpointPicker.name"),
        ("service.nodePort", 30000, "set service.type"),
        ("prometheusRule.disabledAlerts", ["QuireNope"], "disabledAlerts"),
        ("packedCache", {"enabled": True}, None),
        ("kvEvents", {"enabled": True, "port": 8001}, "kvEvents.port (8001) and kvEvents.replayPort (5558) must differ"),
        ("kvEvents", {"enabled": True, "port": 5558}, "must differ"),
        ("kvEvents", {"enabled": False, "port": 5558}, None),
        ("kvEvents.format", "json", "kvEvents"),
        ("config.api-key", "a-secret-of-mine", "config.api-key would put keys into a ConfigMap: set auth.existingSecret"),
        ("extraArgs", ["--api-key", "a-secret-of-mine"], "extraArgs has keys: set auth.existingSecret"),
        ("auth.existingSecret", "keys", "helm test needs a key then; set auth.clientSecret.name"),
        ("auth", {"existingSecret": "keys", "clientSecret": {"name": "client"}}, None),
    ],
)
def test_a_bad_value_is_refused_by_name(major, path, value, said):
    done = template(major, *set_at(path, value))
    if said is None:
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode != 0 and said in done.stderr
        assert not done.stdout


def test_two_packed_caches_and_two_monitors_are_refused():
    done = template(4, *set_at("packedCache.enabled", True), *set_at("config.packed-cache", "/tmp"))
    assert done.returncode != 0 and "take config.packed-cache out" in done.stderr
    done = template(4, *set_at("serviceMonitor.enabled", True), *set_at("podMonitor.enabled", True))
    assert done.returncode != 0 and "scraped twice" in done.stderr
