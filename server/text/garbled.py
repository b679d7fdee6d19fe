"""Whether a model has written what no translation of a sentence is: bytes that are no text, or capitals without sense.

Small networks do so over a character that they hardly know. Masking keeps such characters from them as far as it can
(`server.text.characters`), so what is found here says that it could not.
"""

import re

_CAPITALS = "".join(re.escape(chr(code)) for code in range(0x80, 0x590) if chr(code).isupper())
_CAPITAL = f"[A-Z{_CAPITALS}]"  # of Latin, Greek, Cyrillic and Armenian
# Five capitals, with single blanks between. Four, and German "WLAN" for "wi-fi" is one; ten, and few are found.
# A pattern that begins with a set is searched for in a third of the time of one that begins with a group.
_RUN = re.compile(f"{_CAPITAL} ?(?:{_CAPITAL} ?){{3}}{_CAPITAL}+(?: {_CAPITAL}+)*")
_TWO = re.compile(_CAPITAL * 2)
_LEAST_INVENTED = 5  # capitals in a row that no translation has of its own; German has "WLAN" for "Wi-Fi"
_INVENTED = re.compile(rf"[^\W\d_a-z]{{{_LEAST_INVENTED}}}")  # what any invented word has
_WORD = re.compile(r"[^\W\d_]+")
_NO_TEXT = "\ufffd"  # what bytes are decoded to that are no text


def is_garbled(source: str, translation: str) -> bool:
    """Says whether a translation has U+FFFD, or a run of capitals, and the source has none.

    Args:
        source: a sentence.
        translation: of it, as the model has written it. One word that the source has in small letters is no run.
    """
    if _NO_TEXT in translation and _NO_TEXT not in source:
        return True
    run = _RUN.search(translation)
    return run is not None and not _TWO.search(source) and (" " in run[0] or run[0] not in source.upper())


def has_invented_capitals(source: str, translation: str) -> bool:
    """Says whether a translation has a word in capitals that the source has in no case, and is itself no heading."""
    if source.isupper() or not _INVENTED.search(translation):
        return False
    words = {word for word in _WORD.findall(translation) if len(word) >= _LEAST_INVENTED and word.isupper()}
    return bool(words) and not words.issubset(map(str.upper, _WORD.findall(source)))
