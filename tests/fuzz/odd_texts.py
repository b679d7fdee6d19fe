"""Texts that readers of text stumble over, at any length."""

import unicodedata

# Repeated without end. What looks blank here is written as an escape.
# fmt: off
UNITS = (
    # Prose, lists, tables
    "A dog runs. ", "A dog runs over a green field, ", "word ", "x", "X.", "x,", "1. ", "3.14 ", "- x\n", "a\tb\t",
    # What ends no sentence
    "Dr. ", "U.S. ", "J. R. ", "B .", "etc... ", "Why?! ", "http://a.b/c?d=e.f ", "a@b.c ", "#tag ", "{x} ",
    "<b>x</b> ",
    # Names of tokens, placeholders
    "</s>", "<unk> ", "<s>x", "<pad>", ">>de<< ", "<0x0A>", "\u2581", "\u2581x", "\u2047 ", "\ue000", "\ue007x ",
    # Marks
    ".", ". ", "?", "!", ",", ";", ":", "-", "*", "/", "\\", "%s", "'", '"', "`", "(", ")", "[", "]", "(x) ", "0",
    "*__a",
    # Quotation marks
    "\u201c", "\u201d", "\u201cx\u201d ", "\u300a", "\u300b", "\u300ax\u300b", "\u00ab", "\u2039", "\u2018", "\u201e",
    # White space
    " ", "  x", "\n", "x\n", "\r\n", "\t", "\v", "\f", "\x1c", "\x85", "\u00a0", "\u1680", "\u2003", "\u2028",
    "\u2029",
    # More of it, and what looks like it
    "\u202f", "\u205f", "\u3000", "B\u3000.", "x\u3000", "\u200b", "x\u200b", "\u2060", "\ufeff", "\u00ad", "\u180e",
    # Controls, what is no character
    "\x00", "x\x00", "\x07", "\x1b[31m", "\x7f", "\x80", "\x9b", "\ufffd", "\ufffe", "\uffff", "\U0010ffff",
    "\U000e0041",
    # Directions
    "\u202e", "\u202dx", "\u2066x\u2069", "\u200ex", "\u061cx", "\u202ax", "\u0600x", "\u06dd", "\u070fx",
    "\U000110bdx",
    # Accents, compositions
    "e\u0301", "\u0301", "x\u0301\u0302\u0303", "x\u0327\u0301", "\u0e33", "\u0344", "\u1100\u1161", "\uac00",
    "\u0958",
    # Chinese, Japanese
    "\u4f60", "\u4f60\u597d\u3002", "\u3042", "\u30ab\u3099", "\uff41", "\uff76\uff9e", "\u4f60\uff0c", "\u3001",
    "\uff0e",
    # Arabic, Hebrew, Indic, Thai
    "\u0644\u0627 ", "\u0634\u064f\u0643\u0652", "\u05e9\u05c1\u05b8", "\u061f ", "\u0661 ", "\u0915\u094d\u0937",
    "\u0e2a\u0e27\u0e31",
    # What expands or changes when it is normalised
    "\ufdfa", "\ufdfa ", "\ufdfb", "\u3300", "\u33af", "\ufb03", "\u2460", "\u00bd", "\u1f82", "\u0390", "\u0130",
    "\u00df",
    # Emoji
    "\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467 ", "\U0001f1e9\U0001f1ea", "\U0001f44d\U0001f3fd",
    "1\ufe0f\u20e3", "\u2764\ufe0f",
    # Beyond the basic plane, rare letters
    "\U0001d400", "\U0001d49c ", "\U00020000", "\U00013000", "\U0001f100", "\u16a0", "\u10d0", "\u1e9e", "\u0149",
    "\u2126",
)
# fmt: on


def odd_texts(num_characters: int) -> dict[str, str]:
    """Returns texts of about so many characters, by a name in ASCII."""
    half = num_characters // 2
    nested = {
        f"{left}x{right} nested": left * half + "x" + right * half for left, right in ("()", "[]", "\u201c\u201d")
    }
    one_letter = {
        "a letter with accents": "e" + "\u0301" * num_characters,
        "a letter behind blanks": " " * num_characters + "x",
        "a letter before blanks": "x" + " " * num_characters,
        "a letter amid stops": "." * half + "x" + "." * half,
    }
    every = "".join(map(chr, range(0x80, 0x3400)))
    normalized = {
        form: unicodedata.normalize(form, every * (num_characters // len(every) + 1))[:num_characters]
        for form in ("NFC", "NFD", "NFKC", "NFKD")
    }
    repeated = {unit: unit * (num_characters // len(unit)) for unit in UNITS}
    return {ascii(name)[1:-1]: text for name, text in (repeated | nested | one_letter | normalized).items()}
