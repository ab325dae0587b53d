"""Comments and names in the words of the field: what breaks the rules is counted, and no count may grow.

plain_words_counts.toml has the numbers that stand, by kind and directory; a directory that it does not name has none.
`python tests/law/test_plain_words.py --write` lowers them to what is counted and never raises one. A kind that the file
does not have yet, such as a new line of WORDS, is added by `--write --first`.
"""

import bisect
import collections
import functools
import pathlib
import re
import subprocess
import sys
import tomllib

import pytest

from tree import ROOT, files

PRODUCT = ("core", "api", "app", "gpu", "hub", "tools")
SOURCES = (".h", ".cc", ".cu", ".cuh", ".inc")
HEADERS = (".h", ".cuh")
GENERATED = ("core/text/unicode/unicode_tables.cc",)
STORED = pathlib.Path(__file__).with_name("plain_words_counts.toml")
COLUMNS = 120
FEW = 20  # so many places are shown as they are; of more, those in lines added since the numbers were written

HEAD = """\
# Number of breaches of each rule of test_plain_words.py, by directory. Numbers only fall:
#   python tests/law/test_plain_words.py --write

"""

BLOCKS = "core/schedule core/engine core/model core/kv".split()
DRAFTS = "core/backend core/sample core/engine core/speculate".split()

# Words of our own that may not be part of a name, be it draft_guess, DraftGuess or kGuesses. The columns: the word, its
# forms, the field's term, the directories where it counts (none: everywhere), a name that has it, a name that does not.
WORDS = [
    ("speaker", "speakers?", "logits row", [], "first_speaker", "loudspeaker"),
    ("guess", "guess(es|ed|ers?|ing)?", "draft token", [], "kGuesses", "draft_token"),
    ("told", "told", "emitted", [], "NumTold", "retold"),
    ("untold", "untold", "pending", [], "untold_", "pending_"),
    ("scout", "scout(s|ed|ing)?", "lookahead node", [], "is_scout", "lookahead_node"),
    ("votes", "vot(es?|ed|er|ing)", "accumulated scores", [], "read_votes", "devote"),
    ("wishes", "wish(es)?", "SLO hints", [], "Wishes", "wishful"),
    ("residency", "residenc(y|ies)", "scheduled period", [], "residency_s", "residence"),
    ("letter", "letters?", "LL word", ["gpu"], "Letter", "newsletter"),
    ("packet", "packets?", "step buffer", ["gpu"], "StepPacket", "packetize"),
    ("parked", "park(s|ed|ing)?", "paused", [], "parked_since", "sparked"),
    ("own<", "own<", "device_cast<", [], "own<Weight>(w)", "read_own<Weight>(w)"),
    ("Means", "(?-i:Means)", "kernel context", [], "Means", "means"),
    ("IoDoor", "io_door", "io handle", [], "IoDoor", "radio_door"),
    ("cache_root", "cache_roots?", "cache namespace", [], "CacheRoot", "cache_rooted"),
    ("open_group", "open_groups?", "residual group", [], "kOpenGroups", "reopen_group"),
    ("news", "news", "pending events", [], "on_news", "newsletter"),
    ("heard", "heard", "has_output, or published, or drained", [], "heard_", "overheard"),
    ("law", "laws?", "distribution", [], "ProposalLaws", "flaw_lawful"),
    ("tail", "tails?", "partial block", BLOCKS, "insert_tail", "detail"),
    ("walk", "walk(s|ed|ers?|ing)?", "verification, or accepted path", DRAFTS, "walk_down", "boardwalk"),
]


# Each finder below gives the offsets of what breaks its rule.


def cards(path, source):
    """A header's card begins with a noun, or a verb, that names its subject: "The blocks that a sequence holds"."""
    is_header = path.endswith(HEADERS)
    return [source.blocks[0].start] if is_header and source.blocks and QUESTION.match(source.blocks[0].words) else []


