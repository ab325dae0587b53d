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


def test_the_matrix_reaches_both_outcomes():
    source = "{% if messages[0].role == 'wizard' %}{{ raise_exception('no wizards') }}{% endif %}fine"
    assert {reference(source, variables) for _, variables in conversations()} == {"fine", None}
