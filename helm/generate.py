"""Writes what the chart repeats of other files: python3 helm/generate.py [--check]

values.schema.json  `config`: what docs/flags.md says of the flags of `quire serve`;
                    `prometheusRule.disabledAlerts`: the alerts there are; `draftModel`: what `model` takes. The rest is
                    written by hand.
README.md           the tables below "## Values", from the comments in values.yaml.

With --check nothing is written; it ends with 1 where a file is not what it would write.
"""

import json
import pathlib
import re
import sys

import yaml

CHART = pathlib.Path(__file__).resolve().parent / "quire"
FLAGS = CHART.parents[1] / "docs" / "flags.md"
OWN = {"admin-host", "admin-port", "config", "model", "port"}  # the chart sets these itself
WIDTH = 120

NUMBER = r"[0-9]+(\.[0-9]+)?"
COUNT = rf"^{NUMBER}[kmgtKMGT]?$"
SIZE = rf"^{NUMBER}([kmgtKMGT]|B|[kKMGT]B|[KMGT]iB)?$"
TIME = rf"^(0|{NUMBER}(ns|us|ms|s|m|h|d))$"
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def flags(text):
    """The rows of docs/flags.md that `quire serve` takes: name, kind, default, range, help."""
    for line in text.splitlines():
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 7 and cells[0].startswith("`--"):
            flag, _, kind, default, limits, commands, what = cells
            if commands == "all" or "serve" in commands.split(", "):
                yield flag.strip("`").removeprefix("--"), kind, default.strip("`"), limits, what


def integer(limits):
    """Of "1..64" and "1KiB..1TiB" what JSON Schema says of integers."""

    def number(text):
        digits, unit = re.fullmatch(r"(\d+)(\w*)", text).groups()
        return int(digits) * (UNITS[unit] if unit else 1)

    low, high = limits.split("..")
    return {"type": "integer", "minimum": number(low), "maximum": number(high)}


def setting(kind, limits):
    """The schema of a setting."""
    auto = [{"const": "auto"}] if limits.startswith("auto or ") else []
    limits = limits.removeprefix("auto or ")
    if kind == "choice":
        return {"enum": limits.split("|")}
    if kind == "switch":
        return {"enum": [*limits.split("|"), True, False]}
    if kind == "list":
        one = {"enum": limits.split("|")} if limits else {"type": "string"}
        return {"anyOf": [{"type": "string"}, {"type": "array", "items": one}]}
    if kind in ("count", "size"):
        pattern = COUNT if kind == "count" else SIZE
        return {"anyOf": [integer(limits), {"type": "string", "pattern": pattern}, *auto]}
    if kind == "time":
        return {"anyOf": [{"type": "string", "pattern": TIME}, {"const": 0}]}
    assert kind == "text", f"docs/flags.md has a kind that this script does not know: {kind}"
    return {"type": "string"}


def layout(value, indent=0):
    """JSON with what fits into a line in a line."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or len(line) + indent <= WIDTH - 12:
        return line
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        inside = [f"{pad}{json.dumps(key)}: {layout(below, indent + 2)}" for key, below in value.items()]
        return "{\n" + ",\n".join(inside) + "\n" + " " * indent + "}"
    return "[\n" + ",\n".join(pad + layout(below, indent + 2) for below in value) + "\n" + " " * indent + "]"


def alerts():
    groups = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"]
    return [rule["alert"] for group in groups for rule in group["rules"]]


def schema(text):
    whole = json.loads(text)
    below = whole["properties"]
    below["config"]["properties"] = {
        name: {"description": what, **setting(kind, limits)}
        for name, kind, _, limits, what in flags(FLAGS.read_text())
        if name not in OWN
    }
    of_model = below["model"]["properties"]
    sources = ["none", *(one for one in of_model["source"]["enum"] if one != "embedded")]
    below["draftModel"] = {**below["model"], "properties": {**of_model, "source": {"enum": sources}}}
    below["prometheusRule"]["properties"]["disabledAlerts"]["items"]["enum"] = alerts()
    return layout(whole) + "\n"


def parameters(text):
    """(section, path, help) of each `## @param` in values.yaml."""
    section = ""
    for line in text.splitlines():
        if match := re.match(r"\s*## @section (.+)$", line):
            section = match.group(1)
        elif match := re.match(r"\s*## @param (\S+) (.+)$", line):
            yield section, *match.groups()


def default_of(values, path):
    for part in path.split("."):
        values = values[part]
    return json.dumps(values, ensure_ascii=False)


def readme(text):
    comments = (CHART / "values.yaml").read_text()
    values = yaml.safe_load(comments)
    lines, last = [], None
    for section, path, what in parameters(comments):
        if section != last:
            lines += ["", f"### {section}", "", "| value | default | what it does |", "| --- | --- | --- |"]
            last = section
        lines.append(f"| `{path}` | `{default_of(values, path)}` | {what} |")
    before, heading, _ = text.partition("\n## Values\n")
    assert heading, "README.md has no heading ## Values"
    return before + heading + "\n".join(lines) + "\n"


def main():
    stale = []
    for name, make in (("values.schema.json", schema), ("README.md", readme)):
        path = CHART / name
        was = path.read_text()
        if (now := make(was)) != was:
            stale.append(name)
            if "--check" not in sys.argv[1:]:
                path.write_text(now)
    if stale and "--check" in sys.argv[1:]:
        sys.exit(f"helm/quire: {', '.join(stale)} would change: run python3 helm/generate.py")


if __name__ == "__main__":
    main()
