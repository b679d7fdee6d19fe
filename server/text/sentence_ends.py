"""Where sentencex ends a sentence that goes on."""

import re

_LONGEST_ORDINAL, _LONGEST_ABBREVIATION = 16, 9  # characters
_ORDINAL = re.compile(
    r"\b(?:[ai]m|zu[mr]|vom|beim|d(?:er|ie|as|en|em|es)|(?:ihr|sein|[mdk]?ein|unser|euer|jede)\w{0,2})\s\d{1,3}\.\s$",
    re.IGNORECASE,
)
_ABBREVIATION = re.compile(  # that sentencex takes for the end of an English sentence, also before a number
    r"\b(?:Mon|Tues?|Wed|Thurs?|Fri|Sat|Sun|Figs|Nos|[Vv]ol|[Cc]h|[Cc]hap|Eq|[Aa]pprox|max|Tel|Apt|Rm)\.\s$|^Max\.\s$"
)

_QUERY = re.compile(r"[!-<>-~]+=")  # of an address: a name and its value


def goes_on(line: str, end: int, language: str) -> bool:
    """Whether a sentence that seems to end goes on.

    It does behind an ordinal, as in "im 3. Stock", between an abbreviation and a number, as in "vol. 3", with a slash
    or a small letter that touches it, as in "./docs", and within an address, as in "HTTP://EXAMPLE.COM".

    Args:
        line: has the sentence.
        end: where it seems to end; something follows.
        language: BCP-47 code of the line's language.
    """
    if not line[end - 1].isspace() and (line[end] == "/" or line[end].islower() or _is_in_address(line, end)):
        return True
    if language == "en":
        return line[end].isdigit() and _ABBREVIATION.search(line, max(0, end - _LONGEST_ABBREVIATION), end) is not None
    return language == "de" and _ORDINAL.search(line, max(0, end - _LONGEST_ORDINAL), end) is not None


def _is_in_address(line: str, end: int) -> bool:
    """Whether a query begins at a place of an address, or an address in capitals goes on there."""
    address = line[:end].rsplit(None, 1)[-1].partition("://")[2]
    if not address.isascii():
        return False
    if address.endswith("?"):
        return _QUERY.match(line, end) is not None
    before = address[-2:-1]
    return address.endswith(".") and before.isalnum() and not before.islower() and line[end : end + 2].isupper()
