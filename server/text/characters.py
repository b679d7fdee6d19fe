"""Which characters of a sentence a network can be shown, and what stands in the place of the others.

A character that the vocabulary spells as bytes, or not at all, turns a small network's whole translation into noise; a
rare one of its own is no better. So each character is judged: shown as it is, shown as a plainer one that means the
same, left out because it shows nothing, or kept from the network together with what belongs to it.
"""

import unicodedata
from collections.abc import Callable

from server.text.runs import Run, add_run, grown_run
from server.text.typography import STAND_INS

_FIRST_SYMBOL = "\u2190"  # an arrow. Networks drop the symbols from here on, even those that they know.
# Nor do they read blanks other than a space: the piece of a word behind one is not that of a word's beginning.

# Unknown characters that are remembered. Half, and texts of Chinese and of Korean have them judged over and over; twice
# that, and they take 4 MB.
_MOST_SHOWN = 20_000


class Characters:
    """What one network can be shown.

    Args:
        knows: whether the vocabulary has a character and the network returns it; asked seldom more than once for each.
    """

    def __init__(self, knows: Callable[[str], bool]) -> None:
        self._knows = knows
        self._known: set[str] = set(" ")
        self._shown: dict[str, str | None] = {}  # of unknown characters: what is shown instead, None if nothing can be

    def unknown_in(self, text: str) -> set[str]:
        """Returns the characters of a text that the network does not know."""
        return set(self._stand_ins(text))

    def _stand_ins(self, text: str) -> dict[str, str | None]:
        """Returns the unknown characters of a text, each with what is shown instead; None if nothing can be."""
        unknown = set(text).difference(self._known)
        if not unknown:
            return {}
        if len(self._shown) > _MOST_SHOWN:
            self._shown = {}
        shown = self._shown  # another thread may begin a new one
        for character in unknown.difference(shown):
            category = unicodedata.category(character)
            is_lost = category == "Zs" or (character >= _FIRST_SYMBOL and category in ("So", "Sm"))
            if not is_lost and self._knows(character):
                self._known.add(character)
                unknown.discard(character)
            else:
                shown[character] = self._stand_in(character)
        return {each: shown[each] for each in unknown}

    def plain(self, text: str) -> str:
        """Returns a text as the network is shown it, in NFC: with stand-ins for unknown characters that have one."""
        text = unicodedata.normalize("NFC", text)
        table = {ord(each): shown for each, shown in self._stand_ins(text).items() if shown is not None}
        return text.translate(table) if table else text

    def runs(self, text: str) -> list[Run]:
        """Returns what is to be kept from the network, in order, apart from each other."""
        hidden = {each for each, shown in self._stand_ins(text).items() if shown is None}
        if not hidden:
            return []
        runs: list[Run] = []
        for index, character in enumerate(text):
            is_free = not runs or index >= runs[-1].end
            if is_free and character in hidden and not self._is_composed(text, index):
                add_run(runs, grown_run(text, index, hidden), text)
        return runs

    def _is_composed(self, text: str, index: int) -> bool:
        """Whether a mark and the letter before it are one known character in NFC."""
        pair = text[max(0, index - 1) : index + 1]
        composed = unicodedata.normalize("NFC", pair)
        return len(composed) < len(pair) and not self.unknown_in(composed)

    def _stand_in(self, character: str) -> str | None:
        category = unicodedata.category(character)
        if category == "Cf":
            return ""
        if category == "Zs":
            return " "
        plain = STAND_INS.get(character)
        if plain is None and category == "Ll" and unicodedata.decomposition(character).startswith("<compat>"):
            plain = unicodedata.normalize("NFKC", character)  # a ligature, as PDFs have them
        if plain is None or plain == character or not all(map(self._knows, plain)):
            return None
        return plain
