"""The stages of tests/run.sh: what each builds and runs. A stage's first line of text is what the run says of it."""

import json
import os
import shutil
import subprocess

import changes
import outcome
import processes

FUZZ_S = 60
# Tests that a wrong law of draws is seen, and how near a right one comes (tests/support/cases.h).
JUDGES = "*SeenTo*Distribution*:*SeenToBeAnother*:*WithinOneInAHundred*:*AsOftenAsTheRoundsSay*"
EVERY_TIME = "not full and not heavy and not nvcc and not matrix"  # Python tests of every run


def law(checks):
    """who may include whom, format, and what of the style is law"""
    if checks.ensure_venv():
        checks.run_pytest("law", 600, "tests/law")


def release(checks):
    """the release build, tests and all"""
    checks.build_all("release")


def unit(checks):
    """GoogleTest binaries of the release build"""
    if checks.build_all("release"):
        checks.run_gtests("unit", sorted((checks.root / "build/release/tests").glob("*_test")))


def python(checks):
    """conformance, wire and golden tests against the release build"""
    if checks.build_all("release") and checks.ensure_venv():
        checks.run_pytest("python", 2400, "tests", "--ignore=tests/law", "-m", EVERY_TIME)


def roles(checks):
    """clang proves which thread calls what"""
    command = ["clang++-16", "-std=c++20", "-fsyntax-only", "-I.", "-Wthread-safety", "-Werror", "-Wno-deprecated-declarations"]
    folders = ("core/engine", "core/schedule", "core/kv")
    sources = sorted(path.relative_to(checks.root) for folder in folders for path in (checks.root / folder).rglob("*.cc"))
    checks.check_files("roles", command, [*sources, "core/model/run/decoder_runner.cc", "tests/thread_roles/right_thread.cc"])
    # The proof that the check bites: this file breaks the rule and nothing else.
    wrong = "tests/thread_roles/wrong_thread.cc"
    done = subprocess.run([*command, wrong], cwd=checks.root, capture_output=True, text=True)
    said = done.stdout + done.stderr
    if done.returncode == 0:
        checks.found.fails(1, f"{wrong} compiles: the thread-role check is blind")
    elif "requires holding role 'engine_role'" in said and "1 error generated" in said:
        checks.found.passes()
    else:
        checks.found.fails(1, f"{wrong} fails for another reason:", said)


def asan(checks):
    """address and undefined-behaviour sanitizers on core, the GPU in its simulator, and the simulator of schedules"""
    run_sanitized(checks, "asan", "asan", r"(core_[a-z_]*|gpu|hub|sim)_test")


def asan_api(checks):
    """address sanitizer on the HTTP side, above the core of the stage before"""
    run_sanitized(checks, "asan-api", "asan", "api_test")


def tsan(checks):
    """thread sanitizer on bridge, engine and session in one binary"""
    run_sanitized(checks, "tsan", "tsan", "tsan_test")


def run_sanitized(checks, label, preset, pattern):
    names = checks.build_targets(preset, pattern)
    if names:
        checks.run_gtests(label, [checks.root / f"build/{preset}/tests" / name for name in names], without=JUDGES)
        checks.found.leaves_out(f"{label}: {JUDGES}: more draws than a sanitizer has time for; unit runs them")


def clients(checks):
    """client libraries and whatever else is marked full"""
    if checks.build_all("release") and checks.ensure_venv():
        checks.run_pytest("clients", checks.left_s(3600), "tests", "--ignore=tests/law", "-m", "full and not nvcc")


def heavy(checks):
    """routers, load drivers, images, ten thousand streams: what wants a machine to itself"""
    if checks.build_all("release") and checks.ensure_venv():
        checks.run_pytest("heavy", checks.left_s(3600), "tests", "--ignore=tests/law", "-m", "heavy", workers=False)


def matrix(checks):
    """real client programs, each at a job of its own against the server; writes docs/clients.md"""
    # QUIRE_MATRIX_BUILD_DIR: a folder with a quire that is there already; nothing is built then.
    if (os.environ.get("QUIRE_MATRIX_BUILD_DIR") or checks.build_all("release")) and checks.ensure_venv():
        results = checks.root / "build/matrix/results"
        shutil.rmtree(results, ignore_errors=True)
        checks.run_pytest("matrix", checks.left_s(7200), "tests/matrix", "-m", "matrix", workers=False)
        for path in sorted(results.glob("*.json")):
            client = json.loads(path.read_text())
            if client["result"] == "not run":
                checks.found.leaves_out(f"matrix: {client['name']}: {client['why']}")
        log = checks.reports / "matrix-page.log"
        if processes.run_to_file([".venv/bin/python", "tests/matrix/clients_page.py"], log, 60, cwd=checks.root, env=checks.environment()) != 0:
            checks.found.fails(1, "docs/clients.md cannot be written", outcome.tail(log, 20))


