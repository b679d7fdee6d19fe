"""The markup of one sentence, and how it is written round a translation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from server.text.alignment import WordWeights
from server.text.markup.document import STAND_IN, Mark
from server.text.markup.placing import place_marks
from server.text.masked import KeptPart


@dataclass(frozen=True, slots=True)
class SentenceMarkup:
    """The markup of a sentence.

    Attributes:
        marks: the elements of which a part or all stands in the sentence, outer before inner ones.
        kept: what each stand-in of the sentence stands for.
        escape: writes a plain text as the format does.
    """

    marks: tuple[Mark, ...]
    kept: Mapping[str, str]
    escape: Callable[[str], str]

    def write(self, source: str, translation: str, words: WordWeights | None) -> str:
        """Returns a translation with its markup.

        Args:
            source: the sentence, without markup.
            translation: of it.
            words: how both are aligned; None if that is not known.
        """
        if not self.marks:
            return self.unkept(self.escape(translation))
        return self.unkept(place_marks(self.marks, source, translation, words, self.escape))

    def unkept_parts(self, parts: Sequence[KeptPart]) -> tuple[KeptPart, ...]:
        """Returns parts of the sentence with what their stand-ins stand for."""
        return tuple(KeptPart(self.unkept(part.text), part.placement) for part in parts)

    def unkept(self, text: str) -> str:
        """Returns a text with what its stand-ins stand for."""
        return STAND_IN.sub(lambda match: self.kept.get(match[0], match[0]), text) if self.kept else text
