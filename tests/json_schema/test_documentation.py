"""docs/structured-output.md says of every keyword and format what the table of the code says, and what the suite counted."""

import pathlib

import pytest

import document
import official_suite

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "structured-output.md"


def test_the_tables_of_keywords_and_formats_are_those_of_the_code():
    assert document.between(PAGE.read_text(), "keywords") == document.keyword_tables()


def test_the_coverage_is_what_the_official_suite_counts():
    if official_suite.archive() is None:
        pytest.skip("the source package of jsonschema, which carries the official suite, cannot be had from PyPI")
    assert document.between(PAGE.read_text(), "coverage") == document.coverage_table()
