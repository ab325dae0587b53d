"""`kubectl` and `helm` as the pages use them, without a cluster: Helm renders the chart, and what a command names has to be there."""

import argparse
import json
import os
import pathlib
import subprocess
import sys

import yaml

HOME = pathlib.Path(os.environ["FAKE_HOME"])
STATE = HOME / "cluster.json"  # {"made": objects of kubectl, "releases": {name: objects of the chart}}
KINDS = {"deployment": "Deployment", "service": "Service", "servicemonitor": "ServiceMonitor", "prometheusrule": "PrometheusRule",
         "scaledobject": "ScaledObject"}


def fail(text):
    sys.exit(f"{pathlib.Path(sys.argv[1]).name}: {text}")


def load():
    return json.loads(STATE.read_text()) if STATE.exists() else {"made": [], "releases": {}}


def objects(state):
    return [one for release in state["releases"].values() for one in release]


def find(state, name):
    kind, _, own = name.partition("/")
    for one in objects(state):
        if one["kind"] == KINDS[kind] and one["metadata"]["name"] == own:
            return one
    return fail(f"there is no {name}")


def pods_of(state, selector):
    key, _, value = selector.partition("=")
    found = [one for one in objects(state) if one["kind"] == "Deployment" and one["spec"]["template"]["metadata"]["labels"].get(key) == value]
    return found or fail(f"no pods have {selector}")


def ports_of(one):
    if one["kind"] == "Service":
        return [port["port"] for port in one["spec"]["ports"]]
    return [port["containerPort"] for container in one["spec"]["template"]["spec"]["containers"] for port in container.get("ports", [])]


def secret(args, state):
    data = [one.partition("=")[0] for one in args.from_literal or []]
    for one in args.from_file or []:
        key, has_key, path = one.partition("=")
        path = pathlib.Path(path if has_key else key)
        if not path.read_text().strip():
            fail(f"{path} is empty")
        data.append(key if has_key else path.name)
    state["made"].append({"kind": "Secret", "metadata": {"name": args.name}, "data": data})


def apply(path, state):
    import kubernetes_validate

    for one in yaml.safe_load_all(pathlib.Path(path).read_text()):
        kubernetes_validate.validate(one, "1.34", strict=True)
        state["made"].append(one)


def forward(args, state):
    """A server behind the port, for what the page asks of it."""
    local, remote = (int(port) for port in args.ports.split(":"))
    if remote not in ports_of(find(state, args.name)):
        fail(f"{args.name} has no port {remote}")
    if local == int(os.environ["FAKE_ADMIN_PORT"]):
        server = subprocess.Popen([os.environ["FAKE_QUIRE"], "serve", "--port", "0", "--admin-port", str(local), "--kv-cache-memory", "64MiB"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        (HOME / "forward.pid").write_text(str(server.pid))


def kubectl(words):
    top = argparse.ArgumentParser(prog="kubectl", allow_abbrev=False)
    top.add_argument("--namespace")
    verbs = top.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("create", allow_abbrev=False)
    one.add_argument("what", choices=["namespace", "secret"])
    one.add_argument("words", nargs="+")
    one.add_argument("--from-literal", action="append")
    one.add_argument("--from-file", action="append")
    one = verbs.add_parser("apply")
    one.add_argument("-f", required=True)
    one = verbs.add_parser("rollout")
    one.add_argument("what", choices=["status"])
    one.add_argument("name")
    for verb in ("get", "describe"):
        one = verbs.add_parser(verb)
        one.add_argument("kinds")
        one.add_argument("-l")
    one = verbs.add_parser("logs", allow_abbrev=False)
    one.add_argument("name")
    one.add_argument("--container", required=True)
    one.add_argument("--previous", action="store_true")
    one = verbs.add_parser("port-forward")
    one.add_argument("name")
    one.add_argument("ports")
    args, state = top.parse_args(words), load()
    if args.verb != "create" and args.namespace != "llm":
        fail("another namespace")
    if args.verb == "create" and args.what == "secret":
        kind, args.name = args.words
        assert kind == "generic"
        secret(args, state)
    elif args.verb == "apply":
        apply(args.f, state)
    elif args.verb == "rollout":
        find(state, args.name)
    elif args.verb == "logs":
        pod = find(state, args.name)["spec"]["template"]["spec"]
        if args.container not in [one["name"] for one in pod["containers"]]:
            fail(f"no container {args.container}")
    elif args.verb == "port-forward":
        forward(args, state)
    elif args.verb in ("get", "describe") and args.l:
        pods_of(state, args.l)
    elif args.verb == "get":
        for kind in args.kinds.split(","):
            if not any(one["kind"] == KINDS[kind] for one in objects(state)):
                fail(f"there is no {kind}")
    STATE.write_text(json.dumps(state))
    print("done")


def references(node):
    """(kind, name, key or None) of all Secrets and claims that an object uses."""
    if isinstance(node, dict):
        if "secretName" in node:
            yield from (("Secret", node["secretName"], item["key"]) for item in node.get("items", [{"key": None}]))
        if "claimName" in node:
            yield "PersistentVolumeClaim", node["claimName"], None
        for holder in ("secretKeyRef", "credentials"):
            if holder in node:
                yield "Secret", node[holder]["name"], node[holder]["key"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def helm(words):
    verb, name, state = words[0], words[1], load()
    is_there = name in state["releases"]
    if is_there == (verb == "install"):
        fail(f"{verb}: the release {name} {'exists' if is_there else 'does not exist'}")
    if words[words.index("--namespace") + 1] != "llm":
        fail("another namespace")
    if verb in ("install", "upgrade"):
        done = subprocess.run([os.environ["FAKE_HELM"], "template", *words[1:], "--kube-version", "1.35"], capture_output=True, text=True)
        if done.returncode != 0:
            fail(done.stderr)
        rendered = [one for one in yaml.safe_load_all(done.stdout) if one]
        for kind, wanted, key in references(rendered):
            found = [one for one in state["made"] if one["kind"] == kind and one["metadata"]["name"] == wanted]
            if not found or (key is not None and key not in found[0].get("data", [])):
                fail(f"{kind} {wanted} with {key} was not made")
        state["releases"][name] = rendered
    elif verb == "uninstall":
        del state["releases"][name]
    elif verb not in ("test", "history", "rollback"):
        fail(f"unknown: {verb}")
    STATE.write_text(json.dumps(state))
    print("done")


if __name__ == "__main__":
    {"kubectl": kubectl, "helm": helm}[pathlib.Path(sys.argv[1]).name](sys.argv[2:])
