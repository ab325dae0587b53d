"""The README's picture of speed is what docs/peers.csv says, with its conditions, and can be read in the light and in the dark."""

import csv
import pathlib
import re
import sys
import xml.etree.ElementTree

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "loadtest"))
import speed_picture  # noqa: E402

PICTURE = ROOT / "docs" / "speed.svg"


def words():
    root = xml.etree.ElementTree.fromstring(PICTURE.read_text())
    return [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]


def test_the_picture_is_drawn_from_the_figures():
    assert PICTURE.read_text() == speed_picture.picture(), "python loadtest/speed_picture.py"


def test_its_numbers_are_the_figures_and_each_figure_of_a_pair_is_there():
    with (ROOT / "docs" / "peers.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["case"] == "decode" and row["shape"] == "135m" and row["peer"] != "vLLM float32"]
    measured = [f"{float(row[f'{who}_tokens_per_s']):.0f}" for row in rows for who in ("quire", "peer")]
    assert len(measured) == 30 and sorted(word for word in words() if word.isdigit()) == sorted(measured)


def test_bars_are_as_long_as_their_numbers_say():
    bars = re.findall(r'width="([\d.]+)" height="15" rx="2" class="\w+"/>\n<text [^>]*>(\d+)<', PICTURE.read_text())
    assert len(bars) == 30
    scale = max(float(width) for width, _ in bars) / max(int(value) for _, value in bars)
    assert all(abs(float(width) - scale * int(value)) < 0.5 for width, value in bars)


def test_a_changed_figure_changes_the_picture(tmp_path, monkeypatch):
    text = (ROOT / "docs" / "peers.csv").read_text()
    changed = tmp_path / "peers.csv"
    changed.write_text(re.sub(r"^(135m,decode,8,128,64,llama\.cpp bf16,measured,)[\d.]+", r"\g<1>99.9", text, flags=re.MULTILINE))
    assert changed.read_text() != text
    monkeypatch.setattr(speed_picture, "FIGURES", changed)
    assert speed_picture.picture() != PICTURE.read_text()


def test_the_caption_gives_the_conditions_that_the_page_of_figures_gives():
    page = " ".join((ROOT / "docs" / "performance.md").read_text().split())
    caption = " ".join(words())
    for condition in ("two cores of an AMD EPYC (Zen 4)", "two threads", "xllamacpp"):
        assert condition in page and condition in caption, condition
    assert "three rounds" in page and "another machine of the same kind" in page and "another machine of the same kind" in caption and "three rounds" in caption and "random weights" in page.lower() and "Random weights" in caption
    assert "prompts of 128 tokens, answers of 64" in caption and "not built for this machine" in caption


def test_the_caption_fits():
    assert all(len(word) < 130 for word in words())


def luminance(colour):
    parts = [int(colour[at:at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("colours", [speed_picture.LIGHT, speed_picture.DARK], ids=["light", "dark"])
def test_it_can_be_read(colours):
    """WCAG 2.2, 1.4.3 and 1.4.11: 4.5 to 1 for text, 3 to 1 for what a chart is made of."""
    for name, least in (("text", 4.5), ("quiet", 4.5), ("quire", 3), ("llama", 3), ("vllm", 3)):
        high, low = sorted((luminance(colours[name]), luminance(colours["card"])), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= least, name
    assert "prefers-color-scheme: dark" in PICTURE.read_text()


def test_the_readme_shows_it():
    assert re.search(r"!\[[^\]]{40,}\]\(docs/speed\.svg\)", (ROOT / "README.md").read_text())
