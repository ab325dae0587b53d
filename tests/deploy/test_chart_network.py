"""What the chart lets reach the server, and how: Services, gateways, policies, scrapes, keys and TLS."""

import functools
import json
import os

import jsonschema
import pytest
import yaml

from deploy_tools import case_file, only, pod_of, render, run, helm, server_of, set_at, settings_of, template, CHART

pytestmark = pytest.mark.full

TLS = [*set_at("tls.existingSecret", "quire-tls"), *set_at("tests.image", "registry.example/openssl:3")]


def test_the_service_has_the_api_and_not_the_admin_port():
    service = only(render(), "Service")["spec"]
    assert service["type"] == "ClusterIP"
    assert service["ports"] == [{"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}]


@pytest.mark.parametrize("host, admin", [("0.0.0.0", "0.0.0.0"), ("::", "::"), ("127.0.0.1", "0.0.0.0"), ("::1", "::")])
def test_probes_reach_the_admin_port_of_a_server_that_only_a_proxy_in_its_pod_reaches(host, admin):
    settings = settings_of(render(*set_at("config.host", host)))
    assert (settings["host"], settings["admin-host"]) == (host, admin)


def test_a_headless_service_lists_every_pod_for_routers():
    objects = render("-f", case_file("gateway"))
    headless, plain = only(objects, "Service", "-headless")["spec"], only(objects, "Service", "quire")["spec"]
    assert headless["clusterIP"] == "None" and headless["selector"] == plain["selector"]
    assert headless["ports"] == [{"name": "http", "port": 8000, "targetPort": "http", "protocol": "TCP"}]


def test_an_inference_pool_names_its_pods_port_and_picker():
    objects = render("-f", case_file("gateway"))
    pool = only(objects, "InferencePool")
    assert pool["apiVersion"] == "inference.networking.k8s.io/v1"
    assert set(pool["spec"]) == {"selector", "targetPorts", "endpointPickerRef"}
    labels = only(objects, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert pool["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert pool["spec"]["targetPorts"] == [{"number": 8000}]
    assert pool["spec"]["endpointPickerRef"] == {"name": "quire-epp", "port": {"number": 9002}, "failureMode": "FailOpen"}
    (rule,) = only(objects, "HTTPRoute")["spec"]["rules"]
    assert rule["backendRefs"][0] == {"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": pool["metadata"]["name"]}
    assert rule["timeouts"] == {"request": "0s"}


PORT = {"type": "object", "required": ["number"], "additionalProperties": False,
        "properties": {"number": {"type": "integer", "minimum": 1, "maximum": 65535}}}
LABEL = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"
# What inference.networking.k8s.io/v1 says of an InferencePool's spec, written down from its reference. The definition itself comes in no
# package of npm, PyPI or Debian that this test could take it from, as it takes those of the other foreign kinds (kubernetes_models());
# with QUIRE_INFERENCE_POOL_CRD, the path of that file out of the project's manifests, the chart is held to it, too.
POOL_SPEC = {
    "type": "object",
    "required": ["selector", "targetPorts"],
    "additionalProperties": False,
    "properties": {
        "selector": {"type": "object", "required": ["matchLabels"], "additionalProperties": False, "properties": {
            "matchLabels": {"type": "object", "minProperties": 1, "maxProperties": 64,
                            "additionalProperties": {"type": "string", "maxLength": 63, "pattern": LABEL}}}},
        "targetPorts": {"type": "array", "minItems": 1, "maxItems": 8, "uniqueItems": True, "items": PORT},
        "appProtocol": {"enum": ["http", "kubernetes.io/h2c"]},
        "endpointPickerRef": {"type": "object", "required": ["name"], "additionalProperties": False, "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 253},
            "group": {"type": "string", "maxLength": 253},
            "kind": {"type": "string", "minLength": 1, "maxLength": 63},
            "port": PORT,
            "failureMode": {"enum": ["FailOpen", "FailClose"]}},
            "anyOf": [{"required": ["port"]}, {"required": ["kind"], "properties": {"kind": {"not": {"const": "Service"}}}}]},
    },
}


@pytest.mark.parametrize("values", [[], set_at("containerPort", 65535), set_at("inferencePool.endpointPicker", {"name": "e", "port": 1, "failureMode": "FailClose"}),
                                    set_at("inferencePool.endpointPicker.name", "e" * 253)])
def test_an_inference_pool_follows_its_reference(values):
    pool = only(render("-f", case_file("gateway"), *values), "InferencePool")
    assert set(pool) == {"apiVersion", "kind", "metadata", "spec"}
    jsonschema.Draft202012Validator(POOL_SPEC).validate(pool["spec"])


WRONG_POOLS = [  # members of v1alpha2 among them
    (["selector", "matchLabels"], {}), (["selector", "matchLabels", "a"], "-b"), (["targetPorts"], []), (["targetPorts", 0, "number"], 65536),
    (["targetPorts", 0, "name"], "http"), (["endpointPickerRef", "port"], None), (["endpointPickerRef", "failureMode"], "failOpen"),
    (["endpointPickerRef", "portNumber"], 9002), (["extensionRef"], {"name": "a"}), (["targetPortNumber"], 8000)]


def wrong_pool(path, value):
    """The chart's spec with the member at `path` of another value, or without it."""
    spec = only(render("-f", case_file("gateway")), "InferencePool")["spec"]
    *above, last = path
    at = functools.reduce(lambda inner, key: inner[key], above, spec)
    if value is None:
        del at[last]
    else:
        at[last] = value
    return spec


@pytest.mark.parametrize("path, value", WRONG_POOLS)
def test_the_check_of_pools_is_not_blind(path, value):
    assert not jsonschema.Draft202012Validator(POOL_SPEC).is_valid(wrong_pool(path, value))


def pool_definition():
    """A validator of the spec made of the definition itself, as strict as an API server: unknown members are refused."""
    path = os.environ.get("QUIRE_INFERENCE_POOL_CRD")
    if not path:
        pytest.skip("no definition of InferencePool: QUIRE_INFERENCE_POOL_CRD names its file")
    with open(path) as file:
        versions = yaml.safe_load(file)["spec"]["versions"]
    (spec,) = [version["schema"]["openAPIV3Schema"]["properties"]["spec"] for version in versions if version["name"] == "v1"]
    rules = []

    def close(node):
        if isinstance(node, dict):
            rules.extend(rule["rule"] for rule in node.get("x-kubernetes-validations", []))
            if "properties" in node:
                node.setdefault("additionalProperties", False)
        for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else []:
            close(inner)

    close(spec)
    # Rules that are no JSON schema, and are in POOL_SPEC. Others would be new to us.
    assert rules == ["self.kind != 'Service' || has(self.port)", "self.all(p1, self.exists_one(p2, p1.number==p2.number))"]
    return jsonschema.Draft202012Validator({"allOf": [spec, POOL_SPEC]}), jsonschema.Draft202012Validator(spec)


def test_an_inference_pool_follows_its_definition():
    both, alone = pool_definition()
    spec = only(render("-f", case_file("gateway")), "InferencePool")["spec"]
    both.validate(spec)
    refused = [path for path, value in WRONG_POOLS if not alone.is_valid(wrong_pool(path, value))]
    said_by_rules = (["endpointPickerRef", "port"],)
    assert refused == [path for path, _ in WRONG_POOLS if path not in said_by_rules]


def test_a_route_without_a_pool_goes_to_the_service():
    (rule,) = only(render("-f", case_file("edge")), "HTTPRoute")["spec"]["rules"]
    assert rule["backendRefs"] == [{"name": "tales", "port": 8080}] and rule["matches"] == [{"path": {"type": "PathPrefix", "value": "/v1"}}]


def test_streams_pass_the_ingress_and_only_the_api_is_let_in():
    ingress = only(render(*set_at("ingress.enabled", True), *set_at("ingress.hosts", ["a.example"])), "Ingress")
    notes = {name.split("/")[1]: value for name, value in ingress["metadata"]["annotations"].items()}
    assert notes["proxy-buffering"] == notes["proxy-request-buffering"] == "off" and notes["proxy-read-timeout"] == "3600"
    assert "backend-protocol" not in notes
    assert [path["path"] for path in ingress["spec"]["rules"][0]["http"]["paths"]] == ["/v1"]


def test_a_network_policy_blocks_egress_by_default():
    policy = only(render(*set_at("networkPolicy.enabled", True)), "NetworkPolicy")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"] and policy["egress"] == []
    assert policy["ingress"] == [{"from": [{"podSelector": {}}], "ports": [{"port": "http", "protocol": "TCP"}]}]
    scraper = [{"namespaceSelector": {}}]
    watched = only(render(*set_at("networkPolicy", {"enabled": True, "metricsFrom": scraper})), "NetworkPolicy")["spec"]
    assert watched["ingress"] == [{"from": scraper, "ports": [{"port": "admin", "protocol": "TCP"}]}, *policy["ingress"]]
    closed = only(render(*set_at("networkPolicy", {"enabled": True, "allowFrom": []})), "NetworkPolicy")["spec"]
    assert closed["ingress"] == []


@pytest.mark.parametrize("kind, endpoints, port", [("serviceMonitor", "endpoints", "targetPort"), ("podMonitor", "podMetricsEndpoints", "port")])
def test_monitors_scrape_the_admin_port_of_these_pods(kind, endpoints, port):
    objects = render(*set_at(kind, {"enabled": True, "interval": "5s", "scrapeTimeout": "4s", "labels": {"release": "p"}}))
    monitor = only(objects, kind[0].upper() + kind[1:])
    assert monitor["metadata"]["labels"]["release"] == "p"
    assert monitor["spec"]["selector"]["matchLabels"].items() <= only(objects, "Deployment")["spec"]["template"]["metadata"]["labels"].items()
    assert monitor["spec"][endpoints] == [{port: "admin", "path": "/metrics", "interval": "5s", "scrapeTimeout": "4s"}]


def test_a_service_monitor_finds_one_service_a_pod():
    """It selects Services: with two that are alike every pod would be scraped twice."""
    objects = render("-f", case_file("tls"))
    selector = only(objects, "ServiceMonitor")["spec"]["selector"]["matchLabels"]
    services = [one for one in objects if one["kind"] == "Service"]
    assert len(services) == 2
    assert [one["metadata"]["name"] for one in services if selector.items() <= one["metadata"]["labels"].items()] == ["stories-quire"]


def test_keys_come_from_a_secret_and_stand_in_no_other_object():
    objects = render("-f", case_file("keys"))
    assert settings_of(objects)["api-key-file"] == "/etc/quire-keys/keys"
    (mount,) = [one for one in server_of(objects)["volumeMounts"] if one["name"] == "keys"]
    assert mount == {"name": "keys", "mountPath": "/etc/quire-keys", "readOnly": True}
    (volume,) = [one for one in pod_of(objects)["volumes"] if one["name"] == "keys"]
    assert volume["secret"] == {"secretName": "quire-keys", "defaultMode": 0o440, "items": [{"key": "api-keys", "path": "keys"}]}
    (endpoint,) = only(objects, "ServiceMonitor")["spec"]["endpoints"]
    assert endpoint["authorization"] == {"type": "Bearer", "credentials": {"name": "quire-monitor", "key": "token"}}
    assert only(objects, "Pod")["spec"]["containers"][0]["env"] == [
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "quire-client", "key": "token"}}}]


