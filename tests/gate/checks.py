"""What stages are made of: builds, GoogleTest binaries, pytest, one command a file. Each adds to the outcome what it found."""

import concurrent.futures
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import time

import outcome
import processes

# The binaries that take longest begin first, so that none of them runs alone at the end.
LONGEST_FIRST = ("gpu_test", "sim_test", "core_speculate_test", "core_engine_test", "tsan_test", "sim_mutation_test",
                 "core_model_test", "core_sample_test", "api_test", "core_cpu_test")


class Checks:
    """The tree at `root`, built and tested with `jobs` processes at once; `deadline` is in time.monotonic()'s seconds."""

    def __init__(self, root, found, jobs, deadline=None, slow_stages=()):
        self.root = pathlib.Path(root)
        self.found = found
        self.jobs = jobs
        self.deadline = deadline
        self.slow_stages = slow_stages
        self.reports = self.root / "build" / "reports"
        self.reports.mkdir(parents=True, exist_ok=True)
        self.built = {}
        self.venv = None  # being made, or made by this run

    def left_s(self, most):
        """Seconds until the deadline, at most `most`, at least one."""
        return most if self.deadline is None else max(1, min(most, self.deadline - time.monotonic()))

    def is_late(self, wanted_s):
        return self.deadline is not None and self.deadline - time.monotonic() < wanted_s

    # ---- builds

    def configure(self, preset):
        log = self.reports / f"configure-{preset}.log"
        command = ["cmake", "--preset", preset, "-DQUIRE_TESTS=ON"]
        status = processes.run_to_file(command, log, 600, cwd=self.root)
        if "require your cache to be deleted" in log.read_text():  # of another compiler: it forgot what the preset says
            status = processes.run_to_file(command, log, 600, cwd=self.root)
        if status != 0:
            self.found.fails(1, f"cmake --preset {preset}", outcome.tail(log, 30))
        return status == 0

    def build(self, preset, targets=()):
        """Builds the targets, or everything. A build that the deadline cuts is left out, not failed."""
        log, began = self.reports / f"build-{preset}.log", time.monotonic()
        command = ["ninja", "-C", f"build/{preset}", "-j", self.jobs, "-k", "20", *targets]
        status = processes.run_to_file(command, log, self.left_s(7200), cwd=self.root)
        if status == processes.TIMED_OUT and self.deadline is not None:
            self.found.leaves_out(f"the build of {preset}: cut by the deadline")
        elif status != 0:
            self.found.fails(1, f"the build of {preset}", outcome.first_errors(log))
        else:
            self.found.write(f"  built {preset} in {time.monotonic() - began:.0f} s")
        return status == 0

    def build_all(self, preset):
        """Once a run."""
        if preset not in self.built:
            self.built[preset] = self.configure(preset) and self.build(preset)
        return self.built[preset]

    def targets(self, preset, pattern):
        """The targets of a configured preset whose names match."""
        listed = subprocess.run(["ninja", "-C", f"build/{preset}", "-t", "targets", "all"], cwd=self.root, capture_output=True, text=True)
        names = (line.split(":")[0] for line in listed.stdout.splitlines() if line.endswith(": phony"))
        return sorted({name for name in names if re.fullmatch(pattern, name) and not name.startswith("cmake_")})

    def build_targets(self, preset, pattern):
        """Builds the targets that match and returns their names. None is a failure: nothing would be tested."""
        if not self.configure(preset):
            return []
        names = self.targets(preset, pattern)
        if not names:
            self.found.fails(1, f"no target of the preset {preset} is called {pattern}")
        return names if names and self.build(preset, names) else []

    # ---- tests

    def run_gtests(self, label, binaries, without=""):
        """Runs GoogleTest binaries, `jobs` at once, and shows the slowest cases. `without`: a pattern to leave out.

        Where there are fewer binaries than jobs, each is run in parts side by side.
        """
        order = {name: place for place, name in enumerate(LONGEST_FIRST)}
        binaries = sorted(binaries, key=lambda path: (order.get(path.name, len(order)), path.name))
        parts = max(1, self.jobs // max(1, len(binaries)))
        runs = [(binary, part) for binary in binaries for part in range(parts)]
        cases = []
        for (binary, part), (report, status) in processes.at_once(
                self.jobs, lambda run: self.run_gtest(label, *run, parts, without), runs):
            name = binary.name if parts == 1 else f"{binary.name}, part {part + 1} of {parts}"
            if status is None:
                self.found.leaves_out(f"{label}: {name}")
            elif status == processes.TIMED_OUT and self.is_late(5):
                self.found.leaves_out(f"{label}: {name}, cut by the deadline")
            else:
                cases += self.found.takes_report(report, status, name)
        self.found.shows_slowest(cases)

    def run_gtest(self, label, binary, part, parts, without):
        """(its report, its exit status); no status where it is too late to begin."""
        report = self.reports / (f"{label}-{binary.name}.xml" if parts == 1 else f"{label}-{binary.name}-{part}.xml")
        if self.is_late(60):
            return report, None
        chosen = [f"--gtest_filter=-{without}"] if without else []
        command = processes.with_fixed_addresses([binary, "--gtest_brief=1", f"--gtest_output=xml:{report}", *chosen])
        env = {**os.environ, "GTEST_TOTAL_SHARDS": str(parts), "GTEST_SHARD_INDEX": str(part)}
        log = report.with_suffix(".log")
        return report, processes.run_to_file(command, log, self.left_s(2400), cwd=self.root, env=env)

    def has_venv(self):
        """.venv follows tests/requirements.txt: made again when its text changes."""
        mark = self.root / ".venv/requirements.sha256"
        return mark.exists() and mark.read_text().strip() == self.venv_digest()

    def venv_digest(self):
        return hashlib.sha256((self.root / "tests/requirements.txt").read_bytes()).hexdigest()

    def begin_venv(self):
        """Makes .venv while other stages run; ensure_venv() waits for it."""
        if self.venv is None:
            self.found.write("  making .venv from tests/requirements.txt (about 2 minutes)")
            self.venv = concurrent.futures.ThreadPoolExecutor(max_workers=1).submit(self.make_venv)

    def make_venv(self):
        """What went wrong, as (title, text), or nothing."""
        log = self.reports / "venv.log"
        for command in ([sys.executable, "-m", "venv", ".venv"], [".venv/bin/pip", "install", "-q", "-r", "tests/requirements.txt"]):
            if processes.run_to_file(command, log, 1800, cwd=self.root) != 0:
                return " ".join(command), outcome.tail(log, 15)
        (self.root / ".venv/requirements.sha256").write_text(self.venv_digest() + "\n")
        return None

    def ensure_venv(self):
        if self.venv is None and self.has_venv():
            return True
        self.begin_venv()
        if wrong := self.venv.result():
            self.found.fails(1, *wrong)
        return not wrong

    def run_pytest(self, label, limit_s, *arguments, workers=True):
        """pytest in `jobs` workers; a time-out in a slow stage is left out, anywhere else it is a failure."""
        report = self.reports / f"{label}.xml"
        report.unlink(missing_ok=True)
        command = [".venv/bin/python", "-m", "pytest", "-q", "--no-header", "--tb=short", "-rs", "-p", "no:cacheprovider",
                   "-o", "junit_logging=system-out", f"--junitxml={report}", *arguments]
        if workers and self.jobs > 1:
            command += ["-n", self.jobs, "--dist", "loadscope", "--no-loadscope-reorder"]
        status = processes.run_to_file(command, report.with_suffix(".log"), limit_s, cwd=self.root, env=self.environment())
        is_slow = label in self.slow_stages
        if status == 5 and is_slow:
            self.found.leaves_out(f"{label}: there is no such test")
        elif status == processes.TIMED_OUT and is_slow:
            self.found.leaves_out(f"{label}: cut by the deadline")
        else:
            for line in outcome.tail(report.with_suffix(".log"), 400).splitlines():
                if line.startswith("SKIPPED"):
                    self.found.write(f"  {line}")
            self.found.shows_slowest(self.found.takes_report(report, status, f"pytest {label}"))

    def environment(self):
        shared = next((path for path in (os.environ.get("QUIRE_SHARED"), self.root / "../shared") if path and os.path.isdir(path)), None)
        env = {**os.environ, "QUIRE_BUILD_DIR": str(self.root / "build/release"), "PYTHONDONTWRITEBYTECODE": "1"}
        env.pop("QUIRE_SHARED", None)
        return {**env, "QUIRE_SHARED": os.path.realpath(shared)} if shared else env

    def check_files(self, label, command, paths):
        """Runs a command on each file, one check a file, `jobs` at once; what the deadline leaves over is said."""
        def check(path):
            if self.is_late(5):
                return None
            done = subprocess.run([*command, path], cwd=self.root, capture_output=True, text=True, stdin=subprocess.DEVNULL)
            return done.returncode, done.stdout + done.stderr

        results = processes.at_once(self.jobs, check, [str(path) for path in paths])
        self.found.passes(sum(1 for _, result in results if result and result[0] == 0))
        bad = [f"{path}\n{result[1]}" for path, result in results if result and result[0] != 0]
        if bad:
            self.found.fails(len(bad), f"{label}: {len(bad)} files", "\n".join("\n".join(bad).splitlines()[:200]))
        if unread := sum(1 for _, result in results if result is None):
            self.found.leaves_out(f"{label}: {unread} of {len(results)} files, cut by the deadline")
