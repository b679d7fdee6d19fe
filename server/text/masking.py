"""What a small network should not see as it stands: addresses and codes, which it would misspell, and ALL CAPS.

A URL, an e-mail address, a path, a code, a tag, a placeholder of a program, an emoji is shown to the network as one
symbol, U+E000 or one of those after it, which it has learned to copy; in the translation the part stands again in the
symbol's place, character for character. Text without a small letter is shown in small letters, and its translation is
raised: of capitals a vocabulary has hardly more than single letters, and training text hardly any at all.

Numbers, times, prices and dates are the network's, but for ISO 8601's: languages write them in different ways.

Sources: placeholders are what Luong et al., "Addressing the Rare Word Problem in Neural Machine Translation", ACL 2015,
do to rare words; folding case is `case_markup` in OpenNMT's Tokenizer, at the scale of a sentence.
"""

import functools
import itertools
import re
from dataclasses import dataclass

FIRST_SYMBOL = 0xE000
_SYMBOLS = re.compile("[\ue000-\uf8ff]")
_LEAST_CAPITALS = 5  # of a single word that is folded: shorter ones are mostly names, such as NATO

# Top-level domains and extensions that are no words, such as may follow a full stop without a space.
_TOP_LEVEL = "com|org|net|edu|gov|info|dev|app|io|eu|de|ch|uk|fr|nl"
_EXTENSIONS = (
    "pdf|txt|png|jpe?g|gif|svg|zip|tar|gz|json|docx?|xlsx?|pptx?|csv|tsv|py|js|ts|html?|css|xml|md|mp[34]|exe|dll|log"
    r"|cfg|conf|ini|ya?ml|toml|sh|bat|iso|deb|rpm|sql|so(?=\.\d)|cpp|rs|java"
)
_ADDRESS = r"""[^\s<>"“”„«»|]*[^\s<>"“”„«»|.,:;!?'’)\]}…]"""  # noqa: RUF001  # ends before punctuation
_STEP = r"/[\w+-]++(?:\.[\w+-]++)*+"  # of a path
_DATE = r"(?:0?[1-9]|[12]\d|3[01])\.(?:0?[1-9]|1[0-2])\.(?:\d{4}|\d\d)(?![\w.]\w)"
_GROUPED = r"\d{1,3}(?:\.\d{3})++(?!\.?\d)"  # 1.250.000
_MIXED = r"(?=[A-Z0-9-]*?[A-Z])(?=[A-Z-]*+\d[A-Z-]*+\d[A-Z-]*+\d)"  # a capital, and three digits
_EMOJI = r"[\u203c\u2049\u2139\u231a-\u23ff\u2600-\u27bf\u2b05-\u2b55\u3030\U0001f000-\U0001faff]"
_EMOJI_MARK = r"[\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]"
# Each takes linear time: no two of its repetitions share a character, and it is tried where a word begins.
_PATTERNS = (
    rf"(?<![\w+.-])(?:[a-z][a-z0-9+.-]{{1,15}}+://|www\.){_ADDRESS}",
    r"(?<![\w.+%-])[\w.+%-]++@[\w-]++(?:\.[\w-]++)++",  # an e-mail address
    # A host, and a file:
    rf"(?<![\w.@-])[\w-]++(?:\.[\w-]++)*?\.(?:{_TOP_LEVEL})(?:\.[a-z]{{2}})?\b(?!\.\w)(?::\d++)?(?:/{_ADDRESS}|/)?(?![\w@-])",
    rf"(?<![\w./~\\-])[\w-]++(?:\.[\w-]++)*?\.(?:{_EXTENSIONS})(?:\.\d++)*+(?![\w-])",
    # Paths:
    rf"""(?<![^\s("'„“=:])(?:(?:~|\.\.?)(?={_STEP})|(?={_STEP}{_STEP}))(?:{_STEP})++/?""",
    rf"(?<!\w)[A-Za-z]:\\{_ADDRESS}",
    # Markup:
    r"</?[A-Za-z][^<>]{0,200}+>|</?\d{1,3}/?>",
    r"&(?:#\d{1,7}|[A-Za-z]{2,8});",
    # What programs fill in: {{ name }}, ${name}, {n, number}, %(name)s, %1$d, $HOME, %PATH%, [USER_NAME]
    r"[$%#]?\{\{[^{}]{0,80}+\}\}",
    r"[$%#]?\{ ?[^{}\s]{0,80}+(?:(?<=,) [^{}\s]{1,40}+){0,3} ?\}",
    r"(?<![\d%])%(?:\(\w{1,40}+\)|\d\$)?[-+0#]?\d{0,3}+(?:\.\d{1,2})?(?:hh?|ll?|[qzj])?[sdifuxXcp@](?!\w)",
    r"(?<![\w$])\$[A-Z_][A-Z0-9_]{2,}+|(?<![\w%])%[A-Z_][A-Z0-9_]{1,40}+%",
    r"\[(?:NAME|DATE|TIME|EMAIL|URL|ID|[A-Z]{1,40}+(?:_[A-Z]{1,40}+){1,8})\]",
    r"(?<!\w)`(?!\s)[^`]{1,80}+(?<!\s)`(?!\w)",
    # A handle, a tag or an issue:
    r"(?<![\w@#&/.-])(?:@\w++(?:[.-]\w++)*+|#\w++)",
    # A version or an address of a host, a telephone, a date of ISO 8601 or an ISBN:
    rf"(?<![\w.,:/-])(?!{_DATE}|{_GROUPED})v?\d++(?:\.\d++){{2,}}+(?:[-+][\w.]*\w)?(?![\w:])",
    r"(?<![\w.,:/-])\+\d++(?:[ /-]\d++)++",
    r"(?<![\w.,:/-])\d++(?:-\d++){2,}+(?![\w-])",
    # Codes of capitals and digits, but no words in capitals; a hash; an identifier, but no German plural for all:
    rf"(?<![\w.,:/-])(?![A-Z0-9-]*?(?<![A-Z0-9])[A-Z]{{3,}}+(?![A-Z0-9])){_MIXED}[A-Z0-9]++(?:-[A-Z0-9]++)*+(?![\w-])",
    r"(?<![\w.,:/-])[A-Z]{2,}+\d{2,}+(?![\w-])",
    r"(?<![\w.-])(?:0x[0-9A-Fa-f]++|(?=[0-9]*+[a-f])(?=[a-f]*+\d)[0-9a-f]{7,}+)(?![\w-])",
    r"(?<!\w)(?!\w*_in(?:nen)?\b)[A-Za-z0-9]++(?:_[A-Za-z0-9]++)++(?!\w)",
    # Emoji, and private characters of the text's own:
    rf"(?:[\U0001f1e6-\U0001f1ff]{{2}}|{_EMOJI}{_EMOJI_MARK}*+(?:\u200d{_EMOJI}{_EMOJI_MARK}*+)*+)++",
    r"[\ue000-\uf8ff]",
)
_SIGNS = re.compile(r"[\d@/\\{<&%$#_`[]|[^\x00-\u203b]|\.\w")  # any part has one; most sentences have none


