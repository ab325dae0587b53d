"""Published chat templates render to the bytes of jinja2, on a matrix of conversations; where jinja2 fails, so does quire."""

import os
import pathlib

import pytest

from conversations import conversations
from reference import differences, ours, reference

FOLDER = pathlib.Path(os.environ.get("QUIRE_SHARED", "/nonexistent"), "data", "templates")
TEMPLATES = sorted(FOLDER.glob("*.jinja"))


@pytest.mark.skipif(not TEMPLATES, reason="$QUIRE_SHARED/data/templates is not there")
@pytest.mark.parametrize("path", TEMPLATES, ids=[path.stem for path in TEMPLATES])
def test_a_published_template_renders_as_the_reference(path):
    source = path.read_text()
    cases = [(source, variables) for _, variables in conversations()]
    assert len(cases) >= 500
    found = differences(cases)
    assert not found, f"{len(found)} of {len(cases)} differ, first:\n" + "\n".join(found[:3])
    assert sum(what == "o" for what, _ in ours(cases)) > len(cases) // 10  # and not all are common failures


def has_null_content(variables):
    return any(isinstance(message, dict) and message.get("content", "") is None for message in variables["messages"])


def plain_none(text):
    return text.count("None")


@pytest.mark.skipif(not TEMPLATES, reason="$QUIRE_SHARED/data/templates is not there")
@pytest.mark.parametrize("path", TEMPLATES, ids=[path.stem for path in TEMPLATES])
def test_a_null_content_renders_as_transformers_renders_it_but_for_the_word_none(path):
    source = path.read_text()
    silent = [(source, variables) for _, variables in conversations() if has_null_content(variables)]
    assert len(silent) >= 100
    empty = [(source, {**variables, "messages": [{**m, "content": ""} if m.get("content", "") is None else m for m in variables["messages"]]})
             for _, variables in silent]
    for (_, variables), (what, text), (_, with_empty) in zip(silent, ours(silent), ours(empty), strict=True):
        expected = reference(source, variables, says_none=True)
        if what != "o":
            assert expected is None, f"transformers renders {str(variables)[:300]}: {expected!r:.1000}"
        elif expected is not None and plain_none(expected) <= plain_none(with_empty):
            assert text == expected
        else:  # it fails, or says the word
            assert plain_none(text) <= plain_none(with_empty)


def test_the_matrix_reaches_both_outcomes():
    source = "{% if messages[0].role == 'wizard' %}{{ raise_exception('no wizards') }}{% endif %}fine"
    assert {reference(source, variables) for _, variables in conversations()} == {"fine", None}
