"""Asks quire's schema_tool, and the jsonschema package, about schemas and texts."""

import json
import os
import pathlib
import subprocess

import jsonschema

BUILD = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", pathlib.Path(__file__).resolve().parents[2] / "build" / "release"))


def ask(requests, timeout=900):
    """An answer for each request; schema_tool.cc says what they look like."""
    path = BUILD / "schema_tool"
    assert path.exists(), f"{path} is not built; QUIRE_BUILD_DIR says where to look"
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run([path], input=lines.encode(), capture_output=True, timeout=timeout)
    answers = [json.loads(line) for line in done.stdout.decode().splitlines()]
    assert done.returncode == 0, (done.stderr.decode()[-2000:], requests[len(answers)] if len(answers) < len(requests) else "")
    assert len(answers) == len(requests)
    return answers


def validator(schema):
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    return kind(schema, format_checker=kind.FORMAT_CHECKER)


def faults(schema, texts):
    """The texts that are not JSON, or not valid for the schema."""
    checker, found = validator(schema), []
    for text in texts:
        try:
            errors = [error.message for error in checker.iter_errors(json.loads(text))]
        except ValueError as error:
            errors = [str(error)]
        if errors:
            found.append(f"{json.dumps(schema)[:2000]}\n  wrote {text[:500]}\n  {errors[0][:500]}")
    return found
