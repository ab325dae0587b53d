"""The program in an environment of its own: none of this machine's settings, no hub, and itself on the path."""

import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", ROOT / "build" / "release"))
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("QUIRE_")} | {
    "PATH": f"{BUILD}:{os.environ['PATH']}",
    "HF_HUB_OFFLINE": "1",
    "TERM": "dumb",
}
PATIENCE_S = 60


def run(*args, **more):
    return subprocess.run(args, capture_output=True, text=True, timeout=PATIENCE_S, env=ENVIRONMENT, **more)


def quire(*args):
    result = run("quire", *args)
    assert result.returncode == 0, result.stderr
    return result.stdout


def commands():
    page = quire("--help")
    return re.findall(r"^  ([a-z-]+)", page[page.index("Commands:") : page.index("Examples:")], re.MULTILINE)
