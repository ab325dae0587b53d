"""Images built by buildah from a base made by debootstrap, and containers run by runc: without Docker, a registry, or the machine's own storage."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import time

import pytest

from deploy_tools import TOOLS, fetch, need, run

PATIENCE_S = 120


def shell(*command, timeout=900, **options):
    """Standard output of what has to succeed."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=timeout, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout.strip()


def debian():
    """A tar of Debian 12 without anything beside apt, from where this machine has its packages; made once."""
    if os.geteuid() != 0:
        pytest.skip("debootstrap and mounts need root")
    need("debootstrap")
    targets = run("apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(SITE)", "Created-By: Packages").stdout
    mirrors = re.findall(r"^bookworm main (\S+)$", targets, re.MULTILINE)
    if not mirrors:
        pytest.skip("apt knows no Debian 12 to make a base image of")

    def make(part):
        more = ["--include=ca-certificates"] if mirrors[0].startswith("https") else []  # brings OpenSSL, which counts as above the base
        made = run("debootstrap", "--variant=minbase", *more, "bookworm", part / "root", mirrors[0])
        if made.returncode != 0:
            pytest.skip(f"debootstrap cannot make a Debian 12: {made.stdout[-300:]}{made.stderr[-300:]}")
        for path in ("var/cache/apt/archives", "var/lib/apt/lists"):
            shutil.rmtree(part / "root" / path)
        shell("tar", "-C", part / "root", "-cf", part / "debian.tar", ".")
        shutil.rmtree(part / "root")

    return fetch(TOOLS / "debian-12", make) / "debian.tar"


def compiler_cache():
    """ccache's directory: this machine's, or one that the tests of this checkout share, so that a program is compiled once."""
    if shutil.which("ccache"):
        return pathlib.Path(run("ccache", "--get-config", "cache_dir").stdout.strip())
    (TOOLS / "ccache").mkdir(parents=True, exist_ok=True)
    return TOOLS / "ccache"


# In a Debian tree: ccache, with what it has of this machine; it loses nothing there.
INSTALL_CCACHE = ("apt-get -q update && apt-get -qy install --no-install-recommends ccache "
                  "&& printf 'cache_dir = /var/cache/ccache\\nmax_size = 0\\n' >/etc/ccache.conf")


class Buildah:
    """buildah with a storage of its own below `home`."""

    def __init__(self, home):
        need("buildah")
        self.home = home
        for driver in ("overlay", "vfs"):
            self.words = ["buildah", "--root", home / "root", "--runroot", home / "run", "--storage-driver", driver]
            if run(*self.words, "info").returncode == 0:
                return
            shutil.rmtree(home / "root", ignore_errors=True)
        pytest.skip("buildah finds no way to store images here")

    def __call__(self, *words, **options):
        return shell(*self.words, *words, **options)

    def image_of(self, tar, name):
        """An image of the files in `tar`."""
        container = self("from", "scratch")
        self("add", "--quiet", container, tar, "/")
        self("config", "--cmd", "/bin/bash", container)
        self("commit", "--quiet", "--rm", container, name)

    def add_to(self, base, name, *command):
        """An image of `base` in which `command` has run, with this machine's language: compiler caches go by it."""
        container = self("from", base)
        self("run", "--isolation", "chroot", container, "--", *command)
        for variable in ("LANG", "LC_ALL", "LC_CTYPE", "LC_MESSAGES"):
            if variable in os.environ:
                self("config", "--env", f"{variable}={os.environ[variable]}", container)
        self("commit", "--quiet", "--rm", container, name)

    def files_of(self, image):
        """A directory with the image's files."""
        return pathlib.Path(self("mount", self("from", image)))

    def settings_of(self, image):
        return json.loads(self("inspect", "--type", "image", image))["OCIv1"]["config"]

    def close(self):
        for words in (["rm", "--all"], ["rmi", "--all", "--force"]):
            run(*self.words, *words)
        shutil.rmtree(self.home, ignore_errors=True)


def bytes_of(directory):
    """Bytes of all files below it, those with several names once."""
    sizes = {}
    for home, _, names in os.walk(directory):
        for name in names:
            status = os.lstat(os.path.join(home, name))
            sizes[status.st_ino] = status.st_size
    return sum(sizes.values())


class Container:
    """What runc runs of an image as Kubernetes would: its own user, entry point and command, no capabilities, a read-only root."""

    def __init__(self, home, files, settings):
        need("runc")
        user, group = (int(part) for part in settings["User"].split(":"))
        tmpfs = ["nosuid", "nodev", "mode=1777", "size=65536k"]
        bundle = {
            "ociVersion": "1.0.0",
            "process": {
                "user": {"uid": user, "gid": group},
                "args": settings["Entrypoint"] + settings["Cmd"],
                "env": settings.get("Env") or ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
                "cwd": settings.get("WorkingDir") or "/",
                "noNewPrivileges": True,
                "capabilities": {},
            },
            "root": {"path": str(files), "readonly": True},
            "mounts": [
                {"destination": "/proc", "type": "proc", "source": "proc"},
                {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=64k"]},
                {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": tmpfs},
                {"destination": "/tmp", "type": "tmpfs", "source": "tmp", "options": tmpfs},
            ],
            "linux": {"namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")]},
        }
        home.mkdir()
        (home / "config.json").write_text(json.dumps(bundle))
        self.words = ["runc", "--root", home / "state"]
        self.name = f"quire-{os.getpid()}"
        self.log = (home / "log").open("w+")
        self.process = subprocess.Popen([*self.words, "run", "--bundle", home, self.name], stdout=self.log, stderr=self.log)

    def text(self):
        self.log.seek(0)
        return self.log.read()

    def wait_for(self, said):
        end = time.monotonic() + PATIENCE_S
        while said not in self.text():
            assert self.process.poll() is None and time.monotonic() < end, self.text()
            time.sleep(0.02)

    def exec(self, *command):
        return run(*self.words, "exec", self.name, *command)

    def pid(self):
        return json.loads(shell(*self.words, "state", self.name))["pid"]

    def inside(self, *command):
        """A command of this machine in the container's network, where nobody else is."""
        return ["nsenter", "-t", str(self.pid()), "--net", *command]

    def terminate(self):
        shell(*self.words, "kill", self.name, "TERM")

    def close(self):
        run(*self.words, "delete", "--force", self.name)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(PATIENCE_S)
        self.log.close()
