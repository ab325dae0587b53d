"""Texts match a regular expression where the `regex` package says so.

Its partial matches are used to find texts, and no further: behind lazy counts it takes more for a beginning than can be one.
"""

import random

import regex

from grammar_tool import ours

# What the two write differently, as (ECMA-262, the `regex` package with its ASCII flag).
SPACE = r"\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
SAME = ["a", "b", "1", "_", " ", "é", "€", "🙂", r"\n", r"\x41", r"\u00e9", r"\.", r"\d", r"\w", r"\D", r"\W", "ab", "a1"]
DIFFERENT = [
    (".", r"[^\n\r\u2028\u2029]"),
    (r"\s", f"[{SPACE}]"),
    (r"\S", f"[^{SPACE}]"),
    (r"\u{1F642}", r"\U0001F642"),
    (r"\ud83d\ude42", r"\U0001F642"),
    (r"\cJ", r"\n"),
    ("[^]", r"[\s\S]"),
]
IN_CLASS = ["a", "b", "1", "_", "é", "€", "🙂", r"\n", r"\d", r"\w", r"\]", "a-c", "0-9", "é-€", r"\^", ".", "+", "$"]
LETTERS = "aabbb11_ é€🙂\nAcz.-"
NUM_PATTERNS = 600
TEXTS_EACH = 20
TOO_LONG_S = 0.2


def atom(rng, depth):
    kind = rng.randrange(10)
    if kind < 5 or depth == 0:
        if rng.random() < 0.2:
            return rng.choice(DIFFERENT)
        same = rng.choice(SAME)
        return same, same
    if kind < 7:
        inner = "".join(rng.choice(IN_CLASS) for _ in range(rng.randrange(1, 4)))
        inner = f"[{rng.choice(['', '^'])}{inner}]"
        return inner, inner
    opening = rng.choice([("(", "("), ("(?:", "(?:"), ("(?<x>", "(")])
    ours_inner, theirs_inner = branches(rng, depth - 1)
    return opening[0] + ours_inner + ")", opening[1] + theirs_inner + ")"


