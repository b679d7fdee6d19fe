"""What is known of a text's translation, put together from its sentences; plain values, no protobuf."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from server.bundle.tokenizer import Tokenizer
from server.decoding.result import FinishReason, Result, Timings
from server.errors import TranslationError
from server.text.masked import KeptPart, Restored, clean
from server.text.sentences import SourceSentence, SplitText
from server.translation.detection import DetectedLanguage
from server.translation.legs import Leg


@dataclass(frozen=True, slots=True)
class Candidate:
    """One translation of a sentence: its text, score, target tokens (eos not counted) and why it ended."""

    text: str
    score: float
    num_tokens: int
    finish_reason: FinishReason


@dataclass(frozen=True, slots=True)
class TranslatedSentence:
    """A sentence with its candidates, best first, at least one, and the time that it took.

    Attributes:
        kept: parts of the source that no model was shown, as they stand in the best candidate.
    """

    source: SourceSentence
    candidates: tuple[Candidate, ...]
    timings: Timings = field(default_factory=Timings)
    kept: tuple[KeptPart, ...] = ()

    @classmethod
    def copied(cls, source: SourceSentence) -> "TranslatedSentence":
        """Returns a sentence that is its own translation."""
        return cls(source, (Candidate(source.text, 0.0, 0, FinishReason.COPIED),))

    @classmethod
    def decoded(cls, source: SourceSentence, result: Result, restored: Sequence[Restored]) -> "TranslatedSentence":
        """Returns a sentence as a model has translated it, with the text of each hypothesis."""
        candidates = tuple(
            Candidate(text.text, each.score, len(each.ids), each.finish_reason)
            for text, each in zip(restored, result.hypotheses, strict=True)
        )
        return cls(source, candidates, result.timings, restored[0].parts)


@dataclass(slots=True)
class TextAnswer:
    """The sentences of one text that are translated so far, or the first error of any.

    Attributes:
        split: the text.
        legs: one, or two over a language between; none of a text that goes nowhere.
        detected: its language, where the request left that open.
    """

    split: SplitText
    legs: tuple[Leg, ...] = ()
    detected: DetectedLanguage | None = None
    error: TranslationError | None = field(init=False)
    sentences: dict[int, TranslatedSentence] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.error = self.split.error

    def in_order(self) -> list[TranslatedSentence]:
        """The sentences in reading order."""
        return [self.sentences[index] for index in sorted(self.sentences)]

    def candidates(self, rank: int) -> list[Candidate]:
        """Every sentence's `rank`-th best candidate, in reading order; of a sentence with fewer, its last."""
        return [each.candidates[min(rank, len(each.candidates) - 1)] for each in self.in_order()]

    def text(self, rank: int) -> str:
        """The text of every sentence's `rank`-th best candidate, 0 the best; a sentence with fewer gives its last."""
        return self.split.join([candidate.text for candidate in self.candidates(rank)])

    def score(self, rank: int) -> float:
        """Mean of the candidates' scores, weighted by their tokens, of which an empty one has 1; 0 without any."""
        candidates = zip(self.in_order(), self.candidates(rank), strict=True)
        weighted = [
            (max(1, each.num_tokens), each.score) for sentence, each in candidates if sentence.source.source_ids
        ]
        num_tokens = sum(weight for weight, _ in weighted)
        return sum(weight * score for weight, score in weighted) / num_tokens if weighted else 0.0

    @property
    def finish_reason(self) -> FinishReason:
        """LENGTH if any sentence was stopped by a limit, COPIED if there are sentences and none was translated."""
        reasons = {candidate.finish_reason for candidate in self.candidates(0)}
        if FinishReason.LENGTH in reasons:
            return FinishReason.LENGTH
        return FinishReason.COPIED if reasons == {FinishReason.COPIED} else FinishReason.STOP

    @property
    def kept(self) -> list[KeptPart]:
        """Parts of its sentences that no model was shown, in reading order."""
        return [part for sentence in self.in_order() for part in sentence.kept]

    @property
    def num_source_tokens(self) -> int:
        """Source tokens that were translated."""
        return sum(sentence.source.num_tokens for sentence in self.sentences.values())

    @property
    def num_target_tokens(self) -> int:
        """Tokens of the best candidates."""
        return sum(candidate.num_tokens for candidate in self.candidates(0))


def raise_if_all_failed(answers: Sequence[TextAnswer]) -> None:
    """Raises the first text's error if there is no text without one."""
    if answers[0].error is not None and all(answer.error is not None for answer in answers):
        raise answers[0].error


def restore(source: SourceSentence, result: Result, tokenizer: Tokenizer) -> list[Restored]:
    """Returns the text of each hypothesis, best first, with what the model was not shown."""
    texts = [tokenizer.decode(hypothesis.ids) for hypothesis in result.hypotheses]
    return [source.masked.restore(text) if source.masked else Restored(clean(text)) for text in texts]
