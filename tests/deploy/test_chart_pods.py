"""What the chart says of pods: where they run, with what, how many, and who may take them away."""

import pytest
import yaml

from deploy_tools import case_file, only, pod_of, render, server_of, set_at, settings_of

pytestmark = pytest.mark.full


def given(case):
    return yaml.safe_load(case_file(case).read_text())


def test_pods_run_where_the_values_say():
    cpu, gpu = pod_of(render("-f", case_file("cpu"))), pod_of(render("-f", case_file("gpu")))
    for name in ("nodeSelector", "affinity", "priorityClassName", "schedulerName"):
        assert cpu[name] == given("cpu")[name]
    for name in ("nodeSelector", "tolerations", "runtimeClassName"):
        assert gpu[name] == given("gpu")[name]
    assert not {"nodeSelector", "tolerations", "runtimeClassName", "priorityClassName", "schedulerName"} & set(pod_of(render()))


def test_pods_spread_over_zones_by_their_own_labels_unless_others_are_named():
    objects = render("-f", case_file("cpu"))
    own = {"matchLabels": only(objects, "Deployment")["spec"]["selector"]["matchLabels"]}
    assert pod_of(objects)["topologySpreadConstraints"] == [{**given("cpu")["topologySpreadConstraints"][0], "labelSelector": own}]
    other = {"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"a": "b"}}}
    (constraint,) = pod_of(render(*set_at("topologySpreadConstraints", [other])))["topologySpreadConstraints"]
    assert constraint["labelSelector"]["matchLabels"]["a"] == "b"


def test_pods_of_a_release_prefer_different_nodes():
    objects = render()
    (preferred,) = pod_of(objects)["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    term = preferred["podAffinityTerm"]
    assert term["topologyKey"] == "kubernetes.io/hostname"
    assert term["labelSelector"]["matchLabels"] == only(objects, "Deployment")["spec"]["selector"]["matchLabels"]


def test_on_cpus_requests_equal_limits_and_no_gpu_is_asked_for():
    assert server_of(render())["resources"] == {"requests": {"cpu": "2", "memory": "2Gi"}, "limits": {"cpu": "2", "memory": "2Gi"}}


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "nvidia.com/mig-1g.10gb"])
def test_a_gpu_or_a_slice_is_asked_for_beside_the_other_resources(resource):
    objects = render("-f", case_file("gpu"), *set_at("gpu.resource", resource), *set_at("gpu.count", 2))
    resources = server_of(objects)["resources"]
    assert resources["limits"][resource] == resources["requests"][resource] == 2
    assert resources["limits"]["memory"] == "2Gi" and len(resources["limits"]) == 3
    assert only(objects, "Deployment")["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}


def test_where_a_gpu_is_asked_for_it_serves_from_it_unless_the_settings_name_a_device():
    assert settings_of(render("-f", case_file("gpu")))["device"] == "cuda"
    assert settings_of(render("-f", case_file("gpu"), *set_at("config.device", "cuda:1")))["device"] == "cuda:1"
    assert "device" not in settings_of(render())


def test_tmp_and_shared_memory_are_writable_and_bounded():
    objects = render("-f", case_file("gpu"), *set_at("tmp.sizeLimit", "1Gi"))
    volumes = {one["name"]: one for one in pod_of(objects)["volumes"]}
    assert volumes["shm"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "4Gi"} and volumes["tmp"]["emptyDir"] == {"sizeLimit": "1Gi"}
    mounts = {one["mountPath"]: one for one in server_of(objects)["volumeMounts"]}
    assert "readOnly" not in mounts["/tmp"] and "readOnly" not in mounts["/dev/shm"]
    assert "shm" not in {one["name"] for one in pod_of(render("-f", case_file("hpa")))["volumes"]}


@pytest.mark.parametrize("value", [True, False])
def test_a_read_only_root_is_a_value(value):
    assert server_of(render(*set_at("readOnlyRootFilesystem", value)))["securityContext"]["readOnlyRootFilesystem"] is value


@pytest.mark.parametrize(
    "image, name",
    [
        ({}, "quire:0.1.0"),
        ({"registry": "r.example/", "tag": "2"}, "r.example/quire:2"),
        ({"repository": "a/b", "tag": "2", "digest": "sha256:" + 64 * "0"}, "a/b@sha256:" + 64 * "0"),
    ],
)
def test_an_image_is_named_by_its_digest_tag_or_the_charts_version(image, name):
    assert server_of(render(*set_at("image", image)))["image"] == name


def test_a_shared_registry_and_its_secrets_go_first():
    pod = pod_of(render("-f", case_file("cpu")))
    assert pod["containers"][0]["image"] == "registry.example/quire:0.1.0-bookworm"
    assert pod["imagePullSecrets"] == [{"name": "shared"}, {"name": "own"}]


def test_packed_weights_have_a_writable_volume():
    objects = render("-f", case_file("cpu"))
    assert settings_of(objects)["packed-cache"] == "/var/cache/quire"
    assert {"name": "packed", "mountPath": "/var/cache/quire"} in server_of(objects)["volumeMounts"]
    assert {"name": "packed", "persistentVolumeClaim": {"claimName": "packed"}} in pod_of(objects)["volumes"]


@pytest.mark.parametrize("case", ["hpa", "keda"])
def test_what_is_scaled_has_no_replicas_of_its_own(case):
    assert "replicas" not in only(render("-f", case_file(case)), "Deployment")["spec"]
    assert only(render(), "Deployment")["spec"]["replicas"] == 1


def test_the_autoscaler_looks_at_queue_and_cache_and_shrinks_slowly():
    objects = render("-f", case_file("hpa"))
    scaler = only(objects, "HorizontalPodAutoscaler")
    assert scaler["apiVersion"] == "autoscaling/v2"
    spec = scaler["spec"]
    assert spec["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": only(objects, "Deployment")["metadata"]["name"]}
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 8)
    pods = {one["pods"]["metric"]["name"]: one["pods"]["target"] for one in spec["metrics"] if one["type"] == "Pods"}
    assert pods == {
        "vllm_num_requests_waiting": {"type": "AverageValue", "averageValue": "4"},
        "vllm_kv_cache_usage_perc": {"type": "AverageValue", "averageValue": "0.8"},
    }
    assert [one["type"] for one in spec["metrics"]] == ["Pods", "Pods", "Resource"]
    assert spec["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 300


def test_keda_asks_for_this_releases_queue_and_cache():
    spec = only(render("-f", case_file("keda")), "ScaledObject")["spec"]
    queries = {one["metadata"]["query"]: one["metadata"]["threshold"] for one in spec["triggers"] if one["type"] == "prometheus"}
    series = 'namespace="llm",pod=~"stories-quire-[a-z0-9]+-[a-z0-9]+"'
    assert queries == {f"sum(vllm:num_requests_waiting{{{series}}})": "4", f"sum(vllm:kv_cache_usage_perc{{{series}}})": "0.8"}
    assert (spec["minReplicaCount"], spec["pollingInterval"], spec["cooldownPeriod"]) == (0, 15, 360)
    assert spec["fallback"] == {"failureThreshold": 3, "replicas": 2}


@pytest.mark.parametrize(
    "values, limit",
    [
        ({}, {"maxUnavailable": 1}),
        ({"minAvailable": "50%"}, {"minAvailable": "50%"}),
        ({"minAvailable": 2}, {"minAvailable": 2}),
        ({"maxUnavailable": 0}, {"maxUnavailable": 0}),
        ({"maxUnavailable": "25%"}, {"maxUnavailable": "25%"}),
    ],
)
def test_one_pod_at_a_time_may_go_by_default(values, limit):
    objects = render(*set_at("pdb", values))
    spec = only(objects, "PodDisruptionBudget")["spec"]
    assert spec == {**limit, "unhealthyPodEvictionPolicy": "AlwaysAllow", "selector": only(objects, "Deployment")["spec"]["selector"]}


@pytest.mark.parametrize("kube, known", [("1.26", False), ("1.27", True)])
def test_pods_that_are_not_ready_may_go_where_kubernetes_knows_that(kube, known):
    assert ("unhealthyPodEvictionPolicy" in only(render(kube=kube), "PodDisruptionBudget")["spec"]) == known


def test_no_budget_where_none_is_wanted():
    assert not [one for one in render("-f", case_file("keda")) if one["kind"] == "PodDisruptionBudget"]
