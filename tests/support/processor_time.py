"""What a process takes of the processor. Unlike the time on the wall it is much the same on a machine that is busy with something else."""

import contextlib
import os
import pathlib
import resource


def _of_ended_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextlib.contextmanager
def processor_time():
    """`with processor_time() as used: …`: behind it used() gives the seconds of the processes that were started and ended inside."""
    before = _of_ended_children()
    total = [0.0]
    yield lambda: total[0]
    total[0] = _of_ended_children() - before


def processor_time_of(pid):
    """The seconds that a running process has taken so far, all its threads together."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()  # from the state on, the third of proc(5)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
