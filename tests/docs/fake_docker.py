"""`docker` as the pages use it: takes the arguments they give and no others, and runs this build's program in place of the image's."""

import argparse
import json
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import time

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOME = pathlib.Path(os.environ["FAKE_HOME"])  # containers/NAME.json, volumes/NAME, images
QUIRE = os.environ["FAKE_QUIRE"]
DOCKERFILE = (ROOT / "deploy" / "docker" / "cpu.Dockerfile").read_text()
COMMAND = json.loads(re.search(r"^CMD (\[.*\])$", DOCKERFILE, re.MULTILINE)[1])
VARIABLES = dict(re.findall(r"^ENV (\w+)=(\S+)$", DOCKERFILE, re.MULTILINE))


def fail(text):
    sys.exit(f"docker: {text}")


def images():
    return set((HOME / "images").read_text().split()) if (HOME / "images").exists() else set()


def built(tag, dockerfile, context):
    if not pathlib.Path(context, "CMakeLists.txt").exists() or not pathlib.Path(dockerfile).is_file():
        fail(f"{dockerfile} cannot be built in {context}")
    (HOME / "images").write_text(" ".join(images() | {tag}))


class Container:
    """A process with the container's environment, whose paths below mounts are those of the host."""

    def __init__(self, volumes, variables, command):
        cache = HOME / "volumes" / "unnamed"
        mounts = {VARIABLES["HF_HUB_CACHE"]: cache} | dict(self.mount(one) for one in volumes)
        cache.mkdir(parents=True, exist_ok=True)

        def outside(word):
            for inside, there in mounts.items():
                if word == inside or word.startswith(inside + "/"):
                    return str(there) + word[len(inside):]
            return word

        unknown = {name for name in variables if name.startswith("QUIRE_")} - settings()
        if unknown:
            fail(f"no settings: {unknown}")
        plain = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
        self.environment = plain | {"HOME": "/"} | {name: outside(value) for name, value in (VARIABLES | variables).items()}
        self.command = [QUIRE, *map(outside, command)]

    def mount(self, text):
        source, inside, *mode = text.split(":")
        if mode not in ([], ["ro"]):
            fail(f"mount {text}")
        there = pathlib.Path(source)
        if "/" not in source:
            there = HOME / "volumes" / source
            there.mkdir(parents=True, exist_ok=True)
        elif not there.is_absolute() or not there.exists():
            fail(f"there is no {source} to mount")
        return inside, there

    def run(self):
        return subprocess.run(self.command, env=self.environment).returncode

    def start(self, name, port):
        record = HOME / "containers" / f"{name}.json"
        if record.exists():
            fail(f"the name {name} is in use")
        if self.command[1] != "serve" or "0.0.0.0" not in self.command:
            fail("it would listen to nobody outside the container")
        words = ["127.0.0.1" if word == "0.0.0.0" else word for word in self.command] + ["--port", str(port)]
        if "QUIRE_KV_CACHE_MEMORY" not in self.environment:
            words += ["--kv-cache-memory", "64MiB"]
        record.parent.mkdir(exist_ok=True)
        with record.with_suffix(".log").open("w") as log:
            process = subprocess.Popen(words, env=self.environment, stdout=log, stderr=log, start_new_session=True)
        record.write_text(json.dumps({"pid": process.pid, "port": port}))
        end = time.monotonic() + 60
        while not listens(port):
            if process.poll() is not None or time.monotonic() > end:
                fail(record.with_suffix(".log").read_text())
            time.sleep(0.05)


def settings():
    return set(re.findall(r"`(QUIRE_\w+)`", (ROOT / "docs" / "flags.md").read_text()))


