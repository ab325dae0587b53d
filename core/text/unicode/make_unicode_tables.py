#!/usr/bin/env python3
"""Writes unicode_tables.cc, the Unicode 16.0 data of core/text.

Usage: pip install unicodedata2==16.0.0 tokenizers==0.23.3 && python core/text/unicode/make_unicode_tables.py
Python's own unicodedata has the interpreter's version; the published tokenizers were built against 16.0, so that is pinned. The
marks that they strip as accents are those of an older version of Unicode, so these are read from the tokenizers package itself.
"""

import pathlib
import sys

import tokenizers.normalizers
import unicodedata2 as ucd

WANTED_VERSION = "16.0.0"
OUTPUT = pathlib.Path(__file__).with_name("unicode_tables.cc")
# In the order of enum Category (unicode.h).
CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co Cn".split()
HANGUL_SYLLABLES = range(0xAC00, 0xD7A4)  # decomposed and composed by arithmetic
CODES = range(0x110000)


def runs(value_of):
    """[(first code point, value)] wherever the value changes."""
    result = []
    for code in CODES:
        value = value_of(code)
        if not result or result[-1][1] != value:
            result.append((code, value))
    return result


def is_stripped(code):
    """Whether StripAccents takes it away."""
    if 0xD800 <= code < 0xE000:
        return 0
    return int(tokenizers.normalizers.StripAccents().normalize_str("a" + chr(code)) == "a")


def raw_decomposition(code):
    """(is_compatibility, [code points]) of one step; an empty list where there is none."""
    fields = ucd.decomposition(chr(code)).split()
    compatibility = bool(fields) and fields[0].startswith("<")
    return compatibility, [int(field, 16) for field in fields[compatibility:]]


def decompositions():
    """Full decompositions as (key, offset, length) and their pool; key = code * 2 + (1 for compatibility)."""
    pool, entries = [], []
    for code in CODES:
        if code in HANGUL_SYLLABLES:
            continue
        canonical = ucd.normalize("NFD", chr(code))
        compatible = ucd.normalize("NFKD", chr(code))
        for bit, text in ((0, canonical), (1, compatible)):
            if text == chr(code) or (bit and text == canonical):
                continue
            entries.append((code * 2 + bit, len(pool), len(text)))
            pool.extend(map(ord, text))
    return entries, pool


def compositions():
    """(first, second, composite) of the primary composites."""
    result = []
    for code in CODES:
        compatibility, parts = raw_decomposition(code)
        if code in HANGUL_SYLLABLES or compatibility or len(parts) != 2:
            continue
        if ucd.normalize("NFC", chr(code)) == chr(code):  # else it is excluded from composition
            result.append((parts[0], parts[1], code))
    return sorted(result)


# unicodedata2 has no case mappings and the interpreter's may be older. What Unicode 15.0 to 16.0 added:
ADDED_LOWERCASE = {0x1C89: 0x1C8A, 0xA7CB: 0x0264, 0xA7CC: 0xA7CD, 0xA7DA: 0xA7DB, 0xA7DC: 0x019B}
ADDED_LOWERCASE.update({0x10D50 + i: 0x10D70 + i for i in range(22)})  # Garay


def lowercase(code):
    if ucd.category(chr(code)) in ("Cn", "Cs"):  # the interpreter's may be newer, too
        return chr(code)
    return chr(ADDED_LOWERCASE[code]) if code in ADDED_LOWERCASE else chr(code).lower()


def lowercase_runs():
    """(first, last, step, delta): code -> code + delta. U+0130 alone becomes two characters; unicode.cc knows it."""
    result = []
    for code in CODES:
        lower = lowercase(code)
        if len(lower) != 1 or ord(lower) == code:
            continue
        delta = ord(lower) - code
        if result and result[-1][3] == delta:
            first, last, step, _ = result[-1]
            if code - last in (1, 2) and step in (0, code - last):
                result[-1] = (first, code, code - last, delta)
                continue
        result.append((code, code, 0, delta))
    return [(first, last, step or 1, delta) for first, last, step, delta in result]


def emit(out, kind, name, rows):
    text = ", ".join(rows)
    out.append(f"extern const std::array<{kind}, {len(rows)}> {name} = {{{{")
    line = ""
    for word in text.split(" "):
        if len(line) + len(word) > 117:
            out.append("  " + line.rstrip())
            line = ""
        line += word + " "
    out.append("  " + line.rstrip())
    out.append("}};")
    out.append("")


def main():
    if ucd.unidata_version != WANTED_VERSION:
        sys.exit(f"unicodedata2 has Unicode {ucd.unidata_version}; {WANTED_VERSION} is wanted")
    entries, pool = decompositions()
    tables = [
        (
            "std::uint32_t",
            "kCategoryRuns",
            [f"{code << 5 | CATEGORIES.index(value)}" for code, value in runs(lambda c: ucd.category(chr(c)))],
        ),
        (
            "std::uint32_t",
            "kCombiningRuns",
            [f"{code << 8 | value}" for code, value in runs(lambda c: ucd.combining(chr(c)))],
        ),
        ("std::uint32_t", "kAccentRuns", [f"{code << 1 | value}" for code, value in runs(is_stripped)]),
        ("Decomposition", "kDecompositions", [f"{{{k},{o},{n}}}" for k, o, n in entries]),
        ("std::uint32_t", "kDecompositionPool", [str(code) for code in pool]),
        ("Composition", "kCompositions", [f"{{{a},{b},{c}}}" for a, b, c in compositions()]),
        ("LowercaseRun", "kLowercaseRuns", [f"{{{a},{b},{s},{d}}}" for a, b, s, d in lowercase_runs()]),
    ]
    out = [
        f"// Unicode {WANTED_VERSION}, written by make_unicode_tables.py. Do not edit.",
        "// clang-format off",
        '#include "core/text/unicode/unicode_tables.h"',
        "",
        "namespace quire::text::unicode_tables {",
        "",
    ]
    for kind, name, rows in tables:
        emit(out, kind, name, rows)
    out.append("}  // namespace quire::text::unicode_tables")
    OUTPUT.write_text("\n".join(out) + "\n")

    header = OUTPUT.with_suffix(".h")
    lines = header.read_text().splitlines()
    sizes = {name: len(rows) for _, name, rows in tables}
    for index, line in enumerate(lines):  # the header is ours but for the lengths
        for kind, name, _ in tables:
            if line.endswith(f" {name};"):
                lines[index] = f"extern const std::array<{kind}, {sizes[name]}> {name};"
    header.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
