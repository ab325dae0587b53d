"""What a change touches: from the names of its files to layers, test binaries, Python tests and slow stages."""

import pathlib
import re
import subprocess

SOURCES = (".cc", ".h", ".cu", ".cuh", ".inc")
# Slow stages that run whenever one of these has changed; tidy reads the changed sources themselves.
AREAS = {
    "clients": r"(api/|tests/wire/)",
    "fuzz": r"(api/|core/(chat|grammar|model|text)/|tests/fuzz/)",
    "kernels": r"(gpu/(?!simulated/)|tests/gpu/.*\.py$)",
    "heavy": r"(deploy/docker/|helm/|loadtest/|tests/(deploy|loadtest)/)",
}
# Of a change to the server: small files of tests that ask it most things once.
SMOKE = ("tests/wire/test_requests.py", "tests/wire/test_completions.py")
PAUSE_S = 6 * 3600  # commits of one change lie closer together


def git(root, *words):
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True).stdout


def start_of_change(root):
    """The newest commit that is six hours older than HEAD; the first commit where there is none."""
    newest = git(root, "log", "-1", "--format=%ct").strip()
    if not newest:
        return ""
    before = git(root, "rev-list", "-1", f"--before={int(newest) - PAUSE_S}", "HEAD").strip()
    return before or git(root, "rev-list", "--max-parents=0", "HEAD").split()[-1]


def changed_files(root, since):
    """Paths that differ from the commit `since`, untracked ones included; without it from HEAD, or where nothing does, its parent."""
    untracked = git(root, "ls-files", "--others", "--exclude-standard").splitlines()
    if not since:
        since = "HEAD" if untracked or git(root, "diff", "--name-only", "HEAD").strip() else "HEAD~1"
    return sorted({*git(root, "diff", "--name-only", since).splitlines(), *untracked})


def read_layers(text):
    """layers.txt: layer → the layers that it may include."""
    lines = [line.split(":") for line in text.splitlines() if line and not line.startswith("#")]
    layers = {layer.strip(): allowed.split() for layer, allowed in lines}
    below = lambda word: [layer for layer in layers if layer.startswith(word[:-1])] if word.endswith("/*") else [word]
    return {layer: [one for word in allowed for one in below(word)] for layer, allowed in layers.items()}


def layer_of(path, layers):
    path = path.removeprefix("tests/")
    return next((layer for layer in sorted(layers, key=len, reverse=True) if path.startswith(layer + "/")), None)


def binary_of(layer):
    """The GoogleTest binary of a layer: one for each layer of core, one for each other directory at the top."""
    parts = layer.split("/")
    return "_".join(parts[:2] if parts[0] == "core" else parts[:1]) + "_test"


def binaries_of(files, layers):
    """Test binaries of the layers that changed, then of those that may include them, the nearest first."""
    near = [layer for path in files if path.endswith(SOURCES) and (layer := layer_of(path, layers))]
    order = list(dict.fromkeys(near))
    for layer in order:  # grows while it is read: breadth first
        order += [above for above, allowed in layers.items() if layer in allowed and above not in order]
    names = [binary_of(layer) for layer in order]
    if any(path.startswith("tests/sim/") for path in files):
        names.insert(0, "sim_test")
    return list(dict.fromkeys(names))


def python_tests_of(files, root):
    """Python tests that changed, that are named after what changed, or that stand beside changed support; smoke tests of the server."""
    all_tests = [str(path.relative_to(root)) for path in sorted((root / "tests").rglob("test_*.py"))]
    chosen = [path for path in files if path in all_tests]
    for path in files:
        stem, folder = pathlib.PurePosixPath(path).stem, str(pathlib.PurePosixPath(path).parent)
        if path.startswith("tests/") and path.endswith(".py") and path not in all_tests:
            chosen += [test for test in all_tests if test.startswith(folder + "/")]
        if path.startswith(("api/", "app/", "tools/", "core/")):
            chosen += [test for test in all_tests if f"_{stem}" in test]
        if path.startswith(("deploy/", "helm/")):
            chosen += [test for test in all_tests if test.startswith("tests/deploy/")]
        if path.startswith("loadtest/"):
            chosen += [test for test in all_tests if test.startswith("tests/loadtest/")]
    if any(path.startswith(("api/", "app/", "core/")) and path.endswith(SOURCES) for path in files):
        chosen += [test for test in SMOKE if test in all_tests]
    return [test for test in dict.fromkeys(chosen) if not test.startswith("tests/law/")]


def slow_stages_of(files):
    """Slow stages whose area has changed."""
    stages = [stage for stage, area in AREAS.items() if any(re.match(area, path) for path in files)]
    return stages + (["tidy"] if tidied(files) else [])


def tidied(files):
    """The changed sources that clang-tidy reads."""
    return [path for path in files if re.match(r"(api|app|core|tools)/.*\.cc$", path)]
