"""Plain stand-ins for typographic characters, and back.

Vocabularies differ in which quotation marks, dashes and blanks they know. A network is shown a plain character for one
that it does not know; where a text has typographic marks of a kind and no plain ones, its translation gets them too, in
the way of the target language.
"""

import re
from collections.abc import Mapping

STAND_INS: Mapping[str, str] = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    "\u2026": "...",
    "\u2044": "/",
}
_DOUBLE = "\u201c\u201d\u201e\u201f\u00ab\u00bb"
_APOSTROPHE = "\u2019"
_ELLIPSIS = "\u2026"
_MINUS = "\u2212"
_QUOTES: Mapping[str, tuple[str, str]] = {  # that open and close, by language
    "de": ("\u201e", "\u201c"),
    "cs": ("\u201e", "\u201c"),
    "pl": ("\u201e", "\u201d"),
    "fr": ("\u00ab\u00a0", "\u00a0\u00bb"),
    "it": ("\u00ab", "\u00bb"),
    "ru": ("\u00ab", "\u00bb"),
    "uk": ("\u00ab", "\u00bb"),
    "es": ("\u00ab", "\u00bb"),
}
_ENGLISH_QUOTES = "\u201c", "\u201d"
_SINGLE = re.compile(r"[\u201a\u2039\u203a]|\u2018(?=\S[^\u2018\u2019]*\u2019)")
_SINGLE_QUOTES: Mapping[str, tuple[str, str]] = {
    "de": ("\u201a", "\u2018"),
    "cs": ("\u201a", "\u2018"),
    "pl": ("\u201a", "\u2019"),
}
_ENGLISH_SINGLE_QUOTES = "\u2018", "\u2019"
_OPENING = re.compile(r'(?<![^\s(\[{\u2014\u2013-])"(?=\S)')
_OPENING_SINGLE = re.compile(r"(?<![^\s(\[{\"\u201c\u201e\u2014\u2013-])'(?=\w(?:[^']|'(?=\w)){0,200}'(?!\w))")
_CLOSING_SINGLE = re.compile(r"(?<=\S)'(?!\w)")
_BETWEEN_LETTERS = re.compile(r"(?<=[^\W\d_])'(?=[^\W\d_])")
_ORDINAL = re.compile(r"(?<![\w.,:])(\d{1,3})\.(?=\s[^\W\d_])")  # German's, within a sentence
ORDINAL_ENDINGS = ("st", "nd", "rd", "th")  # of English
_ENGLISH_ORDINAL = re.compile(rf"(\d(?<!\w.)\d{{0,2}})(?:{'|'.join(ORDINAL_ENDINGS)})\b")
_OTHER_ENDINGS = {"pt": "\u00ba", "it": "\u00ba", "es": ".\u00ba", "fr": "e", "nl": "e"}  # elsewhere a full stop
_AMOUNT = r"\d++(?:,\d\d(?!\d))?(?![\w.,]*\d)"
_SIGN_BEHIND = re.compile(r"\d\s?([$\u20ac\u00a3])(?!\w)")
# A no-break space, and a plain one: between the digits of a number, and behind one.
_BLANKS = [
    (re.compile(rf"(?<=\d)([\u00a0\u202f]){behind}"), re.compile(rf"(?<=\d) {behind}"))
    for behind in (r"(?=\d)", r"(?=[^\W\d]|[%\u00b0$\u20ac\u00a3])")
]
_BEFORE_NUMBER = re.compile(r"(?<![\w)])-(?=\d)")


_HOUR = re.compile(r"(\d{1,2})(?:[.:](\d\d))?")
_GERMAN_TIME = re.compile(rf"(?:{_HOUR.pattern}(?:\s?Uhr)?\s?(?:[-\u2013\u2014]|bis)\s?)?{_HOUR.pattern}\s?Uhr")


def restore_typography(source: str, translation: str, language: str) -> str:
    """Returns a translation with the typographic marks of its source's kinds, written as its language does.

    Args:
        source: as it was written.
        translation: of the source as the network was shown it.
        language: BCP-47 code of the translation's language.
    """
    translation = _quoted(source, translation, language.partition("-")[0])
    translation = _with_alike_prices(translation, language)
    if _APOSTROPHE in source and "'" not in source:
        translation = _BETWEEN_LETTERS.sub(_APOSTROPHE, translation)
    if not language.startswith("en") and _ENGLISH_ORDINAL.search(source):
        translation = _ENGLISH_ORDINAL.sub(rf"\1{ordinal_ending('', language)}", translation)
    if language.startswith("en") and _ORDINAL.search(source):
        translation = _ORDINAL.sub(_english_ordinal, translation)
    for own, other in ((_ELLIPSIS, "..."), ("...", _ELLIPSIS)):
        if own in source and other not in source:
            translation = translation.replace(other, own)
    if "\u00a0" in source or "\u202f" in source:
        translation = _with_no_breaks(source, translation)
    for mark in "'\"":
        if (escaped := f"\\{mark}") in source and source.count(escaped) == source.count(mark):
            translation = re.sub(rf"(?<!\\){mark}", lambda match: f"\\{match[0]}", translation)
    if _MINUS in source:
        translation = _BEFORE_NUMBER.sub(_MINUS, translation)
    return translation


def _with_no_breaks(source: str, translation: str) -> str:
    """Returns a translation with the no-break spaces that its source has within and behind its numbers."""
    for no_break, plain in _BLANKS:
        if (blank := no_break.search(source)) and not plain.search(source):
            translation = plain.sub(blank[1], translation)
    return translation


def _with_alike_prices(text: str, language: str) -> str:
    """Returns a text with the signs of all its prices behind these, if a network has left one before and put one there.

    What has decimals with a full stop stays, and so does English.
    """
    sign = None if language.startswith("en") else _SIGN_BEHIND.search(text)
    return re.sub(rf"(?<![\w$])\{sign[1]}({_AMOUNT})", rf"\1 {sign[1]}", text) if sign else text


def _quoted(source: str, translation: str, language: str) -> str:
    """Returns a translation with typographic quotation marks of each kind, double or single, that its source has so."""
    if '"' in translation and '"' not in source and any(mark in source for mark in _DOUBLE):
        opening, closing = _QUOTES.get(language, _ENGLISH_QUOTES)
        translation = _OPENING.sub(opening, translation).replace('"', closing)
    if "'" in translation and "'" not in source and _SINGLE.search(source):
        opening, closing = _SINGLE_QUOTES.get(language, _ENGLISH_SINGLE_QUOTES)
        translation, count = _OPENING_SINGLE.subn(opening, translation)
        translation = _CLOSING_SINGLE.sub(closing, translation, count)
    return translation


def ordinal_ending(english: str, language: str) -> str:
    """Returns what a language writes behind a number that is an ordinal: "." in German.

    Args:
        english: what English writes there, such as "th".
        language: BCP-47 code.
    """
    code = language.partition("-")[0]
    return english if code == "en" else _OTHER_ENDINGS.get(code, ".")


def clock_time(text: str, language: str) -> str:
    """Returns a German time of day, or two, as other languages write it: "8 bis 14.20 Uhr" as "8:00\u201314:20"."""
    time = _GERMAN_TIME.fullmatch(text)
    if time is None or language.startswith("de"):
        return text
    hours = [f"{hour}:{minute or '00'}" for hour, minute in _HOUR.findall(text)]
    return "\u2013".join(hours)


def _english_ordinal(match: "re.Match[str]") -> str:
    number = match[1]
    ending = "th" if number[-2:-1] == "1" else {"1": "st", "2": "nd", "3": "rd"}.get(number[-1], "th")
    return f"{number}{ending}"
