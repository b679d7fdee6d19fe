"""What is known of a text's translation, put together from its sentences; plain values, no protobuf."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from server.engine.sequence import FinishReason
from server.errors import TranslationError
from server.text.sentences import SourceSentence, SplitText
from server.translation.job import Candidate, Completion, TranslatedSentence


@dataclass(slots=True)
class TextAnswer:
    """The sentences of one text that are translated so far, or the first error of any."""

    split: SplitText | None
    error: TranslationError | None = None
    sentences: dict[int, TranslatedSentence] = field(default_factory=dict)

    @classmethod
    def of(cls, text: SplitText | TranslationError) -> "TextAnswer":
        """Starts with a text, or with the error that it is."""
        return cls(None, error=text) if isinstance(text, TranslationError) else cls(text)

    def add(self, done: Completion) -> None:
        """Takes in what became of a sentence."""
        if isinstance(done.outcome, TranslationError):
            self.error = self.error or done.outcome
        else:
            self.sentences[done.sentence_index] = done.outcome

    def in_order(self) -> list[TranslatedSentence]:
        """The sentences in reading order."""
        return [self.sentences[index] for index in sorted(self.sentences)]

    def text(self, rank: int) -> str:
        """The text of every sentence's `rank`-th best candidate, 0 the best; a sentence with fewer gives its last."""
        assert self.split is not None
        return self.split.join([candidate.text for candidate in self._candidates(rank)])

    def score(self, rank: int) -> float:
        """Mean of the candidates' scores, weighted by their tokens, of which an empty one has 1; 0 without any."""
        candidates = zip(self.in_order(), self._candidates(rank), strict=True)
        weighted = [
            (max(1, each.num_tokens), each.score) for sentence, each in candidates if sentence.source.source_ids
        ]
        num_tokens = sum(weight for weight, _ in weighted)
        return sum(weight * score for weight, score in weighted) / num_tokens if weighted else 0.0

    @property
    def finish_reason(self) -> FinishReason:
        """LENGTH if any sentence was stopped by a limit."""
        reasons = {candidate.finish_reason for candidate in self._candidates(0)}
        return FinishReason.LENGTH if FinishReason.LENGTH in reasons else FinishReason.STOP

    @property
    def num_source_tokens(self) -> int:
        """Source tokens that were translated."""
        return count_source_tokens(sentence.source for sentence in self.sentences.values())

    @property
    def num_target_tokens(self) -> int:
        """Tokens of the best candidates."""
        return sum(candidate.num_tokens for candidate in self._candidates(0))

    def _candidates(self, rank: int) -> list[Candidate]:
        return [each.candidates[min(rank, len(each.candidates) - 1)] for each in self.in_order()]


def count_source_tokens(sentences: Iterable[SourceSentence]) -> int:
    """Tokens that are translated, eos not counted; a copied sentence has none."""
    return sum(len(sentence.source_ids) - 1 for sentence in sentences if sentence.source_ids)
