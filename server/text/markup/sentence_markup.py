"""The markup of one sentence, and how it is written round a translation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from server.text.alignment import WordWeights
from server.text.markup.document import STAND_IN, Mark
from server.text.markup.placing import place_marks
from server.text.masked import KeptPart


@dataclass(frozen=True, slots=True)
class TagText:
    """A text that stands in a tag of a sentence, such as the title of a link.

    Attributes:
        source: as the document has it, but for references and white space.
        leading: what stands before its sentences.
        sentences: their numbers among the sentences of `SplitText` that stand within tags.
    """

    source: str
    leading: str
    sentences: range


@dataclass(frozen=True, slots=True)
class SentenceMarkup:
    """The markup of a sentence.

    Attributes:
        marks: the elements of which a part or all stands in the sentence, outer before inner ones.
        kept: what each stand-in of the sentence stands for.
        escape: writes a plain text as the format does.
        texts: what each stand-in of the marks, and of what is kept, stands for.
    """

    marks: tuple[Mark, ...]
    kept: Mapping[str, str]
    escape: Callable[[str], str]
    texts: Mapping[str, TagText] = field(default_factory=dict)

    def write(
        self, source: str, translation: str, words: WordWeights | None, texts: Mapping[str, str] | None = None
    ) -> str:
        """Returns a translation with its markup.

        Args:
            source: the sentence, without markup.
            translation: of it.
            words: how both are aligned; None if that is not known.
            texts: the translations of `self.texts`, by their stand-ins; None leaves them as they are.
        """
        if not self.marks:
            return self.unkept(self.escape(translation), texts)
        return self.unkept(place_marks(self.marks, source, translation, words, self.escape), texts)

    def unkept_parts(self, parts: Sequence[KeptPart]) -> tuple[KeptPart, ...]:
        """Returns parts of the sentence with what their stand-ins stand for."""
        return tuple(KeptPart(self.unkept(part.text), part.placement) for part in parts)

    def unkept(self, text: str, texts: Mapping[str, str] | None = None) -> str:
        """Returns a text with what its stand-ins stand for; `texts` as in `write`."""
        if self.kept:
            text = STAND_IN.sub(lambda match: self.kept.get(match[0], match[0]), text)
        if self.texts:
            sources = texts or {stand_in: each.source for stand_in, each in self.texts.items()}
            text = STAND_IN.sub(lambda match: sources.get(match[0], match[0]), text)
        return text
