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
