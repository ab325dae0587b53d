"""One environment a client, made once below build/matrix: a venv or a folder of npm's, with the versions that clients.py pins."""

import shutil
import subprocess
import sys

import clients
from clients import PLACE
from file_lock import file_lock

LIMIT_S = 1800


class CannotInstall(Exception):
    """Its packages cannot be had here; the text says why."""


def made(client):
    """The folder of the client's environment, made if need be."""
    folder = PLACE / client.name
    stamp, wanted = folder / "installed.txt", "\n".join(pins(client)) + "\n"
    with file_lock(PLACE / f"{client.name}.lock"):
        if not stamp.exists() or stamp.read_text() != wanted:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            make = make_venv if client.kind == clients.ALONE else make_npm_folder
            make(folder, pins(client))
            stamp.write_text(wanted)
    return folder


def pins(client):
    joint = "==" if client.kind == clients.ALONE else "@"
    return [f"{package}{joint}{version}" for package, version in client.packages.items()]


def make_venv(folder, wanted):
    run([sys.executable, "-m", "venv", folder])
    run([folder / "bin" / "pip", "install", "-q", *wanted])


def make_npm_folder(folder, wanted):
    if shutil.which("npm") is None:
        raise CannotInstall("npm is not installed")
    run(["npm", "install", "--loglevel=error", "--no-audit", "--no-fund", "--prefix", folder, *wanted])


def run(command):
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        raise CannotInstall(f"its installation took longer than {LIMIT_S} s") from None
    if done.returncode != 0:
        said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip() and "complete log" not in line]
        raise CannotInstall(f"its installation failed: {said[-1].strip()[:200] if said else 'no word of why'}")


if __name__ == "__main__":  # python environments.py NAME...: makes them, all without a name
    for one in clients.CLIENTS:
        if one.name in sys.argv[1:] or not sys.argv[1:]:
            try:
                print(one.name, made(one), flush=True)
            except CannotInstall as error:
                print(one.name, error, flush=True)