def listens(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def running(name):
    record = HOME / "containers" / f"{name}.json"
    if not record.exists():
        fail(f"no container {name}")
    return record, json.loads(record.read_text())


def ended(pid):
    """It is gone, or nobody has waited for it yet."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].startswith("Z")
    except FileNotFoundError:
        return True


def end(name, way, seconds):
    record, one = running(name)
    if not ended(one["pid"]):
        os.kill(one["pid"], way)
    until = time.monotonic() + seconds
    while not ended(one["pid"]):
        if time.monotonic() > until:
            fail(f"{name} does not end")
        time.sleep(0.05)
    return record


def run(args):
    if args.image not in images():
        fail(f"no image {args.image}")
    variables = {}
    for one in args.env or []:
        name, is_given, value = one.partition("=")
        variables[name] = value if is_given else os.environ.get(name, "")
    container = Container(args.volume or [], variables, args.command or COMMAND)
    if not args.detach:
        return container.run()
    (published,) = args.publish
    host, port, inside = published.split(":")
    if (host, inside) != ("127.0.0.1", variables.get("QUIRE_PORT", "8000")):
        fail(f"-p {published}")
    return container.start(args.name, int(port))


def merged(below, above):
    if isinstance(below, dict) and isinstance(above, dict):
        return {key: merged(below.get(key), above.get(key)) if key in below and key in above else below.get(key, above.get(key))
                for key in below | above}
    if isinstance(below, list) and isinstance(above, list):  # volumes, by their place in the container
        return list({one.split(":")[1]: one for one in below + above}.values())
    return above


def project(files):
    """The services as Compose sees them."""
    whole = {}
    for path in files:
        text = re.sub(r"\$\{(\w+)(?::-([^}]*))?\}", lambda match: os.environ.get(match[1]) or match[2] or "", pathlib.Path(path).read_text())
        whole = merged(whole, yaml.safe_load(text)) if whole else yaml.safe_load(text)
    base = pathlib.Path(files[0]).resolve().parent
    for name, service in whole["services"].items():
        places = []
        for volume in service.get("volumes", []):
            source, rest = volume.split(":", 1)
            if source.startswith("."):
                source = str((base / source).resolve())
            elif "/" not in source and source not in whole["volumes"]:
                fail(f"{name}: no volume {source}")
            if "/" in source and not pathlib.Path(source).exists():
                fail(f"{name}: there is no {source}")
            places.append(f"{source}:{rest}")
        service["volumes"] = places
    return whole["services"]


def up(services):
    fetcher, server = (Container(one["volumes"], {key: value for key, value in one["environment"].items() if value}, one["command"])
                       for one in (services["model"], services["quire"]))
    if fetcher.run() != 0:
        fail("the model cannot be fetched")
    server.start("quire-quire-1", int(os.environ["FAKE_PORT"]))
    (config,) = [one.split(":")[0] for one in services["prometheus"]["volumes"] if ":/etc/prometheus/prometheus.yml" in one]
    (job,) = yaml.safe_load(pathlib.Path(config).read_text())["scrape_configs"]
    has_keys = "QUIRE_API_KEY_FILE" in services["quire"]["environment"]
    key_file = job.get("authorization", {}).get("credentials_file")
    if has_keys and key_file not in [f"/keys/{path.name}" for one in services["prometheus"]["volumes"] if ":/keys:" in one
                                     for path in pathlib.Path(one.split(":")[0]).iterdir()]:
        fail("Prometheus has no key")


def compose(args):
    services = project(args.file)
    if args.action == "up":
        return up(services)
    if args.action == "down":
        end("quire-quire-1", signal.SIGTERM, 60).unlink()
    elif args.action == "ps":
        print("\n".join(services))
    elif args.action == "logs":
        assert args.service in services
        print(running("quire-quire-1")[0].with_suffix(".log").read_text())
    return 0


def parser():
    top = argparse.ArgumentParser(prog="docker", allow_abbrev=False)
    commands = top.add_subparsers(dest="what", required=True)
    one = commands.add_parser("build")
    one.add_argument("-f", required=True)
    one.add_argument("-t", required=True)
    one.add_argument("context")
    one = commands.add_parser("run", allow_abbrev=False)
    one.add_argument("-d", "--detach", action="store_true")
    one.add_argument("--rm", action="store_true")
    for name in ("--name", "--user", "--memory", "--cpus"):
        one.add_argument(name)
    one.add_argument("-p", "--publish", action="append")
    one.add_argument("-v", "--volume", action="append")
    one.add_argument("-e", "--env", action="append")
    one.add_argument("image")
    one.add_argument("command", nargs=argparse.REMAINDER)
    for name, options in (("stop", ["-t"]), ("kill", ["--signal"]), ("logs", []), ("inspect", ["--format"])):
        one = commands.add_parser(name, allow_abbrev=False)
        for option in options:
            one.add_argument(option, required=True)
        one.add_argument("name")
    one = commands.add_parser("rm")
    one.add_argument("--force", action="store_true")
    one.add_argument("name")
    one = commands.add_parser("compose", allow_abbrev=False)
    one.add_argument("-f", "--file", action="append", required=True)
    one.add_argument("action", choices=["up", "down", "ps", "logs"])
    one.add_argument("-d", "--detach", action="store_true")
    one.add_argument("--build", action="store_true")
    one.add_argument("--volumes", action="store_true")
    one.add_argument("service", nargs="?")
    return top


def main():
    args = parser().parse_args()
    if args.what == "build":
        built(args.t, args.f, args.context)
    elif args.what == "run":
        return run(args)
    elif args.what == "stop":
        end(args.name, signal.SIGTERM, float(args.t))
    elif args.what == "kill":
        os.kill(running(args.name)[1]["pid"], signal.Signals[f"SIG{args.signal}"])
    elif args.what == "rm":
        end(args.name, signal.SIGKILL if args.force else 0, 10).unlink()
    elif args.what == "logs":
        print(running(args.name)[0].with_suffix(".log").read_text())
    elif args.what == "inspect":
        assert args.format == "{{.State.Health.Status}}", args.format
        check = subprocess.run([ROOT / "deploy" / "docker" / "healthcheck.sh"], env=os.environ | {"QUIRE_PORT": str(running(args.name)[1]["port"])},
                               capture_output=True)
        print("healthy" if check.returncode == 0 else "starting")
    else:
        return compose(args)
    return 0


if __name__ == "__main__":
    with (HOME / "said").open("a") as said:
        said.write(shlex.join(["docker", *sys.argv[1:]]) + "\n")
    sys.exit(main())
