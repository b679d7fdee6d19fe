"""What a small network should not see as it stands: addresses and codes, which it would misspell, and ALL CAPS.

A URL, an e-mail address, a path, a code, a tag, a placeholder of a program, an emoji is shown to the network as one
symbol, U+E000 or one of those after it, which it has learned to copy; in the translation the part stands again in the
symbol's place, character for character. Text without a small letter is shown in small letters, and its translation is
raised: of capitals a vocabulary has hardly more than single letters, and training text hardly any at all.

Numbers, times, prices and dates are the network's: languages write them in different ways.

Sources: placeholders are what Luong et al., "Addressing the Rare Word Problem in Neural Machine Translation", ACL 2015,
do to rare words; folding case is `case_markup` in OpenNMT's Tokenizer, at the scale of a sentence.
"""

import itertools
import re
from dataclasses import dataclass

FIRST_SYMBOL = 0xE000
_SYMBOLS = re.compile("[\ue000-\uf8ff]")
_LEAST_CAPITALS = 5  # of a single word that is folded: shorter ones are mostly names, such as NATO

_TOP_LEVEL = "com|org|net|edu|gov|info|dev|app|io|eu|de|ch|uk|fr|nl"  # no word that may follow a forgotten space
_EXTENSIONS = (
    "pdf|txt|png|jpe?g|gif|svg|zip|tar|gz|json|docx?|xlsx?|pptx?|csv|tsv|py|js|ts|html?|css|xml|md|mp[34]|exe|dll|log"
    r"|cfg|conf|ini|ya?ml|toml|sh|bat|iso|deb|rpm|sql|so(?=\.\d)|cpp|rs|java"
)
# Without any of these there is no part; most sentences have none.
_SIGNS = re.compile(r"[\d@/\\{<&%$#_`[\u203c-\U0010ffff]|\.\w")
_ADDRESS = r"""[^\s<>"“”„«»|]*[^\s<>"“”„«»|.,:;!?'’)\]}…]"""  # noqa: RUF001  # ends before punctuation
# Each alternative takes linear time: no two of its repetitions share a character, and it is tried where a word begins.
_PARTS = re.compile(
    rf"""
    (?<![\w+.-]) (?:[a-z][a-z0-9+.-]{{1,15}}+:// | www\.) {_ADDRESS}
    | (?<![\w.+%-]) [\w.+%-]++ @ [\w-]++ (?:\.[\w-]++)++                                # an e-mail address
    | (?<![\w.@-]) [\w-]++ (?:\.[\w-]++)*? \.(?:{_TOP_LEVEL})\b (?:/{_ADDRESS} | /)? (?![\w@-])
    | (?<![\w./~\\-]) [\w-]++ (?:\.[\w-]++)*? \.(?:{_EXTENSIONS}) (?:\.\d++)*+ (?![\w-])  # a file
    | (?<![\w./~]) (?:~|\.\.?)?+ (?:/[\w+-]++(?:\.[\w+-]++)*+)++ /?                    # a path
    | (?<!\w) [A-Za-z]:\\ {_ADDRESS}
    | </?[A-Za-z][^<>]{{0,200}}+> | </?\d{{1,3}}/?> | &(?:\#\d{{1,7}}|[A-Za-z]{{2,8}});      # markup
    | [$%\#]?\{{\{{[^{{}}]{{0,80}}+\}}\}} | [$%\#]?\{{[^{{}}]{{0,80}}+\}}            # what programs fill in
    | (?<![\d%]) % (?:\(\w{{1,40}}+\)|\d\$)? [-+0\#]? \d{{0,3}}+ (?:\.\d{{1,2}})? (?:hh?|ll?|[qzj])? [sdifuxXcp@] (?!\w)
    | (?<![\w$]) \$[A-Z_][A-Z0-9_]{{2,}}+ | (?<![\w%]) %[A-Z_][A-Z0-9_]{{1,40}}+% | \[[A-Z_]{{2,40}}+\]
    | `[^`]{{1,80}}+`
    | (?<![\w@\#&/.-]) [@\#]\w++ (?:[.-]\w++)*+                                        # a handle, a tag, an issue
    | (?<![\w.,:/-]) v?\d++ (?:\.\d++){{2,}}+ (?:[-+][\w.]*\w)? (?![\w:])              # a version, an address
    | (?<![\w.,:/-]) \+\d++ (?:[ /-]\d++)++ | (?<![\w.,:/-]) \d++ (?:-\d++){{2,}}+ (?![\w-])  # a telephone, an ISBN
    | (?<![\w.,:/-]) (?=[A-Z0-9-]*?[A-Z]) (?=[A-Z-]*+\d[A-Z-]*+\d[A-Z-]*+\d) [A-Z0-9]++ (?:-[A-Z0-9]++)*+ (?![\w-])
    | (?<![\w.,:/-]) [A-Z]{{2,}}+\d{{2,}}+ (?![\w-])                                      # a voucher, a flight
    | (?<![\w.-]) (?: 0x[0-9A-Fa-f]++ | (?=[0-9]*+[a-f]) (?=[a-f]*+\d) [0-9a-f]{{7,}}+ ) (?![\w-])  # a hash
    | (?<!\w) [A-Za-z0-9]++ (?:_[A-Za-z0-9]++)++ (?!\w)                                # an identifier
    | (?:[\U0001f1e6-\U0001f1ff]{{2}}                                                  # emoji
        | [\u203c\u2049\u2139\u231a-\u23ff\u2600-\u27bf\u2b05-\u2b55\u3030\U0001f000-\U0001faff]
          [\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*+
          (?:\u200d [\u2600-\u27bf\U0001f300-\U0001faff] [\ufe0f\U0001f3fb-\U0001f3ff]*+)*+
      )++
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Masked:
    """A sentence as the network is shown it.

    Attributes:
        text: the sentence.
        parts: of the source, that symbols stand for, in their order.
        is_folded: whether it was in ALL CAPS.
    """

    text: str
    parts: tuple[str, ...] = ()
    is_folded: bool = False

    def restore(self, translation: str) -> str:
        """Returns a translation of `text` with the parts in their places; symbols that stand for none are left out."""
        if self.is_folded:
            translation = translation.upper()
        return _SYMBOLS.sub(self._part, translation) if self.parts else translation

    def _part(self, symbol: "re.Match[str]") -> str:
        index = ord(symbol[0]) - FIRST_SYMBOL
        return self.parts[index] if index < len(self.parts) else ""


@dataclass(frozen=True, slots=True)
class Masker:
    """Shows a network what it has learned to read.

    Attributes:
        num_placeholders: symbols that it copies; parts beyond that number stay text.
        folds_capitals: whether it is shown ALL CAPS in small letters.
    """

    num_placeholders: int = 0
    folds_capitals: bool = False

    def mask(self, text: str) -> Masked:
        """Returns a sentence with symbols for its parts. One that has such symbols already keeps its parts."""
        parts: list[str] = []
        masked = text
        if self.num_placeholders and _SIGNS.search(text) and not _SYMBOLS.search(text):
            found = itertools.islice(_PARTS.finditer(text), self.num_placeholders)
            pieces, end = [], 0
            for part in found:
                pieces += [text[end : part.start()], chr(FIRST_SYMBOL + len(parts))]
                parts.append(part[0])
                end = part.end()
            masked = "".join([*pieces, text[end:]])
        is_folded = self.folds_capitals and _is_all_caps(masked)
        return Masked(masked.lower() if is_folded else masked, tuple(parts), is_folded)


NO_MASKING = Masker()


def _is_all_caps(text: str) -> bool:
    """Whether there is no small letter, but more than a name in capitals."""
    if not text.isupper() or len(text.lower()) != len(text):  # few letters become several
        return False
    words = [word for word in text.split() if any(map(str.isalpha, word))]
    return len(words) > 1 or sum(map(str.isalpha, text)) >= _LEAST_CAPITALS
