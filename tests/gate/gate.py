"""Builds quire and runs its tests, stage by stage. The last line is `N passed, N failed`.

bash tests/run.sh [--full | --gate | --changed [COMMIT]] [--only STAGE[,STAGE]] [--until-minute N]
  (nothing)        the normal stages
  --full           and the slow ones
  --gate           what a merge has to pass: the normal stages, the slow ones whose turn it is by the number of commits, and the slow
                   ones whose area has changed
  --changed        what a change touches, in five minutes: law, the tests of its layers and of those above, Python tests named after it.
                   The change is what differs from COMMIT; without one from HEAD, or, of a clean tree, from HEAD's parent.
  --only           these stages; without a name it lists them
  --until-minute   begins nothing behind that minute, cuts what is slow, and lists what did not run
The count is of GoogleTest and pytest cases, and one for each file or target of the other checks.
"""

import os
import pathlib
import resource
import signal
import subprocess
import sys
import time

import changes
import checks
import outcome
import stages

CHANGED_S = 300
ALL = {**stages.NORMAL, **stages.SLOW}
NAMED = {**ALL, **stages.ALONE}  # what --only takes


class Usage(Exception):
    """The command line is wrong; the text says how."""


class Options:
    def __init__(self, words):
        self.mode, self.only, self.until_minute, self.since, self.root = "normal", None, None, "", None
        words = list(words)
        while words:
            word = words.pop(0)
            if word in ("--full", "--gate", "--changed"):
                self.mode = word[2:]
                if word == "--changed" and words and not words[0].startswith("--"):
                    self.since = words.pop(0)
            elif word == "--only":
                self.only = words.pop(0).split(",") if words and not words[0].startswith("--") else []
            elif word == "--until-minute":
                self.until_minute = number_of(word, words)
            elif word == "--root":  # for tests of this program
                self.root = pathlib.Path(words.pop(0))
            else:
                raise Usage(f"unknown argument {word} (--help lists them)")
        for name in self.only or []:
            if name not in NAMED:
                raise Usage(f"no stage {name}; there are: {' '.join(NAMED)}")


def number_of(word, words):
    try:
        return float(words.pop(0))
    except (IndexError, ValueError):
        raise Usage(f"{word} needs a number") from None


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Run:
    """One run of stages, and its last page."""

    def __init__(self, root, options, jobs, write=print):
        self.began = time.monotonic()
        deadline = None if options.until_minute is None else self.began + 60 * options.until_minute
        if options.mode == "changed":
            deadline = min(deadline or self.began + CHANGED_S, self.began + CHANGED_S)
        self.found = outcome.Outcome(write)
        self.checks = checks.Checks(root, self.found, jobs, deadline, slow_stages={**stages.SLOW, **stages.ALONE})
        self.write = write
        self.bold, self.plain = ("\033[1m", "\033[0m") if write is print and sys.stdout.isatty() else ("", "")

    def stage(self, name, function):
        found, before = self.found, (self.found.passed, self.found.failed, len(self.found.not_run))
        if self.checks.is_late(90):
            found.leaves_out(f"{name}: too late to begin")
            return
        began, used = time.monotonic(), processor_seconds()
        self.write(f"{self.bold}== {name}: {function.__doc__}{self.plain}")
        function(self.checks)
        if name != "release" and before == (found.passed, found.failed, len(found.not_run)):
            found.leaves_out(f"{name}: nothing to run, or nothing that was built")
        row = (name, time.monotonic() - began, processor_seconds() - used, found.passed - before[0], found.failed - before[1])
        found.stages.append(row)
        self.write(f"  {row[3]} passed, {row[4]} failed in {row[1]:.0f} s")

    def finish(self):
        self.write(self.found.last_page(time.monotonic() - self.began, processor_seconds()))
        return 1 if self.found.failed else 0