def comments(path, source):
    """A comment begins with a noun or a verb, not with who, what, which, how, where: "True if a row waits"."""
    others = source.blocks[1:] if path.endswith(HEADERS) else source.blocks
    return [block.start for block in others if block.column is not None and QUESTION.match(block.words)]


def long_lines(path, source):
    """A line has 120 columns at most, a comment's too. Only tables without clang-format and raw strings are wider."""
    return [] if path in GENERATED else source.long_lines()


def closed_sources(path, source):
    """A comment names what a reader can open (paper and equation, RFC and section), or says "ours" and why."""
    return [block.offset_of(m.start()) for block in source.blocks for m in CLOSED.finditer(block.words)] + [
        block.offset_of(m.start(1)) for block in source.blocks for m in CLOSED_SOURCE.finditer(block.words)
    ]


def word_rule(word, forms, term, places, *_):
    """The finder of one line of WORDS."""
    pattern = re.compile(rf"_(?:{forms})_", re.IGNORECASE)
    has_word = functools.cache(lambda name: pattern.search(parts_of(name)) is not None)

    def names(path, source):
        if places and layer_of(path) not in places:
            return []
        return [offset for name, offsets in source.names.items() if has_word(name) for offset in offsets]

    names.__name__ = f"word_{word}"
    names.__doc__ = f"No name has the part '{word}' ({forms}): the field says '{term}'."
    return names


RULES = {  # kind: finder
    "cards that begin with who, what, which, how, where or whether": cards,
    "other comments that begin so": comments,
    f"lines over {COLUMNS} columns": long_lines,
    "sources that no reader can open": closed_sources,
    **{f"names with the word {row[0]}": word_rule(*row) for row in WORDS},
}

QUESTION = re.compile(r"\W*(who|what|which|how|where|whether|whoever|whatever)\b", re.IGNORECASE)
CLOSED = re.compile(r"\b(the (notebook|review|issue)|DESIGN\.md)\b", re.IGNORECASE)
# Elsewhere "the seed" is that of random numbers.
CLOSED_SOURCE = re.compile(r"\bSource\b(?:(?! (?:Shape|Owner|Thread|Fails|Launch) ).)*?\b(the seed)\b")

TOKEN = re.compile(
    r'(?P<line>//[^\n]*)|(?P<block>/\*.*?\*/)|(?P<raw>R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)")'
    r'|(?P<string>"(?:\\.|[^"\\\n])*")'
    r"|(?<!\w)\d(?:'?[\w.])*"  # a number, whose ' begins no character
    r"|(?P<character>'(?:\\.|[^'\\\n])*')",
    re.DOTALL,
)
NAME = re.compile(r"\b[A-Za-z_]\w*(?:(?<=\bown)<)?")
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+<?")


@functools.cache
def parts_of(name):
    """A name's parts in one way of writing: _k_Draft_Guess_ for kDraftGuess."""
    return f"_{'_'.join(PART.findall(name))}_"


class Block:
    """A comment: lines of // that begin in one column, or one /* */, whose column is None."""

    def __init__(self, start, column, words):
        self.start, self.column, self.words = start, column, words
        self.pieces = [(0, start)]  # where each line begins: in `words`, in the file

    def add(self, start, words):
        self.pieces.append((len(self.words) + 1, start))
        self.words += " " + words

    def offset_of(self, at):
        return self.pieces[bisect.bisect_right(self.pieces, (at, sys.maxsize)) - 1][1]


