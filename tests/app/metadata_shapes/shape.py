"""What a row of a table is, and how a file's text is written."""

import dataclasses
import json


@dataclasses.dataclass(frozen=True)
class Shape:
    """One form of a file. Everything not named in `means` must be as it is with the plain file, or as another program reads it."""

    name: str  # what writes it, and what is odd
    text: object  # of the table's file: a text, bytes, an object that is written as JSON, or None: there is no such file
    means: dict = dataclasses.field(default_factory=dict)  # parts of the program's reading, by name
    beside: dict = dataclasses.field(default_factory=dict)  # other files of the directory, likewise
    kind: str = "llama"  # of tiny_checkpoints.KINDS
    others_read_it: bool = True  # False: transformers refuses it, and it means what the plain file means

    def __str__(self):
        return self.name


@dataclasses.dataclass(frozen=True)
class Refused:
    """A form that is refused with exit code 2 and these words, and why that is right."""

    name: str
    files: dict
    says: tuple
    why: str
    kind: str = "llama"

    def __str__(self):
        return self.name


@dataclasses.dataclass(frozen=True)
class Link:
    """A file that is a symbolic link to another one of the directory."""

    target: str


def bytes_of(text):
    """As save_pretrained writes JSON: two blanks for a level, and a line break at the end."""
    if isinstance(text, bytes):
        return text
    return (text if isinstance(text, str) else json.dumps(text, indent=2) + "\n").encode()


def without(members, *names):
    return {name: value for name, value in members.items() if name not in names}


def with_first(members, **more):
    """These in front of the rest, as where a tool writes its own keys first."""
    return more | without(members, *more)


# ---- what editors and other programs make of a JSON file


def crlf(members):
    return bytes_of(members).replace(b"\n", b"\r\n")


def byte_order_mark(members):
    return b"\xef\xbb\xbf" + bytes_of(members)


def no_line_break(members):
    return json.dumps(members, indent=2)


def one_line(members):
    return json.dumps(members, separators=(",", ":"))


def tabs(members):
    return json.dumps(members, indent="\t") + "\n"


def blank_lines(members):
    return "\n\n" + json.dumps(members, indent=4) + "\n\n\n"


def backwards(members):
    return dict(reversed(list(members.items())))


def all_escaped(members):
    """Every letter of every string as \\uXXXX: legal, and what some writers of other languages do with some of them."""
    text, inside, at = json.dumps(members), False, 0
    out = []
    while at < len(text):
        letter = text[at]
        if letter == "\\":
            out.append(text[at:at + (6 if text[at + 1] == "u" else 2)])
            at += len(out[-1])
            continue
        if letter == '"':
            inside = not inside
        out.append(f"\\u{ord(letter):04x}" if inside and letter != '"' else letter)
        at += 1
    return "".join(out)


def with_raw_members(members, *raw):
    """Members that json.dumps cannot write: names twice, numbers of their own spelling, NaN. They stand at the end."""
    return json.dumps(members, indent=2)[:-2] + "".join(f",\n  {one}" for one in raw) + "\n}\n"


def edited_twice(members, **old):
    """A member that stands there twice, as where two merges of git both kept theirs: the later counts."""
    first = "".join(f"  {json.dumps(name)}: {json.dumps(value)},\n" for name, value in old.items())
    return "{\n" + first + json.dumps(members, indent=2)[2:] + "\n"
