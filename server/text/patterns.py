"""What no network should rewrite, as patterns find it: addresses, codes, markup, placeholders of programs, emoji.

Numbers, times, prices and dates are the network's, since languages write them in different ways. Dates of ISO 8601,
opening hours, ranges of prices and equations are not: networks tear them apart.
"""

import functools
import re
from collections.abc import Iterator

from server.text.runs import has_words
from server.text.term_table import BY_CHARACTER

# Letters that may touch a part without being of its word: of scripts without blanks, and of Korean, whose particles do.
# Each is replaced by a character that Unicode does not assign, so that \w does not match it.
_TOUCHING = re.compile(f"[{BY_CHARACTER}\u3005-\u3007\uac00-\ud7a3]")
_LETTER = "\u0378"

# Top-level domains and extensions that are no words, such as may follow a full stop without a space.
_TOP_LEVEL = "com|org|net|edu|gov|info|dev|app|io|eu|de|ch|uk|fr|nl"
_EXTENSIONS = (
    "pdf|txt|png|jpe?g|gif|svg|zip|tar|gz|json|docx?|xlsx?|pptx?|csv|tsv|py|js|ts|html?|css|xml|md|mp[34]|exe|dll|log"
    r"|cfg|conf|ini|ya?ml|toml|sh|bat|iso|deb|rpm|sql|so(?=\.\d)|cpp|rs|java"
)
_OUTSIDE, _PUNCTUATION = r"""\s<>"“”„«»|\u3000-\u3004\u3008-\u303f\uff00-\uffef""", r""".,:;!?'’)\]}…"""  # noqa: RUF001  # of an address
_LETTERS = rf"{_LETTER}++(?:[0-9]++{_LETTER}++)*+"
# It ends before punctuation, but not before the bracket that closes Mercury_(planet). Letters that touch a part belong
# to it behind a sign. Behind a few digits or capitals they do in a whole step of a path, as in Wikipedia's.
_TITLE = rf"[0-9A-Z]{{1,4}}+{_LETTERS}"
_SLASH = rf"(?<=/wiki)/{_TITLE}(?![^\s/?#])|/{_TITLE}(?=[/?#])|/"
_INSIDE = (
    rf"\([^(){_OUTSIDE}]*+\)|{_SLASH}|[^(/{_OUTSIDE}{_PUNCTUATION}{_LETTER}]++|\("
    rf"|(?<=[/\\=?&#_%.-]){_LETTERS}"
)
_ADDRESS = rf"(?:[{_PUNCTUATION}]*+(?:{_INSIDE}))++"
_WORD = rf"[^{_OUTSIDE}\\/:*?,;]++"
_FOLDER = rf"{_WORD}(?:(?: {_WORD}){{0,2}}? (?![a-z]){_WORD})?\\"  # of Windows: its name may have blanks
_STEP = r"/[\w+-]++(?:\.[\w+-]++)*+"  # of a path
_DATE = r"(?:0?[1-9]|[12]\d|3[01])\.(?:0?[1-9]|1[0-2])\.(?:\d{4}|\d\d)(?![\w.]\w)"
_GROUPED = r"\d{1,3}(?:\.\d{3})++(?!\.?\d)"  # 1.250.000
_HOUR, _HALF = r"\d{1,2}(?:[:.]\d\d)?", r"\s?(?:[ap]m|[ap]\.m\.)"
_MIXED = r"(?=[A-Z0-9-]*?[A-Z])(?=[A-Z-]*+\d[A-Z-]*+\d[A-Z-]*+\d)"  # a capital, and three digits
_TERM = r"[-\u2212]?(?:\d++(?:[.,]\d++)*+[A-Za-z]?|[A-Za-z])[\xb2\xb3]?(?!\w)"  # 3x²
_BEHIND = r"(?:(?<=[dfsu])(?:x(?=%)|px|[kKMGT]?i?B)|(?<=[dfu])m?s)?(?!\w)"  # a conversion of printf: %dx%d, %dms, %dMB
_UUID = r"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}"
_MONEY = r"$\u00a2-\u00a5\u20a0-\u20bf"  # signs of currencies
_EMOJI = r"[\u203c\u2049\u2139\u231a-\u23ff\u2600-\u27bf\u2b05-\u2b55\u3030\U0001f000-\U0001faff]"
_EMOJI_MARK = r"[\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]"
# Tags of ERB and EJS that write something: <%= name %>, <%- name %>, but neither <% if a %> nor <%= form do |f| %>.
OUTPUT = r"<%(?:=[^<>%|]{0,80}+(?<! do )|-\s?(?!(?:begin|break|else|end|ensure|next|rescue)(?![\w.]))[\w.]{1,80}+\s?)%>"
# Each takes linear time: its repetitions share no character or are bounded, and it is tried where a word begins.
_PATTERNS = (
    rf"(?<![\w+.-])(?:[A-Za-z][A-Za-z0-9+.-]{{1,15}}+://|www\.){_ADDRESS}",
    r"(?<![\w.+%-])[\w.+%-]++@[\w-]++(?:\.[\w-]++)++",  # an e-mail address
    # A host, and a file:
    rf"(?<![\w.@-])[\w-]++(?:\.[\w-]++)*?\.(?:{_TOP_LEVEL})(?:\.[a-z]{{2}})?\b(?!\.\w)(?::\d++)?(?:/{_ADDRESS}|/)?(?![\w@-])",
    rf"(?<![\w./~\\-])[\w-]++(?:\.[\w-]++)*?\.(?:{_EXTENSIONS})(?:\.\d++)*+(?![\w-])",
    # Paths:
    rf"""(?<![^\s("'„“=:{_LETTER}])(?:(?:~|\.\.?)(?={_STEP})|(?={_STEP}{_STEP}))(?:{_STEP})++/?""",
    rf"(?<!\w)[A-Za-z]:\\(?:(?:{_FOLDER})++(?:{_ADDRESS})?+|{_ADDRESS})",
    # Markup:
    r"</?[A-Za-z][^<>]{0,200}+>|</?\d{1,3}/?>|\*{2,}+|~~++(?!\s*+\d)",
    r"&(?:#\d{1,7}|[A-Za-z]{2,8});",
    # What programs fill in: '{', {{ name }}, ${name}, {n, number}, %(name)s, %1$d, $t(key), %PATH%, [[1]], [NAME]
    OUTPUT,
    r"'[{}]+'|\[\[\w{1,40}+\]\]",
    r"[$%#]?\{\{[^{}]{0,80}+\}\}",
    r"[$%#]?\{ ?[^{}\s]{0,80}+(?:(?<=,) [^{}\s]{1,40}+){0,3} ?\}",
    r"(?<!%)%%(?!%)",
    r"(?<![\d%])%(?:\(\w{1,40}+\)|\d\$)?[-+0#]?\d{0,3}+(?:\.\d{1,2})?(?:hh?|ll?|[qzj])?[sdifuxXcp@]" + _BEHIND,
    # Mathematics between dollars, which has what no price has:
    r"(?<![\w$\\])\$(?=[^$\n]{0,100}[\\^_=])[^\s$](?:[^$\n]{0,100}[^\s$\\])?\$(?![\w$])",
    r"(?<![\w$])\$(?:t\([^()\s]{1,80}+\)|[A-Z_][A-Z0-9_]{2,}+|[a-z]\w{0,40}+(?![\w$]))|(?<![\w%])%[A-Z_][A-Z0-9_]{1,40}+%",
    # __NAME__ and :name
    r"(?<!\w)__[A-Za-z0-9]++(?:_[A-Za-z0-9]++)*+__(?!\w)|(?<!\S):[a-z]\w{0,40}+(?![\w:])",
    r"\[(?:NAME|DATE|TIME|EMAIL|URL|ID|[A-Z]{1,40}+(?:_[A-Z]{1,40}+){1,8})\]",
    r"(?<!\w)`(?!\s)[^`]{1,80}+(?<!\s)`(?!\w)",
    # A handle, a tag or an issue:
    rf"(?<![\w@#&/.-])(?:[@#]{_LETTER}[\w{_LETTER}]*+|@\w++(?:[.-]\w++)*+|#(?!(?:st|nd|rd|th)\b)(?:[^\W\d]\w*+{_LETTER}{{2,4}}+(?![\w{_LETTER}])|\w++))",
    r"(?<![\w#&])#(?=(?:st|nd|rd|th)\b|[^\w#]|\Z)",
    # A version or an address of a host, telephones, dates of ISO 8601 or an ISBN:
    rf"(?<![\w.,:/-])(?!{_DATE}|{_GROUPED})v?\d++(?:\.\d++){{2,}}+(?:[-+][\w.]*\w)?(?::\d{{2,5}})?+(?!:?\w)",
    r"(?<![\w.,:/-])\+\d++(?: ?\(\d{1,5}\)[ /-]?\d++(?:[ /-]\d++)*+|(?:[ /-]\d++)++)",
    r"(?<!\w)\((?:\d{3}\) ?\d{3}-\d{4}|0\d{2,4}\)[ /]?\d{3,}+(?:[ -]\d++)*+)(?![\w-])",
    r"(?<![\w.,:/-])\d++(?:-\d++){2,}+(?:T\d\d:\d\d(?::\d\d(?:\.\d++)?)?(?:Z|[+-]\d\d:?\d\d)?)?(?![\w-])",
    # Codes of capitals and digits, but no words in capitals; a hash; an identifier, but no German plural for all:
    rf"(?<![\w.,:/-])(?![A-Z0-9-]*?(?<![A-Z0-9])[A-Z]{{3,}}+(?![A-Z0-9])){_MIXED}[A-Z0-9]++(?:-[A-Z0-9]++)*+(?![\w-])",
    r"(?<![\w.,:/-])[A-Z]{2,}+\d{2,}+(?![\w-])",
    rf"(?<![\w.-])(?:0x[0-9A-Fa-f]++|(?=[0-9]*+[a-f])(?=[a-f]*+\d)[0-9a-f]{{7,}}+|{_UUID})(?![\w-])",
    r"(?<!\w)(?!\w*_in(?:nen)?\b)[A-Za-z0-9]++(?:_[A-Za-z0-9]++)++(?!\w)",
    r"(?<![\w-])[a-z][a-z0-9]++(?:[A-Z][a-z0-9]++)++(?![\w-])",  # camelCase, but neither iPhone nor macOS
    # Operators, rules and ". . ." between blanks. Dashes are punctuation. Of single signs, what no sentence needs.
    r"(?<!\S)(?:(?![-.]+(?!\S)|\.)[-=!<>+*#~|&:^_/\\.]{2,40}+|[=<>~|^_\\]|\.(?: \.)++)(?!\S)",
    r"(?<![\w-])--[a-z][\w-]*+",  # a flag of a command
    r"(?<![\\\w])\\[abfnrtv0](?![a-z])",  # an escape that is spelled out
    r"(?<!\S)\[[ xX]?\](?=\s)",  # the box of a task
    # Opening hours, which networks tear apart:
    rf"(?<![\w.,:]){_HOUR}(?:{_HALF})?\s?(?:[-\u2013\u2014]|to|until)\s?{_HOUR}{_HALF}(?!\w)",
    rf"(?<![\w.,:]){_HOUR}(?:\s?Uhr)?\s?(?:[-\u2013\u2014]|bis)\s?{_HOUR}\s?Uhr(?!\w)",
    # A currency sign without a number, rows of them, ranges of prices, and equations:
    rf"[{_MONEY}]{{2,}}+(?!\d)",
    rf"(?<![\w{_MONEY}])(?<!\d[ \u00a0\u202f])[{_MONEY}](?![\w{_MONEY}]|[ \u00a0\u202f]\d)",
    r"(?<![\w$\u20ac\u00a3])[$\u20ac\u00a3]\d+(?:[.,]\d+)*+\s?[-\u2013]\s?[$\u20ac\u00a3]\d+(?:[.,]\d+)*+(?!\w)",
    r"(?<![\w.,])\d+(?:[.,]\d+)*+(?:\s?[-+*/\u00d7\u00f7\u2212]\s?\d+(?:[.,]\d+)*+){1,9}\s?=\s?\d+(?:[.,]\d+)*+(?!\w)",
    # An equation with a letter, and a section or an article of a law:
    rf"(?<![\w.,'\u2019-])[A-Za-z](?:\s?[=\u2260\u2264\u2265]\s?|\s[<>]\s){_TERM}(?:\s?[-+*/\u00d7\u2212]\s?{_TERM}){{0,9}}",
    r"(?:\u00a7{1,2}|(?<!\w)Art\.)\s?\d++[a-z]?(?!\w)",
    # Feet and inches:
    r"(?<!\w)\d{1,2}(?:['\u2019\u2032]\s?\d{1,2}(?:[\"\u201d\u2033]|'')|\s?ft\.?\s\d{1,2}\s?in\b)",
    r"(?<![\w:]):[a-z][a-z0-9_+-]{1,30}:(?![\w:])",  # the name of an emoji
    # Emoji, and private characters of the text's own:
    rf"(?:[\U0001f1e6-\U0001f1ff]{{2}}|{_EMOJI}{_EMOJI_MARK}*+(?:\u200d{_EMOJI}{_EMOJI_MARK}*+)*+)++",
    r"[\ue000-\uf8ff\U000f0000-\U000ffffd]",
)
# Where a part may begin: neither within a word, nor at a blank, nor with a plain word of two letters or more. So the
# patterns, which are tried one after the other, are tried at few places of a sentence, and take a sixth of the time.
_BEGIN = r"(?!(?<=\w)[A-Za-z0-9]|[A-Za-z][a-z]++[ ,]| )"
# Any part has one: a character, or two of which the set at the beginning has the first or, in "aB", the second one. A
# pattern that begins with a set is searched for in a fourth of the time of one that begins with alternatives.
_SIGNS = re.compile(
    r"[A-Z.:*+!\d@/\\{<>&|%$#_`[=~^\xa2-\xa5\u203c-\U0010ffff-]"
    r"(?:(?<![A-Z.:*+!-])|(?<=[*:+!-])[*:+!-]|(?<=[.:])(?:\w| \.)|(?<=[a-z0-9][A-Z]))"
)
# Emphasis: what stands before and behind it, and its content. `__name__` without a blank is a name.
_EMPHASIS = re.compile(
    r"(?<![\w*\\])(\*{1,3}+)(?![\s*])[^*\n]{1,200}+(?<![\s\\])(\1)(?![\w*])"
    r"|(?<![\w_\\])(_)(?![\s_])[^_\n]{1,200}+(?<!\s)(_)(?![\w_])"
    r"|(?<![\w_])(__)(?![\s_])(?=\S{0,200}+\s)[^_\n]{1,200}+(?<!\s)(__)(?![\w_])"
    r"|\A(\*{1,3}+)(?=\w)"  # round several sentences, of which this is the first one
)
# What only programs read if it is all of a text: codes of languages but for words of English and German, and torch.nn.
_OF_PROGRAMS = re.compile(
    "a[frz]|b[gns]|c[asy]|de|e[lntu]|f[air]|g[alu]|h[ruy]|k[akmnou]|l[btv]|m[klnrst]|n[beln]|p[lt]|r[ou]|s[iklqrvw]"
    r"|t[eghlrt]|u[krz]|vi|xh|y[io]|zh|[a-z]\w++(?:\.[A-Za-z]\w++)++"
)
_INLINE = (
    "a|abbr|b|bdi|bdo|big|c|cite|code|del|dfn|em|font|g|i|ins|kbd|mark|mrk|pc|q|rp|rt|ruby|s|samp|small|span|strike|strong"
    "|sub|sup|tt|u|v|var"
)
# What has a letter and is a mark all the same: tags round words, escapes, boxes. A tag by itself stands for a word.
_MARK = re.compile(rf"</[^<>]+>|<(?:{_INLINE}|\d+)(?:\s[^<>]*)?(?<!/)>|\\\w|\[x?\]", re.IGNORECASE)


def find_parts(text: str) -> Iterator[tuple[int, int]]:
    """Yields where the parts of a text stand that are to be copied character for character, in order.

    Args:
        text: a sentence.
    """
    text = text if text.isascii() else _TOUCHING.sub(_LETTER, text)
    if _OF_PROGRAMS.fullmatch(text):
        yield 0, len(text)
    elif _SIGNS.search(text):
        yield from (match.span() for match in _parts().finditer(text))


def find_emphasis(text: str) -> Iterator[tuple[int, int]]:
    """Yields where the marks of emphasis stand that are round words, such as those of `*this*`, in order."""
    for match in _EMPHASIS.finditer(text):
        yield from (match.span(group) for group in range(1, match.re.groups + 1) if match[group])


def is_mark(part: str) -> bool:
    """Whether a part has no place in a sentence's grammar: a tag round words, an escape, or signs alone."""
    return _MARK.fullmatch(part) is not None or not has_words(part)


@functools.cache
def _parts() -> "re.Pattern[str]":
    """Compiled when there is first something to find: it takes 15 ms, which a start can do without."""
    return re.compile(f"{_BEGIN}(?:{'|'.join(_PATTERNS)})")
