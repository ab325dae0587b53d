"""jinja2 as transformers sets it up, and quire's render_tool, asked for the same renderings."""

import datetime
import functools
import json
import os
import pathlib
import struct
import subprocess

BUILD = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", pathlib.Path(__file__).resolve().parents[2] / "build" / "release"))
NOW = 1722000000


def strftime_now(layout):
    return datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc).strftime(layout)


class SilentNone(str):
    """A message's null content as quire has it: none to a template's tests, an empty text to all else."""

    def __eq__(self, other):
        return other is None or isinstance(other, SilentNone)

    __hash__ = str.__hash__


TESTS = {
    "none": lambda plain, value: plain(value) or isinstance(value, SilentNone),
    **{name: lambda plain, value: plain(value) and not isinstance(value, SilentNone) for name in ("string", "iterable", "sequence")},
}


def silenced(variables):
    variables = json.loads(json.dumps(variables))
    messages = variables.get("messages")
    for message in messages if isinstance(messages, list) else []:
        if isinstance(message, dict) and "content" in message and message["content"] is None:
            message["content"] = SilentNone()
    return variables


@functools.lru_cache
def compiled(source):
    from transformers.utils.chat_template_utils import _compile_jinja_template

    environment = _compile_jinja_template(source).environment.overlay()
    environment.tests = {**environment.tests}
    for name, changed in TESTS.items():
        environment.tests[name] = functools.partial(changed, environment.tests[name])
    to_json = environment.filters["tojson"]
    says_null = lambda value, *more, **named: to_json(None if isinstance(value, SilentNone) else value, *more, **named)
    environment.filters = {**environment.filters, "tojson": says_null}
    return environment.from_string(source)


def reference(source, variables, says_none=False):
    """The text, or None where jinja2 or the template raises. `says_none`: with Python's own None as a message's null content."""
    from transformers.utils.chat_template_utils import _compile_jinja_template

    try:
        if says_none:
            return _compile_jinja_template(source).render(strftime_now=strftime_now, **json.loads(json.dumps(variables)))
        return compiled(source).render(**{"strftime_now": strftime_now, **silenced(variables)})
    except Exception:
        return None


def tool():
    path = BUILD / "render_tool"
    assert path.exists(), f"{path} is not built; QUIRE_BUILD_DIR says where to look"
    return path


def ours(cases):
    """For every (source, variables): 'o', 'p' or 'r', and the text or the error."""
    requests = b""
    for source, variables in cases:
        for part in (source.encode(), json.dumps(variables).encode()):
            requests += struct.pack("<I", len(part)) + part
    done = subprocess.run([tool(), str(NOW)], input=requests, capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr.decode()
    answers, at = [], 0
    while at < len(done.stdout):
        what, (size,) = done.stdout[at : at + 1].decode(), struct.unpack_from("<I", done.stdout, at + 1)
        answers.append((what, done.stdout[at + 5 : at + 5 + size].decode()))
        at += 5 + size
    assert len(answers) == len(cases)
    return answers


def differences(cases):
    """Where the two do not agree: other bytes, or one fails and the other does not."""
    found = []
    for (source, variables), (what, text) in zip(cases, ours(cases), strict=True):
        expected = reference(source, variables)
        if (text if what == "o" else None) != expected:
            found.append(f"{source[-300:]!r} with {str(variables)[:300]}\n  jinja2: {expected!r:.2000}\n  quire:  {what} {text!r:.2000}")
    return found
