"""Texts match a grammar, or could be the beginning of one, where a recogniser written here says so."""

import functools
import random

from grammar_tool import ours

NUM_GRAMMARS = 600
LONGEST = 4
LETTERS = "ab"


def expression(rng, names, depth):
    """An expression as nested tuples."""
    kind = rng.randrange(4 if depth == 0 else 10)
    if kind == 0:
        return ("literal", "".join(rng.choice(LETTERS) for _ in range(rng.randrange(3))))
    if kind == 1:
        return ("class", rng.choice(["a", "b", "ab", "^a", "a-b", "^"]))
    if kind < 4:
        return ("rule", rng.choice(names))
    if kind < 6:
        least = rng.randrange(3)
        return ("repeat", expression(rng, names, depth - 1), least, rng.choice([least, least + 1, least + 2, None]))
    parts = [expression(rng, names, depth - 1) for _ in range(rng.randrange(1, 4))]
    return ("sequence" if kind < 8 else "choice", *parts)


def written(rng, e):
    kind = e[0]
    if kind == "literal":
        return '"' + "".join(rng.choice([c, f"\\x{ord(c):02x}"]) for c in e[1]) + '"'
    if kind == "class":
        return f"[{e[1]}]"
    if kind == "rule":
        return e[1]
    if kind == "repeat":
        least, most = e[2], e[3]
        marks = {(0, None): "*", (1, None): "+", (0, 1): "?"}
        exact = "{%d}" % least if least == most else "{%d,%s}" % (least, "" if most is None else most)
        return f"({written(rng, e[1])}){marks.get((least, most), exact)}"
    between = " | " if kind == "choice" else rng.choice([" ", "\n  ", " # and\n"])
    return "(" + between.join(written(rng, part) for part in e[1:]) + ")"


def letters_of(spec):
    if spec == "a-b":
        return set(LETTERS)
    return set(LETTERS) - set(spec[1:]) if spec.startswith("^") else set(spec)


def language(rules):
    """Every text of up to LONGEST letters that `root` matches, grown until nothing is new."""
    known = {name: frozenset() for name in rules}

    def join(left, right):
        return frozenset(a + b for a in left for b in right if len(a) + len(b) <= LONGEST)

    def texts(e):
        kind = e[0]
        if kind == "literal":
            return frozenset([e[1]])
        if kind == "class":
            return frozenset(letters_of(e[1]))
        if kind == "rule":
            return known[e[1]]
        if kind == "choice":
            return frozenset().union(*map(texts, e[1:]))
        if kind == "sequence":
            return functools.reduce(join, map(texts, e[1:]), frozenset([""]))
        part, least, most = texts(e[1]), e[2], e[3]
        found, power = frozenset(), frozenset([""])
        for i in range(least + LONGEST + 1 if most is None else most + 1):
            if i >= least:
                found |= power
            power = join(power, part)
        return found

    while True:
        grown = {name: texts(e) for name, e in rules.items()}
        if grown == known:
            return known["root"]
        known = grown


def all_texts():
    texts = [""]
    for text in texts:
        if len(text) < LONGEST:
            texts += [text + c for c in LETTERS]
    return texts


def test_generated_grammars_match_the_texts_that_they_should():
    rng = random.Random(5)
    everything = all_texts()
    grammars, cases = [], []
    for _ in range(NUM_GRAMMARS):
        names = ["root"] + [f"r-{i}" for i in range(rng.randrange(4))]
        rules = {name: expression(rng, names, 3) for name in names}
        grammars.append(rules)
        order = rng.sample(names, len(names))
        text = "\n".join(f"{name} ::= {written(rng, rules[name])}" for name in order)
        cases.append(("e", text, everything))
    compiled, lost, wrong = 0, 0, []
    for (_, text, _), rules, answer in zip(cases, grammars, ours(cases, 5), strict=True):
        if answer[0] == "e":
            assert "left recursion" in answer[1] or "no text matches" in answer[1], f"{text}\n{answer[1]}"
            continue
        compiled += 1
        if "l" in answer:
            lost += 1
            continue
        good = language(rules)
        beginnings = {match[:i] for match in good for i in range(len(match) + 1)}
        for candidate, verdict in zip(everything, answer, strict=True):
            if (verdict == "y") != (candidate in good) or (verdict == "d" and candidate in beginnings):
                wrong.append(f"{text}\non {candidate!r}: {verdict}")
    assert not wrong, f"{len(wrong)} differ\n" + "\n\n".join(wrong[:5])
    assert compiled > NUM_GRAMMARS / 3
    assert lost <= 3  # has thousands of readings of four letters
