"""Text that is hard on tokenizers, drawn from a seeded generator."""

import functools
import string
import unicodedata

from tokenizers import normalizers, pre_tokenizers

ALPHABETS = {
    "latin": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "accents": "àáâãäåæçèéêëìíîïñòóôõöøùúûüýÿčďěňřšťůžğışąęłńśźżőűǆǅǄßſ",
    "decomposed": "aeiounc\u0301\u0300\u0308\u0327\u0302\u030a\u0323",
    "greek": "αβγδεζηθικλμνξοπρσςτυφχψωΑΒΓΔΆΈΐΰ",
    "cyrillic": "абвгдежзийклмнопрстуфхцчшщъыьэюяАБВҐЇ",
    "hebrew": "אבגדהוזחטיכלמנסעפצקרשת\u05b0\u05b8\u05bc",
    "arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنهوي\u064b\u064e\u0651",
    "devanagari": "अआइईउकखगघचजटडतदनपबमयरलवशसह\u093e\u093f\u0940\u094d\u093c",
    "thai": "กขคงจชซญดตถทนบปผพฟมยรลวสหอ\u0e31\u0e34\u0e48\u0e49",
    "khmer": "កខគឃងចឆជឈញដឋ\u17b6\u17b7\u17d2",
    "hangul": "가각간갇갈감값강개객거건검게격견결경한국어말",
    "jamo": "\u1100\u1101\u1102\u1161\u1162\u1163\u11a8\u11a9\u11ab",
    "han": "一二三四五六七八九十人大中国日本語我想天地玄黄宇宙洪荒",
    "kana": "あいうえおかきくけこがぎぐげごアイウエオカキクケコパピプペポ",
    "ethiopic": "ሀሁሂሃሄህሆለሉሊላሌልሎ",
    "digits": "0123456789",
    "numbers": "²³¹½¼Ⅷⅷ①⑳٠١٢٣४५६๔௧〇㊿",
    "punctuation": "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    "symbols": "¡¿«»–—‘’“”…‹›€£¥©®™°±×÷→⇒∑√∞≤≥♥♦●◆、。「」！？～・",
    "compatibility": "ﬁﬂﬀｱｲＡＢ㎏㏒ﷺℌ℡①ẛ̣",
    "singletons": "\u212b\u2126\u1f71\u0340\u0374\u2000\u037e",
}
BLANKS = [
    " ",
    " ",
    " ",
    "  ",
    "\t",
    "\n",
    "\r\n",
    "\n\n",
    "\u00a0",
    "\u3000",
    "\u2028",
    "\u0085",
    "\u200b",
    "   ",
    " \n ",
    "\r",
]
EMOJI = ["😀", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "🇯🇵🇫🇷", "❤️", "1️⃣", "🧑🏿‍🚀", "👁️‍🗨️", "\u200d", "\ufe0f", "Ⓐ🅰"]
CONTRACTIONS = [
    "'s",
    "'S",
    "'t",
    "'re",
    "'RE",
    "'ve",
    "'Ve",
    "'m",
    "'ll",
    "'LL",
    "'d",
    "'ſ",
    "’s",
    "'",
    "''",
    "'x",
    "I'm",
    "we'Re",
]
CONTROLS = [
    "\x00",
    "\x01",
    "\x07",
    "\x1b[0m",
    "\x7f",
    "\x80",
    "\x9f",
    "\ufeff",
    "\ufffd",
    "\u202e",
    "\u00ad",
    "\ufffe",
    "\U0010ffff",
]
TOKEN_LOOKALIKES = ["<|im_", "<|", "|>", "<s", "</s", "<0x41>", "<unk>", "<", "▁", "▁▁", "Ġ", "ĠĠthe", "Ċ"]


def reference_is_older(character):
    """The `tokenizers` package normalizes and knows marks and punctuation by older Unicode data than quire's 16.0. The
    characters that came since are not compared."""
    probe = "a\u0301" + character + "\u0323"
    is_punctuation = unicodedata.category(character)[0] == "P" or (
        character.isascii() and character in string.punctuation
    )
    return (
        normalizers.NFKD().normalize_str(probe) != unicodedata.normalize("NFKD", probe)
        or normalizers.NFC().normalize_str(probe) != unicodedata.normalize("NFC", probe)
        or (normalizers.StripAccents().normalize_str(character) == "") != (unicodedata.category(character)[0] == "M")
        or (len(pre_tokenizers.Punctuation().pre_tokenize_str("a" + character)) == 2) != is_punctuation
    )


@functools.cache
def assigned():
    """Code points of characters. To find them takes seconds."""
    return [
        code
        for code in range(0x110000)
        if unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co") and not reference_is_older(chr(code))
    ]


def word(rng):
    alphabet = ALPHABETS[rng.choice(list(ALPHABETS))]
    # The squared draw makes some letters frequent, so that trained vocabularies have long tokens.
    return "".join(alphabet[int(rng.random() ** 2 * len(alphabet))] for _ in range(1 + int(rng.random() ** 2 * 10)))


def training_lines(rng, count):
    vocabulary = [word(rng) for _ in range(3000)]
    return [
        " ".join(vocabulary[int(rng.random() ** 3 * len(vocabulary))] for _ in range(rng.randrange(1, 20)))
        + rng.choice(["", ".", "!", "\n", "'s", "  "])
        for _ in range(count)
    ]


def text(rng, tokens):
    """tokens: added tokens to mention."""
    parts = []
    for _ in range(rng.randrange(1, 14)):
        kind = rng.random()
        if kind < 0.45:
            parts.append(word(rng))
        elif kind < 0.70:
            parts.append(rng.choice(BLANKS))
        elif kind < 0.76:
            parts.append(rng.choice(EMOJI))
        elif kind < 0.82:
            parts.append(rng.choice(CONTRACTIONS))
        elif kind < 0.86:
            parts.append(rng.choice(CONTROLS))
        elif kind < 0.92 and tokens:
            parts.append(
                rng.choice(["", "", " ", "a", "\n "]) + rng.choice(tokens) + rng.choice(["", "", " ", "b", "  \t"])
            )
        elif kind < 0.94:
            parts.append(rng.choice(TOKEN_LOOKALIKES))
        elif kind < 0.96:
            run = rng.choice([word(rng)[0], rng.choice(BLANKS), rng.choice(EMOJI)])
            parts.append(run * rng.randrange(2, 80))
        else:
            parts.append("".join(chr(rng.choice(assigned())) for _ in range(rng.randrange(1, 6))))
    return "".join(parts)


def damaged(rng, valid_text):
    """The text's bytes, some changed, dropped or inserted."""
    data = bytearray(valid_text.encode())
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(data) + 1)
        how = rng.randrange(3)
        if how == 0:
            data[at : at + 1] = bytes([rng.randrange(128, 256)])
        elif how == 1:
            del data[at : at + 1]
        else:
            data[at:at] = rng.choice(
                [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\xf0\x9f"]
            )
    return bytes(data)