class Source:
    """A file taken apart: its blocks of comments, and the names of its code."""

    def __init__(self, text):
        self.lines = text.split("\n")
        self.line_starts = [0, *(m.end() for m in re.finditer("\n", text))]
        self.blocks, self.wide = [], []  # `wide`: first and last lines between which lines may be long
        code, end, last_line = [], 0, -2
        for m in TOKEN.finditer(text):
            if m.lastgroup is None:
                continue
            code.append(text[end : m.start()] + re.sub(r"[^\n]", " ", m.group()))
            end, line = m.end(), self.line_of(m.start())
            if m.lastgroup == "line":
                self.add_line(m, line, last_line)
                last_line = line
            elif m.lastgroup == "block":
                self.blocks.append(Block(m.start(), None, m.group()[2:-2]))
            elif "\n" in m.group() or m.group().startswith("R"):
                self.wide.append((line, self.line_of(m.end())))
        self.names = collections.defaultdict(list)
        for m in NAME.finditer("".join(code) + text[end:]):
            self.names[m.group()].append(m.start())

    def add_line(self, m, line, last_line):
        words = m.group().lstrip("/!<").strip()
        column = m.start() - self.line_starts[line - 1]
        alone = not self.lines[line - 1][:column].strip()
        if alone and last_line == line - 1 and self.blocks[-1].column == column:
            self.blocks[-1].add(m.start(), words)
        else:
            self.blocks.append(Block(m.start(), column, words))
        if words.startswith("clang-format off"):
            self.wide.append((line, sys.maxsize))
        elif words.startswith("clang-format on") and self.wide and self.wide[-1][1] == sys.maxsize:
            self.wide[-1] = (self.wide[-1][0], line)

    def line_of(self, offset):
        return bisect.bisect_right(self.line_starts, offset)

    def long_lines(self):
        wide = lambda line: any(first <= line <= last for first, last in self.wide)
        lines = enumerate(self.lines, 1)
        return [self.line_starts[n - 1] for n, line in lines if len(line) > COLUMNS and not wide(n)]


def layer_of(path):
    """The directory that a file is counted for: core/kv, api."""
    return "/".join(path.split("/")[: 2 if path.startswith("core/") else 1])


def find(rule, path, text):
    """path:line: what breaks `rule` in a text."""
    return places_of(rule, path, Source(text))


def places_of(rule, path, source):
    lines = sorted(source.line_of(offset) for offset in rule(path, source))
    return [(path, line, source.lines[line - 1].strip()) for line in lines]


@functools.cache
def counted():
    """kind -> directory -> places, of the tree."""
    found = {kind: collections.defaultdict(list) for kind in RULES}
    for path, text in files(*PRODUCT, suffixes=SOURCES):
        source = Source(text)
        for kind, rule in RULES.items():
            if places := places_of(rule, path, source):
                found[kind][layer_of(path)] += places
    return found


def stored():
    return tomllib.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}


def written(numbers):
    """The text of the file of numbers."""
    kinds = []
    for kind, by_layer in numbers.items():
        lines = [f'"{layer}" = {number}\n' for layer, number in sorted(by_layer.items()) if number]
        kinds.append(f'["{kind}"]\n' + "".join(lines))
    return HEAD + "\n".join(kinds)


def lowered(old, new, first):
    """The numbers to store, and complaints about those that would rise. `old`, `new`: kind -> directory -> number."""
    numbers, complaints = {}, []
    for kind, by_layer in new.items():
        if kind not in old:
            if first:
                numbers[kind] = by_layer
            else:
                complaints.append(f"{kind}: not in the file yet; --write --first adds it")
            continue
        numbers[kind] = {layer: min(number, by_layer.get(layer, 0)) for layer, number in old[kind].items()}
        for layer, number in sorted(by_layer.items()):
            if number > (allowed := old[kind].get(layer, 0)):
                complaints.append(f"{kind}: {layer} has {number}, {allowed} may be")
    return numbers, complaints


def added_lines():
    """(path, line) of what git says was added since the numbers were written; without git, of nothing."""
    git = lambda *words: subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    added, path = set(), ""
    try:
        base = git("log", "-1", "--format=%H", "--", str(STORED)).strip() or "HEAD"
        for line in git("diff", "-U0", "--no-prefix", "--no-color", "--no-ext-diff", base, "--", *PRODUCT).splitlines():
            if line.startswith("+++ "):
                path = line[4:]
            elif m := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
                added.update((path, int(m[1]) + i) for i in range(int(m[2] or 1)))
        for path in git("ls-files", "--others", "--exclude-standard", "--", *PRODUCT).splitlines():
            added.update((path, i) for i in range(1, 1000))
    except (OSError, subprocess.CalledProcessError):
        return set()
    return added


