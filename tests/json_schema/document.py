"""Writes the tables of docs/structured-output.md: python tests/json_schema/document.py"""

import pathlib

import official_suite
from asking import ask

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "structured-output.md"
USES = {"enforced": "yes", "partly": "partly", "annotation": "no constraint", "refused": "400"}


def marks(name):
    return f"<!-- {name}: written by tests/json_schema/document.py -->\n", f"<!-- end of {name} -->\n"


def between(page, name):
    begin, end = marks(name)
    return page.split(begin)[1].split(end)[0]


def keyword_tables():
    (tables,) = ask([{"tables": True}])
    lines = ["| keyword | enforced | |", "| --- | --- | --- |"]
    lines += [f"| `{name}` | {USES[use]} | {note} |" for name, use, note in tables["keywords"]]
    lines += ["", "| format | what is written |", "| --- | --- |"]
    lines += [f"| `{name}` | {note} |" for name, note in tables["formats"]]
    return "\n".join(lines) + "\n"


def coverage_table():
    return "\n".join(official_suite.table_lines(official_suite.coverage())) + "\n"


if __name__ == "__main__":
    text = PAGE.read_text()
    for name, table in (("keywords", keyword_tables()), ("coverage", coverage_table())):
        begin, end = marks(name)
        head, rest = text.split(begin)
        text = head + begin + table + end + rest.split(end)[1]
    PAGE.write_text(text)
