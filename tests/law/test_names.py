"""pytest takes every module of tests by its base name: two of one name cannot be collected together."""

import collections
import pathlib

from tree import files


def doubled(paths):
    """Base names that more than one path has."""
    places = collections.defaultdict(list)
    for path in paths:
        places[pathlib.PurePosixPath(path).name].append(path)
    return {name: found for name, found in places.items() if len(found) > 1 and name not in ("conftest.py", "__init__.py")}


def test_every_python_module_of_tests_has_a_name_of_its_own():
    assert doubled(path for path, _ in files("tests", suffixes=(".py",))) == {}


def test_a_doubled_name_is_found():
    assert list(doubled(["tests/a/test_x.py", "tests/b/test_x.py", "tests/b/conftest.py", "tests/a/conftest.py"])) == ["test_x.py"]