def repeated(rng, depth):
    ours_atom, theirs_atom = atom(rng, depth)
    if len(ours_atom) > 1 and ours_atom[0] not in "([\\":
        ours_atom = theirs_atom = f"(?:{ours_atom})"
    count = rng.choice(["", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,}", "{0,2}", "{1,3}?"])
    return ours_atom + count, theirs_atom + count


def branch(rng, depth):
    parts = [repeated(rng, depth) for _ in range(rng.randrange(0, 4))]
    return "".join(part[0] for part in parts), "".join(part[1] for part in parts)


def branches(rng, depth):
    made = [branch(rng, depth) for _ in range(rng.choice([1, 1, 2, 3]))]
    return "|".join(part[0] for part in made), "|".join(part[1] for part in made)


def anchored(rng):
    """Alternatives with ^ and $ at their ends."""
    made = []
    for _ in range(rng.choice([1, 1, 2])):
        ours_part, theirs_part = branch(rng, 2)
        first, last = rng.choice([("", ""), ("^", ""), ("", "$"), ("^", "$")])
        made.append((first + ours_part + last, first + theirs_part + (last and r"\Z")))
    return "|".join(part[0] for part in made), "|".join(part[1] for part in made)


def texts(rng):
    return ["".join(rng.choice(LETTERS) for _ in range(rng.choice([0, 1, 2, 3, 4, 6, 9]))) for _ in range(TEXTS_EACH)]


def grown(rng, pattern, given):
    """Beginnings of matches made longer, letter by letter, for long texts seldom match by chance."""
    found = list(given)
    for text in given[:8]:
        for _ in range(6):
            longer = [text + letter for letter in rng.sample(sorted(set(LETTERS)), 5)]
            good = [t for t in longer if expected(pattern, t) in ("y", "n")]
            if not good:
                break
            text = rng.choice(good)
            found.append(text)
    return found


def expected(pattern, text):
    """Or None where the reference tries too many ways."""
    try:
        if regex.fullmatch(pattern, text, flags=regex.ASCII, partial=True, timeout=TOO_LONG_S) is None:
            return "d"
        return "y" if regex.fullmatch(pattern, text, flags=regex.ASCII, timeout=TOO_LONG_S) else "n"
    except TimeoutError:
        return None


def test_generated_patterns_match_whole_texts_as_the_reference_says():
    rng = random.Random(1)
    patterns = [branches(rng, 2) for _ in range(NUM_PATTERNS)]
    cases = [("w", mine, grown(rng, theirs, texts(rng))) for mine, theirs in patterns]
    wrong = []
    counts = dict.fromkeys("ynd", 0)
    for (_, mine, given), (_, theirs), answer in zip(cases, patterns, ours(cases, 1), strict=True):
        assert answer[0] != "e", f"{mine!r}: {answer[1]}"
        for text, verdict in zip(given, answer, strict=True):
            counts[verdict] += 1
            known = expected(theirs, text)
            if known is not None and (verdict == "y") != (known == "y"):
                wrong.append(f"{mine!r} on {text!r}: {verdict}, {theirs!r} says {known}")
    assert not wrong, f"{len(wrong)} differ\n" + "\n".join(wrong[:20])
    assert min(counts.values()) > 1000, counts


def test_generated_patterns_are_found_in_texts_as_the_reference_says():
    rng = random.Random(2)
    patterns = [anchored(rng) if i % 2 else branches(rng, 2) for i in range(NUM_PATTERNS)]
    cases = [("s", mine, texts(rng)) for mine, _ in patterns]
    wrong = []
    counts = dict.fromkeys("yo", 0)
    for (_, mine, given), (_, theirs), answer in zip(cases, patterns, ours(cases, 2), strict=True):
        assert answer[0] != "e", f"{mine!r}: {answer[1]}"
        for text, verdict in zip(given, answer, strict=True):
            there = regex.search(theirs, text, flags=regex.ASCII) is not None
            counts["y" if there else "o"] += 1
            if (verdict == "y") != there:
                wrong.append(f"{mine!r} in {text!r}: {verdict}, {theirs!r} says {there}")
    assert not wrong, f"{len(wrong)} differ\n" + "\n".join(wrong[:20])
    assert min(counts.values()) > 1000, counts


PUBLISHED = {  # patterns as published schemas use them: texts that match, and that do not
    r"^[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}$": (["a.b+c@d-e.org"], ["a@b", "a b@c.de", "@c.de"]),
    r"^(\([0-9]{3}\))?[0-9]{3}-[0-9]{4}$": (["555-1212", "(888)555-1212"], ["(888)555-1212 ext. 532", "(800)FLOWERS"]),
    r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$": (["2024-02-29"], ["2024-13-01", "24-01-01", "2024-1-1"]),
    r"^#(?:[0-9a-fA-F]{3}){1,2}$": (["#fff", "#A0b1C2"], ["fff", "#ffff", "#ggg"]),
    r"^(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}$": (["127.0.0.1", "255.255.255.255"], ["256.1.1.1", "1.2.3"]),
    r"^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$": (["123e4567-e89b-12d3-a456-426614174000"], ["123e4567"]),
    r"^x-": (["x-", "x-rate"], ["X-rate", "ax-"]),
    r"^v?(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-[\da-z.-]+)?$": (["1.0.0", "v10.2.3-rc.1"], ["1.0", "01.0.0"]),
    r"^[^\\/]+$": (["name"], ["a/b", "a\\b", ""]),
    r"^.*$": (["", "any thing"], ["two\nlines"]),
    r"^\s*$": (["", " \t"], [" a"]),
    r"^(?!x)": None,
    r"\p{L}": None,
    r"(a)\1": None,
    r"\bword\b": None,
}


def test_published_patterns_mean_what_they_say():
    cases = [("s", pattern, sum(known, [])) for pattern, known in PUBLISHED.items() if known]
    for (_, pattern, _), answer in zip(cases, ours(cases, 3), strict=True):
        good, bad = PUBLISHED[pattern]
        assert [c == "y" for c in answer] == [True] * len(good) + [False] * len(bad), pattern


def test_what_is_not_regular_is_refused():
    cases = [("s", pattern, []) for pattern, known in PUBLISHED.items() if known is None]
    for (_, pattern, _), answer in zip(cases, ours(cases, 4), strict=True):
        assert answer[0] == "e" and "regular expression, character" in answer[1], pattern