def stages_of_gate(root, found):
    """The normal stages, the slow ones of this turn, and those of changed areas. What stays out is said."""
    commits = int(changes.git(root, "rev-list", "--count", "HEAD").strip() or 0)
    turn = stages.TURNS[commits % len(stages.TURNS)]
    since = changes.start_of_change(root)
    areas = changes.slow_stages_of(changes.changed_files(root, since))
    found.write(f"== slow stages: commit {commits} is {' and '.join(turn)}'s turn ({commits} modulo {len(stages.TURNS)}); "
                f"changed since {since[:12]}: the areas of {', '.join(areas) or 'none'}")
    chosen = dict(stages.NORMAL)
    for name, function in stages.SLOW.items():
        if name in turn:
            chosen[name] = function
        elif name in areas:
            chosen[name] = stages.tidy_changed if name == "tidy" else function
        else:
            found.leaves_out(f"{name}: not its turn, and nothing of its area has changed")
    return chosen


def run_changed(run, root, since):
    """The tests that a change touches, the nearest first."""
    files = changes.changed_files(root, since)
    run.write(f"== changed: {len(files)} files")
    layers = changes.read_layers((root / "layers.txt").read_text())
    run.stage("law", stages.law)
    binaries = changes.binaries_of(files, layers)

    def unit(checks_):
        """GoogleTest binaries of the layers that changed and of those above"""
        if not binaries or not checks_.configure("release"):
            return
        known = checks_.targets("release", "|".join(binaries))
        for name in (name for name in binaries if name in known):
            if checks_.is_late(30):
                checks_.found.leaves_out(f"unit: {name}, no time left")
            elif checks_.build("release", [name]):
                checks_.run_gtests("changed", [root / "build/release/tests" / name])

    def python(checks_):
        """Python tests that changed or are named after what changed"""
        tests = changes.python_tests_of(files, root)
        if tests and checks_.ensure_venv() and checks_.configure("release"):
            names = ["quire", "quire-bench", *checks_.targets("release", "[a-z_]*_tool")]
            if checks_.build("release", names):
                checks_.run_pytest("python", checks_.left_s(CHANGED_S), *tests, "-m", stages.EVERY_TIME)

    run.stage("unit", unit)
    run.stage("python", python)
    for name in changes.slow_stages_of(files):
        run.found.leaves_out(f"{name}: its area has changed; bash tests/run.sh --only {name}")


def main(words):
    if set(words) & {"-h", "--help"}:
        print(__doc__.strip())
        return 0
    try:
        options = Options(words)
    except Usage as error:
        print(f"tests/run.sh: {error}", file=sys.stderr)
        return 2
    if options.only == []:
        for name, function in NAMED.items():
            print(f"{name:<9} {function.__doc__}{' (slow)' if name in stages.SLOW else ' (named alone)' if name in stages.ALONE else ''}")
        return 0
    root = options.root or pathlib.Path(__file__).resolve().parents[2]
    jobs = int(os.environ.get("QUIRE_JOBS") or subprocess.run([root / "deploy/build_jobs.sh"], capture_output=True, text=True).stdout or 1)
    run = Run(root, options, jobs, write=lambda text: print(text, flush=True))
    if options.mode == "changed" and options.only is None:
        run_changed(run, root, options.since)
        return run.finish()
    if options.only is not None:
        chosen = {name: NAMED[name] for name in options.only}
    elif options.mode == "gate":
        chosen = stages_of_gate(root, run.found)
    else:
        chosen = ALL if options.mode == "full" else stages.NORMAL
    for name, function in in_order(run, chosen).items():
        run.stage(name, function)
    return run.finish()


def in_order(run, chosen):
    """Stages as they are; in the first run of a clone law waits for packages that come while release is built."""
    if not {"law", "release"} <= chosen.keys() or run.checks.has_venv():
        return chosen
    run.checks.begin_venv()
    return {"release": chosen["release"], **chosen}


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("tests/run.sh: ended by a signal"))  # and what it started with it
    sys.exit(main(sys.argv[1:]))
