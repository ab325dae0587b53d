"""The official JSON Schema Test Suite, as the source package of jsonschema carries it, and what quire makes of it.

Printed as the table that docs/structured-output.md has: python tests/json_schema/official_suite.py"""

import collections
import importlib.metadata
import itertools
import json
import subprocess
import sys
import tarfile

from asking import BUILD, ask
from file_lock import file_lock

DRAFT = "draft2020-12"
NOT_OURS = {"format", "vocabulary", "optional", "refRemote"}  # formats are counted by themselves; the rest asks for a network


def archive():
    """The source package, from the build directory or from PyPI; None where neither has it."""
    version = importlib.metadata.version("jsonschema")
    place = BUILD / "json_schema_suite"
    path = place / f"jsonschema-{version}.tar.gz"
    with file_lock(place / "download.lock"):
        if not path.exists():
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "jsonschema", "-d", place]
            subprocess.run([*command, f"jsonschema=={version}"], capture_output=True, timeout=600)
    return path if path.exists() else None


def groups():
    """(keyword, description, schema, [(instance, valid)...]) of every group of tests."""
    found = []
    with tarfile.open(archive()) as package:
        for member in sorted(package.getmembers(), key=lambda member: member.name):
            parts = member.name.split("/")
            if parts[1:4] != ["json", "tests", DRAFT] or not member.name.endswith(".json"):
                continue
            keyword = parts[-1].removesuffix(".json")
            is_format = parts[4:6] == ["optional", "format"]
            if not is_format and (len(parts) > 5 or keyword in NOT_OURS):
                continue
            for group in json.loads(package.extractfile(member).read()):
                tests = [(test["data"], test["valid"]) for test in group["tests"]]
                found.append((f"format: {keyword}" if is_format else keyword, group["description"], group["schema"], tests))
    return found


def spellings(instance):
    """Texts of one instance: with its keys in every order."""
    if isinstance(instance, dict) and 1 < len(instance) <= 4:
        orders = [dict(order) for order in itertools.permutations(instance.items())]
    else:
        orders = [instance]
    return [json.dumps(order, ensure_ascii=False) for order in orders]


def spelled(instance):
    try:
        return [text for text in spellings(instance) if text.encode()]
    except UnicodeEncodeError:  # half a surrogate pair: no text at all
        return []


class Coverage:
    def __init__(self):
        self.schemas = self.accepted = self.refused = 0
        self.valid = self.written = 0
        self.unsound = []
        self.missing = []
        self.refusals = collections.Counter()


def coverage():
    """Keyword → Coverage."""
    rows, requests = [], []
    (tables,) = ask([{"tables": True}])
    known = {name for name, _ in tables["formats"]}
    for keyword, description, schema, tests in groups():
        if keyword.startswith("format: ") and schema.get("format") not in known:  # an annotation: all is valid
            tests = [(data, True) for data, _ in tests]
        texts = [spelled(data) for data, _ in tests]
        requests.append({"schema": json.dumps(schema), "texts": [text for some in texts for text in some]})
        rows.append((keyword, description, schema, tests, texts))
    table = collections.defaultdict(Coverage)
    for (keyword, description, schema, tests, texts), answer in zip(rows, ask(requests), strict=True):
        row = table[keyword]
        row.schemas += 1
        if "refused" in answer:
            row.refused += 1
            row.refusals[answer["refused"]] += 1
            continue
        row.accepted += 1
        accepted = iter(answer["accepted"])
        for (data, valid), some in zip(tests, texts, strict=True):
            written = any([next(accepted) for _ in some])
            row.valid += valid
            row.written += valid and written
            if written and not valid:
                row.unsound.append(f"{keyword}, {description}: {json.dumps(schema)} accepts {json.dumps(data)}")
            if valid and not written:
                row.missing.append(f"{keyword}, {description}: {json.dumps(schema)} does not write {json.dumps(data)}")
    return table


def table_lines(table):
    yield "| tests of | schemas | taken | valid texts of those | written |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for keyword, row in sorted(table.items(), key=lambda item: (item[0].startswith("format"), item[0])):
        yield f"| `{keyword}` | {row.schemas} | {row.accepted} | {row.valid} | {row.written} |"


if __name__ == "__main__":
    found = coverage()
    print("\n".join(table_lines(found)))
    if "--why" in sys.argv:
        for name, row in found.items():
            for line in row.unsound:
                print("UNSOUND", line)
            for line in row.missing:
                print("MISSING", line)
            for text, count in row.refusals.items():
                print("REFUSED", name, count, text)
