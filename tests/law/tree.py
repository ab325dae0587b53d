"""The source tree as the law tests see it."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
CPP = (".h", ".cc", ".cu", ".cuh")
SKIPPED = {"build", ".venv", ".git", "__pycache__", "node_modules"}


def files(*places, suffixes=CPP):
    """(path relative to the root, text) of every file below `places` with one of `suffixes`."""
    for place in places:
        start = ROOT / place
        found = [start] if start.is_file() else sorted(start.rglob("*"))
        for path in found:
            relative = path.relative_to(ROOT)
            if path.is_file() and path.name.endswith(suffixes) and not SKIPPED & set(relative.parts):
                yield relative.as_posix(), path.read_text(encoding="utf-8")


def code_only(text):
    """C++ without its comments; strings and line numbers stay."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
    keep = lambda m: re.sub(r"[^\n]", " ", m.group()) if m.group().startswith(("//", "/*")) else m.group()
    return token.sub(keep, text)


def hits(pattern, text):
    """Line numbers and lines where `pattern` is found."""
    return [
        f"{number}: {line.strip()}" for number, line in enumerate(text.splitlines(), 1) if re.search(pattern, line)
    ]
