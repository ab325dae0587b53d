"""Of every schema of the official suite: it is refused, or no instance that is not valid is a text of its grammar."""

import pytest

import official_suite


@pytest.fixture(scope="module")
def coverage():
    if official_suite.archive() is None:
        pytest.skip("the source package of jsonschema, which carries the official suite, cannot be had from PyPI")
    return official_suite.coverage()


def test_nothing_that_is_invalid_can_be_written(coverage):
    unsound = [line for row in coverage.values() for line in row.unsound]
    assert not unsound, "\n".join(unsound)


def test_most_schemas_and_texts_are_taken(coverage):
    total = sum(row.schemas for row in coverage.values())
    assert total > 300
    assert sum(row.accepted for row in coverage.values()) > 0.6 * total
    assert sum(row.written for row in coverage.values()) > 0.75 * sum(row.valid for row in coverage.values())


def test_every_refusal_says_where_and_why(coverage):
    for row in coverage.values():
        for message in row.refusals:
            assert message.startswith("schema: #") or "no text" in message or "matches" in message, message
