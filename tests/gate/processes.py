"""Commands that a stage runs: with a time limit, several at once, and nothing of them left behind."""

import concurrent.futures
import os
import shutil
import signal
import subprocess

TIMED_OUT = 124


def run_to_file(command, log, timeout_s, **options):
    """The exit status of a command whose output goes to a file; TIMED_OUT where it was ended for its time."""
    with open(log, "wb") as out:
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=subprocess.STDOUT, start_new_session=True, **options)
        try:
            return process.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            return TIMED_OUT
        finally:
            end_group(process)


def end_group(process):
    """The command and what it started: asked first, then killed."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            pass
    process.wait()


def at_once(jobs, function, things):
    """[(thing, function(thing))] in the order of `things`, `jobs` at a time."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=jobs) as pool:
        return list(zip(things, pool.map(function, things)))


def with_fixed_addresses(command):
    """Sanitizers of these compilers want less address randomness than some kernels give."""
    setarch = shutil.which("setarch")
    if setarch is None:
        return list(command)
    prefix = [setarch, os.uname().machine, "-R"]
    works = subprocess.run([*prefix, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
    return [*prefix, *command] if works else list(command)
