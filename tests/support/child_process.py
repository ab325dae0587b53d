"""Processes of tests."""
import contextlib
import subprocess


@contextlib.contextmanager
def started(command, **options):
    """subprocess.Popen that is killed at the end if it still runs: subprocess's own would wait for it, even if the test has failed."""
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise
