"""Quotations, whose marks confuse networks.

A network takes the piece of a word behind a mark for a name: it made „Don nicht gehen“ of "Don't go", and "Fourse" of
„Freiheit“, but knows the words behind a blank. So the quotation marks are carriers. A comma before the closing mark, as
English has it, is shown behind it, since there the network knows where the quotation ends. A network that has learned
no symbol as a carrier is shown carriers only where an apostrophe is in the way.
"""

import re
from collections.abc import Iterator

_CONTRACTION = r"(?=[a-z]\w*['\u2019]\w|\w+n['\u2019]t\b)"
_GUILLEMETS = "\u00ab\u00bb\u2039\u203a"  # languages differ in which one opens


def _quoted(first: str, first_of_plain: str) -> "re.Pattern[str]":
    """Returns a pattern of quotations, with groups for their marks, that looks at 200 characters of each at most.

    Args:
        first: what a quotation begins with.
        first_of_plain: what one within plain single marks begins with, if it is no decade such as '60s. Behind an "s",
            where an apostrophe may stand, it ends only if it is a single word, or before another mark, or if that is
            the "s" of 'John's'.
    """
    return re.compile(
        rf"(?=[\"'\u2018\u201c\u201e{_GUILLEMETS}])(?:"  # elsewhere nothing is tried
        rf"(?<![\w\"])(\"){first}[^\"\n]{{1,200}}?(,?\")(?![\w\"])"
        rf"|(\u201c){first}[^\u201c\u201d\n]{{1,200}}?(,?\u201d)"
        rf"|(\u201e){first}[^\u201c-\u201e\n]{{1,200}}?(,?[\u201c\u201d])"
        rf"|([{_GUILLEMETS}]){first}[^{_GUILLEMETS}\n]{{1,200}}?(,?[{_GUILLEMETS}])"
        rf"|(?<![\w'])('){first_of_plain}(?!\d0s)(?:\w{{2,}}(?=')|(?:[^'\n]|'(?=\w)){{2,200}}?"
        r"(?=,'|(?<![s\s])'|(?<='s)'|(?<=s)'(?:[.!?;:)]|\Z)))(,?')(?![\w'])"
        rf"|(\u2018){first}(?:[^\u2018\u2019\n]|\u2019(?=\w)){{1,200}}?(,?\u2019)(?!\w))"
    )


_CONTRACTED = _quoted(_CONTRACTION, r"(?=\w[^'\n]{0,100}+'\w)")
_ANY = _quoted(r"(?=\w)", r"(?=\w)")
_UNCLOSED = re.compile(
    r"([\"\u201c\u201e\u00ab\u00bb])(?=\w)[^\"\u201c-\u201e\u00ab\u00bb]*+\Z"
)  # of several sentences
_PLAIN = {**dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb", '"'), **dict.fromkeys("\u2018\u2019\u2039\u203a", "'")}
MARKS = frozenset(["'", '"', *_PLAIN])
_COMMA_WITHIN = re.compile(r""",(["'])(?:,|(?=\s))""")
_COMMA_BEHIND = re.compile(r"""([^\s])(["']),(?=\s[a-z])""")


def find_quotes(text: str, has_symbols: bool) -> Iterator[tuple[int, int]]:
    """Yields where the marks of quotations stand, each closing one with the comma before it.

    Args:
        text: a sentence.
        has_symbols: whether the network has learned symbols; else quotations with an apostrophe are found alone.
    """
    for match in (_ANY if has_symbols else _CONTRACTED).finditer(text):
        yield from (match.span(group) for group in range(1, match.re.groups + 1) if match[group])
    if has_symbols and (unclosed := _UNCLOSED.match(text)):
        yield unclosed.span(1)


def ended(translation: str, carrier: str) -> str:
    """Returns a translation with the end of a quotation before the comma that follows it within three words.

    There the source has it. Networks put it before the last verb of a German clause, as if it were a word: "Ich kann"
    nicht kommen, sagte er.

    Args:
        translation: with carriers.
        carrier: of a closing mark that has a comma.
    """
    place = rf"(?<![,.!?] ){re.escape(carrier)}((?: \w+){{1,3}}),"
    return re.sub(place, lambda match: f"{match[1].lstrip()} {carrier},", translation)


def punctuated(text: str, language: str) -> str:
    """Returns a translation, whose quotation marks are plain, with commas at their ends where its language has them.

    That is before the closing mark in English, and behind it elsewhere. Before an opening one it is everywhere:
    networks put it behind, as in: sagte er ", aber nicht heute."

    Args:
        text: a translation of a sentence with a quotation.
        language: BCP-47 code.
    """
    for mark in "'\"":
        text = text.replace(f", {mark}, ", f", {mark}").replace(f" {mark}, ", f", {mark}")
    if language.partition("-")[0] == "en":
        return _COMMA_BEHIND.sub(lambda match: _before_comma(match[1]) + match[2], text)
    return _COMMA_WITHIN.sub(r"\1,", text)


def _before_comma(last: str) -> str:
    """Returns the last character of a quotation with a comma, which stands in the place of a full stop."""
    return last if last in "?!," else "," if last == "." else f"{last},"


def is_quote(part: str) -> bool:
    """Whether a part is what `find_quotes` finds."""
    return part.removeprefix(",") in MARKS


def written(part: str) -> str:
    """Returns a quotation mark as it is written for `restore_typography`, without its comma."""
    mark = part.removeprefix(",")
    return _PLAIN.get(mark, mark)