@functools.cache
def _parts() -> "re.Pattern[str]":
    """Compiled when there is first something to find: it takes 15 ms, which a start can do without."""
    return re.compile("|".join(_PATTERNS))


@dataclass(frozen=True, slots=True)
class Masked:
    """A sentence as the network is shown it.

    Attributes:
        text: the sentence.
        parts: of the source, that symbols stand for, in their order.
        is_folded: whether it was in ALL CAPS.
        num_fit: characters before the first part that has no symbol, as there are too few; None if all have one.
    """

    text: str
    parts: tuple[str, ...] = ()
    is_folded: bool = False
    num_fit: int | None = None

    def restore(self, translation: str) -> str:
        """Returns a translation of `text` with each part in its place, once; other symbols are left out."""
        if self.is_folded:
            translation = translation.upper()
        if not self.parts:
            return translation
        left = {chr(FIRST_SYMBOL + index): part for index, part in enumerate(self.parts)}
        return _SYMBOLS.sub(lambda symbol: left.pop(symbol[0], ""), translation)


@dataclass(frozen=True, slots=True)
class Masker:
    """Shows a network what it has learned to read.

    Attributes:
        num_placeholders: symbols that it copies; parts beyond that number stay text (`Masked.num_fit`).
        folds_capitals: whether it is shown ALL CAPS in small letters.
    """

    num_placeholders: int = 0
    folds_capitals: bool = False

    def mask(self, text: str) -> Masked:
        """Returns a sentence with symbols for its parts, or as it is if some of its own were left beside them."""
        found: list[re.Match[str]] = []
        if self.num_placeholders and _SIGNS.search(text):
            found = list(itertools.islice(_parts().finditer(text), self.num_placeholders + 1))
        num_fit = None
        if len(found) > self.num_placeholders:
            num_fit = found[-1].start()
            found = [] if _SYMBOLS.search(text) else found[:-1]
        pieces, end = [], 0
        for index, part in enumerate(found):
            pieces += [text[end : part.start()], chr(FIRST_SYMBOL + index)]
            end = part.end()
        masked = "".join([*pieces, text[end:]])
        parts = tuple(part[0] for part in found)
        is_folded = self.folds_capitals and _is_all_caps(masked)
        return Masked(masked.lower() if is_folded else masked, parts, is_folded, num_fit)


NO_MASKING = Masker()


def _is_all_caps(text: str) -> bool:
    """Whether all letters are capitals, but for ß, and more than a name's; scripts without capitals never are."""
    if not all(letter.isupper() or letter == "ß" for letter in text if letter.isalpha()):
        return False
    words = [word for word in re.findall(r"[^\W\d_]+", text) if len(word) > 1]
    is_more = len(words) > 1 or any(len(word) >= _LEAST_CAPITALS for word in words)
    return is_more and len(text.lower()) == len(text)  # few letters become several
