"""Where the chart brings models and draft models from: each source gives a volume, read-only to the server, and its path in the settings."""

import json

import pytest

from deploy_tools import case_file, pod_of, render, server_of, set_at, settings_of, template

pytestmark = pytest.mark.full

HOMES = {"model": "/models", "draft": "/draft"}
CASES = [
    ("cpu", "model", "/org/llama-3.2-1b", {"persistentVolumeClaim": {"claimName": "models", "readOnly": True}}),
    ("cpu", "draft", "/org/llama-3.2-1b-eagle3", {"persistentVolumeClaim": {"claimName": "models", "readOnly": True}}),
    ("image-volume", "model", "/model", {"image": {"reference": "registry.example/models/qwen3-0.6b:1", "pullPolicy": "IfNotPresent"}}),
    ("image-volume", "draft", "", {"image": {"reference": "registry.example/models/qwen3-0.6b-draft:1", "pullPolicy": "Always"}}),
    ("init-container", "model", "", {"persistentVolumeClaim": {"claimName": "fetched"}}),
    ("init-container", "draft", "/heads", {"emptyDir": {"sizeLimit": "2Gi"}}),
    ("gpu", "model", "", {"hostPath": {"path": "/var/lib/models/qwen3-0.6b", "type": "Directory"}}),
    ("gpu", "draft", None, {"hostPath": {"path": "/var/lib/models/drafts", "type": "Directory"}}),
]


def speculation_of(objects):
    return json.loads(settings_of(objects)["speculative-config"])


@pytest.mark.parametrize("case, name, below, volume", CASES)
def test_weights_are_mounted_read_only_from_their_source(case, name, below, volume):
    objects = render("-f", case_file(case))
    (found,) = [one for one in pod_of(objects)["volumes"] if one["name"] == name]
    assert found == {"name": name, **volume}
    assert {"name": name, "mountPath": HOMES[name], "readOnly": True} in server_of(objects)["volumeMounts"]
    if below is not None:
        path = settings_of(objects)["model"] if name == "model" else speculation_of(objects)["model"]
        assert path == HOMES[name] + below


def test_the_embedded_model_needs_no_volume():
    objects = render()
    assert not {"model", "speculative-config"} & set(settings_of(objects))
    assert {volume["name"] for volume in pod_of(objects)["volumes"]} == {"config", "tmp", "shm"}


def test_containers_that_fetch_write_where_the_server_reads():
    pod = pod_of(render("-f", case_file("init-container")))
    fetchers = {one["name"]: one for one in pod["initContainers"]}
    assert list(fetchers) == ["model", "draft"]
    for name, home in HOMES.items():
        assert fetchers[name]["volumeMounts"] == [{"name": name, "mountPath": home}, {"name": "tmp", "mountPath": "/tmp"}]
        assert fetchers[name]["args"][-1] == home
    assert fetchers["model"]["command"] == ["fetch"] and fetchers["model"]["envFrom"] == [{"secretRef": {"name": "bucket"}}]


def test_models_of_a_hub_are_pulled_with_the_token_before_the_server_reads_them_offline():
    objects = render("-f", case_file("hub"))
    pod, server, settings = pod_of(objects), server_of(objects), settings_of(objects)
    names = {"model": "meta-llama/Llama-3.1-8B-Instruct", "draft": "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B@main"}
    fetchers = {one["name"]: one for one in pod["initContainers"]}
    assert list(fetchers) == ["model", "draft"]
    for name, fetcher in fetchers.items():
        assert fetcher["image"] == server["image"]
        assert fetcher["args"] == ["pull", names[name], "--download-dir", "/var/cache/huggingface"]
        assert {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hugging-face", "key": "token"}}} in fetcher["env"]
        assert {"name": "HF_ENDPOINT", "value": "https://mirror.example"} in fetcher["env"]
        assert {"name": "hub", "mountPath": "/var/cache/huggingface"} in fetcher["volumeMounts"]
    assert settings["model"] == names["model"] and settings["download-dir"] == "/var/cache/huggingface"
    assert speculation_of(objects)["model"] == names["draft"]
    assert {"name": "hub", "mountPath": "/var/cache/huggingface", "readOnly": True} in server["volumeMounts"]
    assert server["env"] == [{"name": "HF_HUB_OFFLINE", "value": "1"}]
    (volume,) = [one for one in pod["volumes"] if one["name"] == "hub"]
    assert volume == {"name": "hub", "persistentVolumeClaim": {"claimName": "models"}}
    assert not {"model", "draft"} & {one["name"] for one in pod["volumes"]}


def test_other_keys_of_speculation_stay():
    said = speculation_of(render("-f", case_file("cpu")))
    assert said == {"method": "eagle3", "num_speculative_tokens": 6, "model": "/draft/org/llama-3.2-1b-eagle3"}


def test_several_drafts_in_one_volume_are_named_in_the_setting():
    said = speculation_of(render("-f", case_file("gpu")))
    assert said == {"method": "specinfer", "model": ["/draft/qwen3-a", "/draft/qwen3-b"]}


def test_speculation_without_a_draft_model_is_passed_as_it_is():
    text = '{"method": "ngram",  "num_speculative_tokens": 3}'
    assert settings_of(render(*set_at("config.speculative-config", text)))["speculative-config"] == text


@pytest.mark.parametrize(
    "draft, speculation, said",
    [
        ({"source": "embedded"}, "{}", "/draftModel/source"),
        ({"source": "pvc"}, '{"method": "eagle"}', "draftModel.source is pvc: set draftModel.pvc.claimName"),
        ({"source": "image"}, '{"method": "eagle"}', "draftModel.source is image: set draftModel.image.reference"),
        ({"source": "initContainer"}, '{"method": "eagle"}', "set draftModel.initContainer.image"),
        ({"source": "hostPath"}, '{"method": "eagle"}', "set draftModel.hostPath.path"),
        ({"source": "hub"}, '{"method": "eagle"}', "set draftModel.hub.name"),
        ({"source": "hub", "hub": {"name": "no name"}}, '{"method": "eagle"}', "name"),
        ({"source": "hub", "hub": {"name": "a/b"}, "subPath": "c"}, '{"method": "eagle"}', "a model of a hub has no subPath"),
        ({"subPath": "a"}, '{"method": "eagle"}', "draftModel.subPath is set and draftModel.source is none"),
        ({"source": "pvc", "pvc": {"claimName": "a"}, "subPath": "../a"}, '{"method": "eagle"}', "subPath"),
        ({"source": "pvc", "pvc": {"claimName": "a"}}, "", "set config.speculative-config to a method that uses it"),
        ({"source": "pvc", "pvc": {"claimName": "a"}}, "eagle", "set config.speculative-config to a method that uses it"),
        ({"source": "pvc", "pvc": {"claimName": "a"}}, '{"model": "/draft"}', "set config.speculative-config to a method that uses it"),
    ],
)
def test_a_draft_model_that_cannot_be_is_refused_by_name(draft, speculation, said):
    done = template(4, *set_at("draftModel", draft), *set_at("config.speculative-config", speculation))
    assert done.returncode != 0
    assert said in done.stderr or said.strip("/").replace("/", ".") in done.stderr, done.stderr


def test_images_as_volumes_want_kubernetes_1_31_for_drafts_too():
    draft = set_at("draftModel", {"source": "image", "image": {"reference": "a/b:1"}}) + set_at("config.speculative-config", '{"method": "eagle"}')
    assert template(4, *draft, kube="1.31").returncode == 0
    done = template(4, *draft, kube="1.30")
    assert done.returncode != 0 and "draftModel.source is image: image volumes need Kubernetes 1.31" in done.stderr
