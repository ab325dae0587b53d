"""What a run has found so far: tests that passed and failed, what did not run and why, how long each stage took."""

import dataclasses
import re
import xml.etree.ElementTree

SLOWEST = 10


@dataclasses.dataclass
class Case:
    name: str
    seconds: float
    state: str  # passed, failed or skipped
    text: str = ""  # of a failure


def read_cases(path):
    """The cases of a JUnit report of pytest or GoogleTest; none where it is absent or cut short."""
    try:
        tree = xml.etree.ElementTree.parse(path)
    except (OSError, xml.etree.ElementTree.ParseError):
        return []
    return [case_of(element) for element in tree.iter("testcase")]


def case_of(element):
    name = f"{element.get('classname')}.{element.get('name')}"
    seconds = float(element.get("time") or 0)
    failure = next((found for kind in ("failure", "error") if (found := element.find(kind)) is not None), None)
    if failure is not None:
        text = "\n".join(filter(None, [failure.get("message"), failure.text]))
        return Case(name, seconds, "failed", text)
    skipped = element.find("skipped") is not None or "notrun" == element.get("status") or "skipped" == element.get("result")
    return Case(name, seconds, "skipped" if skipped else "passed")


def tail(path, lines):
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""


class Outcome:
    """Counts, and what the last page says. Stages add to it from one thread."""

    def __init__(self, write=print):
        self.passed = self.failed = 0
        self.failures = []  # texts, each with its first line as title
        self.not_run = []
        self.stages = []  # (name, seconds, processor seconds, passed, failed)
        self.write = write

    def passes(self, count=1):
        self.passed += count

    def fails(self, count, title, detail=""):
        self.failed += count
        self.write(f"  FAILED: {title}")
        if detail:
            self.write(detail)
        lines = f"{title}\n{detail}".splitlines()[:40]
        self.failures.append("\n".join("  " + line[:300] for line in lines))

    def leaves_out(self, what):
        self.not_run.append(what)

    def takes_report(self, path, status, title):
        """Adds a report's cases. A crash or a time-out without a failed case is one failure."""
        cases = read_cases(path)
        self.passes(sum(case.state == "passed" for case in cases))
        failed = [case for case in cases if case.state == "failed"]
        if failed:
            texts = (f"{case.name}\n" + "\n".join(f"  {line}" for line in case.text.splitlines()[-12:]) for case in failed)
            self.fails(len(failed), f"{title}: {len(failed)} cases", "\n".join(texts))
        elif status != 0:
            passed = sum(case.state == "passed" for case in cases)
            self.fails(1, f"{title} ended with status {status} ({passed} cases had passed)", tail(path.with_suffix(".log"), 30))
        if skipped := sum(case.state == "skipped" for case in cases):
            self.write(f"  {title}: {skipped} skipped")
        return cases

    def shows_slowest(self, cases):
        slowest = sorted(cases, key=lambda case: -case.seconds)[:SLOWEST]
        if slowest and slowest[0].seconds >= 0.1:
            self.write("  slowest: " + ", ".join(f"{case.name} {case.seconds:.1f} s" for case in slowest))

    def last_page(self, seconds, processor_seconds):
        """Times, what did not run, what failed; the last line is the count."""
        page = ["== times"]
        page += [f"  {name:<9} {int(wall):5} s  {int(cpu):5} s of processors   {passed} passed, {failed} failed"
                 for name, wall, cpu, passed, failed in self.stages]
        page.append(f"  {'all':<9} {int(seconds):5} s  {int(processor_seconds):5} s of processors")
        if self.not_run:
            page += ["== did not run", *(f"  {what}" for what in self.not_run)]
        if self.failures:  # once more, and last: a reader of the log's end still learns what failed
            page += ["== failed", *self.failures]
        return "\n".join([*page, f"{self.passed} passed, {self.failed} failed"])


def first_errors(log):
    """What a reader wants of a failed build's log."""
    text = tail(log, 2000)
    blocks = re.split(r"(?m)^(?=FAILED:)", text)[1:4]
    return "\n".join("\n".join(block.splitlines()[:26]) for block in blocks) or tail(log, 40)