def test_a_monitor_without_a_key_is_refused():
    auth = set_at("auth", {"existingSecret": "keys", "clientSecret": {"name": "client"}})
    for monitor in ("serviceMonitor", "podMonitor"):
        done = template(4, *auth, *set_at(f"{monitor}.enabled", True))
        assert done.returncode != 0 and "set auth.monitorSecret.name" in done.stderr


def test_certificate_and_key_come_from_a_secret_read_only():
    objects = render("-f", case_file("tls"))
    settings = settings_of(objects)
    assert (settings["tls-cert"], settings["tls-key"]) == ("/etc/quire-tls/tls.crt", "/etc/quire-tls/tls.key")
    assert {"name": "tls", "mountPath": "/etc/quire-tls", "readOnly": True} in server_of(objects)["volumeMounts"]
    (volume,) = [one for one in pod_of(objects)["volumes"] if one["name"] == "tls"]
    items = [{"key": "chain.pem", "path": "tls.crt"}, {"key": "tls.key", "path": "tls.key"}]
    assert volume["secret"] == {"secretName": "quire-tls", "defaultMode": 0o440, "items": items}


def test_under_tls_services_policies_and_the_ingress_say_https():
    objects = render("-f", case_file("tls"))
    port = {"name": "https", "targetPort": "https", "protocol": "TCP", "appProtocol": "https"}
    assert only(objects, "Service", "quire")["spec"]["ports"] == [{**port, "port": 443}]
    assert only(objects, "Service", "-headless")["spec"]["ports"] == [{**port, "port": 8000}]
    assert {one["name"] for one in server_of(objects)["ports"]} == {"https", "admin"}
    assert only(objects, "NetworkPolicy")["spec"]["ingress"][0]["ports"] == [{"port": "https", "protocol": "TCP"}]
    ingress = only(objects, "Ingress")
    assert ingress["metadata"]["annotations"]["nginx.ingress.kubernetes.io/backend-protocol"] == "HTTPS"
    assert ingress["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["port"] == {"name": "https"}
    assert only(objects, "HTTPRoute")["spec"]["rules"][0]["backendRefs"] == [{"name": "stories-quire", "port": 443}]


def test_an_annotation_of_ones_own_goes_before_the_charts():
    name = "nginx.ingress.kubernetes.io/backend-protocol"
    ingress = only(render("-f", case_file("tls"), *set_at("ingress.annotations", {name: "GRPCS"})), "Ingress")
    assert ingress["metadata"]["annotations"][name] == "GRPCS"


def test_probes_and_scrapes_stay_plain_on_the_admin_port():
    """Which has no TLS: neither says a scheme."""
    objects = render("-f", case_file("tls"))
    for probe in ("startup", "readiness", "liveness"):
        asked = server_of(objects)[f"{probe}Probe"]["httpGet"]
        assert asked["port"] == "admin" and "scheme" not in asked
    (endpoint,) = only(objects, "ServiceMonitor")["spec"]["endpoints"]
    assert endpoint["targetPort"] == "admin" and not {"scheme", "tlsConfig"} & set(endpoint)


def test_a_certificate_of_ones_own_volume_counts_as_tls():
    own = [*set_at("config.tls-cert", "/pki/a.pem"), *set_at("tests.image", "registry.example/openssl:3")]
    objects = render(*own)
    assert only(objects, "Service")["spec"]["ports"][0]["port"] == 443
    assert "tls" not in {one["name"] for one in pod_of(objects)["volumes"]} and len(pod_of(objects)["containers"]) == 1
    assert only(objects, "Pod")["spec"]["containers"][0]["command"][-2:] == ["443", "-"]


def test_the_hook_trusts_the_certificate_of_the_secret_and_never_sees_its_key():
    pod = only(render("-f", case_file("tls")), "Pod")["spec"]
    (container,) = pod["containers"]
    assert container["image"] == "registry.example/tools/openssl:3"
    assert container["command"][-4:] == ["ask_for_one_token.sh", "stories-quire", "443", "/etc/quire-tls/tls.crt"]
    assert container["volumeMounts"] == [{"name": "tls", "mountPath": "/etc/quire-tls", "readOnly": True}]
    assert pod["volumes"] == [
        {"name": "tls", "secret": {"secretName": "quire-tls", "defaultMode": 0o440, "items": [{"key": "chain.pem", "path": "tls.crt"}]}}]


@pytest.mark.parametrize("case, homes", [("keys", ["/etc/quire-keys"]), ("tls", ["/etc/quire-keys", "/etc/quire-tls"])])
def test_a_container_beside_the_server_watches_what_secrets_bring(case, homes):
    objects = render("-f", case_file(case))
    pod = pod_of(objects)
    server, watcher = pod["containers"]
    assert pod["shareProcessNamespace"] is True and watcher["name"] == "reload" and watcher["image"] == server["image"]
    assert watcher["command"][-len(homes):] == homes
    mounts = {one["mountPath"]: one for one in server["volumeMounts"]}
    assert watcher["volumeMounts"] == [mounts[home] for home in homes]


@pytest.mark.parametrize("values", [[], [*set_at("auth", {"existingSecret": "a", "clientSecret": {"name": "b"}}), *set_at("reload.enabled", False)]])
def test_without_secrets_or_without_wanting_it_the_server_is_alone(values):
    pod = pod_of(render(*values))
    assert len(pod["containers"]) == 1 and "shareProcessNamespace" not in pod


@pytest.mark.parametrize(
    "values, said",
    [
        (TLS[:2], "set tests.image to an image with bash and openssl"),
        ([*TLS, *set_at("config.tls-cert", "/a")], "take config.tls-cert and config.tls-key out"),
        ([*TLS, *set_at("config.tls-key", "/a")], "take config.tls-cert and config.tls-key out"),
        (set_at("extraArgs", ["--tls-cert=/a"]), "extraArgs has --tls-cert=/a"),
        (set_at("extraArgs", ["--ssl-certfile", "/a"]), "extraArgs has --ssl-certfile"),
        (set_at("reload.periodSeconds", 0), "periodSeconds"),
        (set_at("tls.cert", "a"), "cert"),
        (TLS, None),
        ([*TLS[:2], *set_at("tests.enabled", False)], None),
        (set_at("reload.periodSeconds", 1), None),
    ],
)
def test_tls_that_cannot_be_is_refused_by_name(values, said):
    done = template(4, *values)
    assert (done.returncode == 0) == (said is None), done.stderr
    assert said is None or said in done.stderr


def test_notes_have_a_request_for_tls():
    done = run(helm(4), "install", "stories", CHART, "--dry-run=client", "-n", "llm", "-f", case_file("tls"))
    assert "port-forward service/stories-quire 8000:443" in done.stdout and "curl --insecure https://127.0.0.1:8000" in done.stdout
    assert "BackendTLSPolicy" in done.stdout and '-H "Authorization: Bearer $KEY"' in done.stdout


def test_traces_are_let_out_to_their_receiver_and_to_dns():
    objects = render("-f", case_file("tracing"))
    assert settings_of(objects)["otlp-traces-endpoint"] == "http://otel-collector.observability:4318"
    assert {"name": "OTEL_TRACES_SAMPLER_ARG", "value": "0.1"} in server_of(objects)["env"]
    (traces, dns) = only(objects, "NetworkPolicy")["spec"]["egress"]
    assert traces["to"][0]["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": "opentelemetry-collector"}
    assert traces["ports"] == [{"port": 4318, "protocol": "TCP"}]
    assert dns == {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}


@pytest.mark.parametrize("url, port", [("http://c:4318", 4318), ("http://c:9/v1/traces", 9), ("http://c", 80), ("https://c/otlp", 443),
                                       ("http://[::1]:4319/v1/traces", 4319), ("http://[::1]", 80), (None, 4318)])
def test_traces_are_let_out_on_the_port_of_their_url(url, port):
    more = [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]
    policy = {"enabled": True, "tracesTo": [{"podSelector": {}}], "egress": more}
    objects = render(*set_at("networkPolicy", policy), *set_at("config", {"otlp-traces-endpoint": url} if url else {}))
    egress = only(objects, "NetworkPolicy")["spec"]["egress"]
    assert egress[0] == {"to": [{"podSelector": {}}], "ports": [{"port": port, "protocol": "TCP"}]}
    assert egress[2:] == more


def test_traces_that_no_rule_lets_out_are_refused():
    done = template(4, *set_at("networkPolicy.enabled", True), *set_at("config", {"otlp-traces-endpoint": "http://c:4318"}))
    assert done.returncode != 0 and "networkPolicy.tracesTo" in done.stderr


def test_each_pod_publishes_its_cache_under_its_own_address():
    objects = render("-f", case_file("kv-events"))
    address, config = server_of(objects)["env"]
    assert address == {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    assert config["name"] == "QUIRE_KV_EVENTS_CONFIG"
    assert json.loads(config["value"]) == {
        "enable_kv_cache_events": True, "publisher": "zmq", "endpoint": "tcp://*:5557", "replay_endpoint": "tcp://*:5558",
        "topic": "kv@$(POD_IP):8000@tales", "buffer_steps": 500, "format": "array"}
    ports = {one["name"]: one["containerPort"] for one in server_of(objects)["ports"]}
    assert ports == {"http": 8000, "admin": 8001, "kv-events": 5557, "kv-replays": 5558}
    services = {one["metadata"]["name"]: one for one in objects if one["kind"] == "Service"}
    told = {name: [port["name"] for port in one["spec"]["ports"]] for name, one in services.items()}
    assert sorted(told.values()) == [["http"], ["http", "kv-events", "kv-replays"]]
    rule = only(objects, "NetworkPolicy")["spec"]["ingress"][-1]
    assert [port["port"] for port in rule["ports"]] == ["kv-events", "kv-replays"]
    assert rule["from"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "gateways"}}}]
    for names, first in (("a,b", "a"), (["c"], "c"), (None, "stories")):
        given = [] if names is None else set_at("config.served-model-name", names)
        value = server_of(render(*set_at("kvEvents.enabled", True), *given))["env"][1]["value"]
        assert json.loads(value)["topic"].endswith("@" + first)
    assert "env" not in server_of(render())