def shown(places, added):
    """Places as text, a line each; of many those in added lines, where there are any."""
    if len(places) > FEW:
        new = [place for place in places if place[:2] in added()]
        places = new or places
    lines = [f"  {path}:{line}: {text[:COLUMNS]}" for path, line, text in places[:FEW]]
    return lines + ([f"  and {len(places) - FEW} more"] if len(places) > FEW else [])


def differences(rule, may_be, found, added=added_lines):
    """A text of the differences between the places of one kind and the stored numbers; empty if there are none."""
    lines = []
    for layer in sorted({*may_be, *found}):
        allowed, places = may_be.get(layer, 0), found.get(layer, [])
        if len(places) > allowed:
            lines += [f"{layer} has {len(places)}, {allowed} may be. {rule.__doc__}", *shown(places, added)]
        elif len(places) < allowed:
            lines.append(
                f"{layer} has {len(places)}, fewer than the {allowed} that stand in {STORED.name}. "
                "Lower the number: python tests/law/test_plain_words.py --write"
            )
    return "\n".join(lines)


@pytest.mark.parametrize("kind", RULES)
def test_no_count_differs_from_what_stands(kind):
    assert kind in stored(), f"{STORED.name} lacks it: python tests/law/test_plain_words.py --write --first"
    if wrong := differences(RULES[kind], stored()[kind], counted()[kind]):
        pytest.fail(wrong, pytrace=False)


def test_the_numbers_are_of_kinds_that_are_counted():
    assert set(stored()) <= set(RULES), "python tests/law/test_plain_words.py --write"


RAW = 'const char* a = R"x(' + "y" * COLUMNS + ')x";\n'
OFF = "// clang-format off\n" + "x" * 121 + "\n// clang-format on\n"
SNIPPETS = [  # finder, path, a text that breaks the rule once, a text that does not
    (cards, "core/kv/a.h", "// What a sequence holds.\n#pragma once\n", "// The blocks of a sequence.\n// What.\n"),
    (cards, "gpu/a.cuh", "#pragma once\n//\n// how: many\n", "#pragma once\n// Whose?\n\n// Which?\n"),
    (cards, "core/kv/a.h", "// (Whoever holds it.)\n", "// Blocks.\nint a(/*which=*/1);\n"),
    (cards, "core/kv/a.h", "// WHICH blocks are free.\n", '"// What"\n'),
    (comments, "core/kv/a.cc", "// Whether it waits.\n", "// True if it waits,\n// whether or not.\n"),
    (comments, "core/kv/a.h", "// A card.\n\n  // Where it lies.\n", "// Where it lies is the card's.\n"),
    (comments, "core/kv/a.inc", "int a;  // what it is\n        // which\n", "int a;  // its size\n        // which\n"),
    (comments, "api/a.cc", "int a;  // its size\nint b;\n/// Whatever.\n", "int a = '\\'';  // whatsoever\n"),
    (long_lines, "api/a.cc", "// " + "x" * 118, "// " + "x" * 117),
    (long_lines, "api/a.cc", "x" * 121 + "\n" + RAW, "x" * 120 + "\n" + RAW),
    (long_lines, "api/a.cc", OFF + "x" * 121, OFF + '"// clang-format off"\n'),
    (long_lines, "api/a.cc", 's("// clang-format off");\n' + "x" * 121, "/*\n" + "x" * 120 + "\n*/"),
    (closed_sources, "core/kv/a.h", "// Source  the notebook's pool.", "// Source  Kwon et al. 2023."),
    (closed_sources, "core/kv/a.h", "// Ours; see\n// DESIGN.md.", 'char a[] = "DESIGN.md";'),
    (closed_sources, "core/kv/a.h", "// As the\n// review says.", "// A review."),
    (closed_sources, "core/kv/a.h", "/* The issue has the numbers. */", "// the issues"),
    (closed_sources, "core/kv/a.h", "// Source  a variant\n//   of the seed: ours.", "// Source  no.\n\n// the seed"),
]
SNIPPETS += [
    (RULES[f"names with the word {row[0]}"], f"{(row[3] or ['core/kv'])[0]}/a.cc", f"int {row[4]};", f"int {row[5]};")
    for row in WORDS
]