def kernels(checks):
    """nvcc's kernels: registers, spills, instructions, and a program with CUDA where there is no GPU"""
    if checks.build_all("release") and checks.ensure_venv():
        # One worker: what nvcc made is kept for all of its tests.
        checks.run_pytest("kernels", checks.left_s(3600), "tests/gpu", "-m", "nvcc", workers=False)


def fuzz(checks):
    """each target for a minute"""
    seed = os.environ.get("QUIRE_FUZZ_SEED", "1")  # of one tree a gate says one thing; by hand, 0 looks elsewhere each time
    targets = checks.build_targets("fuzz", "[a-z0-9_]*_fuzz")

    def run(target):
        if checks.is_late(FUZZ_S + 15):
            return None
        corpus = checks.root / "build/fuzz/corpus" / target
        corpus.mkdir(parents=True, exist_ok=True)
        seeds = checks.root / "tests/fuzz/corpus" / target.removesuffix("_fuzz")
        command = processes.with_fixed_addresses(
            [f"build/fuzz/tests/{target}", f"-max_total_time={FUZZ_S}", "-timeout=10", "-rss_limit_mb=4096", f"-seed={seed}",
             "-print_final_stats=1", f"-artifact_prefix=build/fuzz/{target}-", corpus, *([seeds] if seeds.is_dir() else [])])
        return processes.run_to_file(command, checks.reports / f"{target}.log", 300, cwd=checks.root)

    for target, status in processes.at_once(checks.jobs, run, targets):
        log = checks.reports / f"{target}.log"
        if status is None:
            checks.found.leaves_out(f"fuzz: {target}")
        elif status == 0:
            checks.found.passes()
            runs = [line.split()[-1] for line in outcome.tail(log, 20).splitlines() if "number_of_executed_units" in line]
            checks.found.write(f"  {target}: {runs[0] if runs else '?'} runs")
        else:
            checks.found.fails(1, f"{target} found something:", outcome.tail(log, 40))


def tidy(checks):
    """the short clang-tidy list on every source, the changed ones first; no precompiled headers, so that includes are checked, too"""
    if not tidy_database(checks):
        return
    sources = [path.relative_to(checks.root) for folder in ("core", "hub", "api", "app", "tools") for path in (checks.root / folder).rglob("*.cc")]
    changed = set(changes.tidied(changes.changed_files(checks.root, changes.start_of_change(checks.root))))
    check_tidy(checks, sorted(map(str, sources), key=lambda path: (path not in changed, path)))


def tidy_changed(checks):
    """clang-tidy on the sources that changed"""
    if tidy_database(checks):
        check_tidy(checks, [path for path in changes.tidied(changes.changed_files(checks.root, changes.start_of_change(checks.root)))
                            if (checks.root / path).exists()])


def tidy_database(checks):
    log = checks.reports / "configure-tidy.log"
    command = ["cmake", "--preset", "release", "-B", "build/tidy",
               "-DQUIRE_TESTS=OFF", "-DQUIRE_PRECOMPILE=OFF", "-DQUIRE_UNITY=OFF"]
    status = processes.run_to_file(command, log, 600, cwd=checks.root)
    if status != 0:
        checks.found.fails(1, " ".join(command), outcome.tail(log, 30))
    return status == 0


def check_tidy(checks, paths):
    checks.check_files("tidy", ["clang-tidy-16", "--quiet", "-p", "build/tidy", "--extra-arg=-Wno-unknown-warning-option"], paths)


NORMAL = {"law": law, "release": release, "unit": unit, "python": python, "roles": roles, "asan": asan, "asan-api": asan_api, "tsan": tsan}
SLOW = {"clients": clients, "fuzz": fuzz, "tidy": tidy, "kernels": kernels, "heavy": heavy}
# Stages that run where they are named, and at no other time: they install what others make, and write what they found.
ALONE = {"matrix": matrix}
# Of the slow stages one turn runs with each merge, by the number of commits.
TURNS = (("clients",), ("fuzz", "kernels"), ("tidy", "heavy"))