IDS = [f"{rule.__name__}-{i}" for i, (rule, *_) in enumerate(SNIPPETS)]


@pytest.mark.parametrize("rule, path, bad, good", SNIPPETS, ids=IDS)
def test_a_rule_bites(rule, path, bad, good):
    assert len(find(rule, path, bad)) == 1
    assert find(rule, path, good) == []


def test_every_rule_has_a_snippet():
    assert {rule for rule, *_ in SNIPPETS} == set(RULES.values())


def test_words_count_in_code_alone_and_where_they_are_private():
    guess, tail = RULES["names with the word guess"], RULES["names with the word tail"]
    assert find(guess, "core/kv/a.cc", "// guess\n/* guess */ \"guess\" R\"(guess)\" 'guess'") == []
    text = "/* a\n*/\nint n = 1'000; int guess;\nguess = '\"';\nguess + 0xab;"
    assert [line for _, line, _ in find(guess, "core/kv/a.cc", text)] == [3, 4, 5]
    assert len(find(tail, "core/kv/a.cc", "int tail;")) == 1
    assert find(tail, "core/bridge/a.cc", "int tail;") == []


def test_a_place_is_the_line_where_it_stands():
    assert find(closed_sources, "core/kv/a.h", "// One.\n// Two,\n// of the notebook.\n") == [
        ("core/kv/a.h", 3, "// of the notebook.")
    ]


def test_more_than_stand_are_named_and_fewer_have_to_be_written():
    place = lambda line: ("core/kv/a.h", line, "// What.")
    none = lambda: set()
    assert differences(cards, {"core/kv": 1}, {"core/kv": [place(1)]}) == ""
    assert "core/kv/a.h:2: // What." in differences(cards, {"core/kv": 1}, {"core/kv": [place(1), place(2)]})
    assert "a.h:1:" in differences(cards, {}, {"core/kv": [place(1)]})
    assert "Lower the number" in differences(cards, {"core/kv": 1}, {})
    many = {"core/kv": [place(line) for line in range(1, FEW + 3)]}
    assert "and 2 more" in differences(cards, {}, many, none)
    assert differences(cards, {}, many, lambda: {("core/kv/a.h", 7)}).splitlines()[1:] == ["  core/kv/a.h:7: // What."]


def test_writing_lowers_and_never_raises():
    old = {"a": {"api": 3, "app": 1, "gpu": 2}, "gone": {"api": 1}}
    numbers, complaints = lowered(old, {"a": {"api": 1, "app": 2, "core/kv": 1}, "b": {"api": 5}}, first=False)
    assert tomllib.loads(written(numbers)) == {"a": {"api": 1, "app": 1}}
    assert [c.split(":")[0] for c in complaints] == ["a", "a", "b"]
    numbers, complaints = lowered(old, {"a": {"api": 3, "app": 1, "gpu": 2}, "b": {"api": 5}, "c": {}}, first=True)
    assert tomllib.loads(written(numbers)) == {"a": old["a"], "b": {"api": 5}, "c": {}}
    assert complaints == []


def main(words):
    if "--write" not in words or not set(words) <= {"--write", "--first"}:
        return f"usage: {sys.argv[0]} --write [--first]"
    new = {kind: {layer: len(places) for layer, places in by_layer.items()} for kind, by_layer in counted().items()}
    numbers, complaints = lowered(stored(), new, "--first" in words)
    if numbers:
        STORED.write_text(written(numbers), encoding="utf-8")
    return "\n".join(["not raised:", *complaints]) if complaints else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
