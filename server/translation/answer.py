"""What is known of a text's translation, put together from its sentences. All are plain values without protobuf."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from server.bundle.confidence import Confidence
from server.bundle.tokenizer import Tokenizer
from server.decoding.result import FinishReason, Result, SearchNode, Timings
from server.errors import TranslationError
from server.text.alignment import Link, WordWeights, find_spans, link_words, weigh_words
from server.text.carriers import clean
from server.text.glossary import UsedTerm
from server.text.icu import begins_quotation
from server.text.masked import KeptPart, Restored
from server.text.source import SourceSentence, SplitText
from server.translation.detection import DetectedLanguage
from server.translation.legs import Leg


@dataclass(frozen=True, slots=True)
class Candidate:
    """One translation of a sentence: its text, score, target tokens (eos is not counted) and finish reason."""

    text: str
    score: float
    num_tokens: int
    finish_reason: FinishReason


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a translation.

    Attributes:
        text: as the vocabulary has it, with U+2581 for blanks; empty for eos, and for what has no meaning to a reader.
        span: where what it writes begins and ends in the translation, in code points; None if it writes nothing.
        log_prob: of it after those before it.
    """

    text: str
    span: tuple[int, int] | None
    log_prob: float


@dataclass(frozen=True, slots=True)
class TranslatedSentence:
    """A sentence with at least one candidate, the best first, and the time that its translation took.

    Attributes:
        kept: parts of the source that the model was not shown, as they stand in the best candidate.
        terms: of the source, and where the best candidate has them.
        weigh: returns how source and best candidate are aligned; None unless the request asks for it.
        pieces, log_probs: of each token of the best candidate or given translation, what it spells and its
            log-probability; the latter may have one more, of eos. Empty unless the request asks for tokens or
            confidence.
        tree: what the search has kept, with each node's text as in `Token`; empty unless the request asks for it.
        confidence: of the best candidate, 0 to 1; None unless the bundle says how to tell it, and the request asks for
            it or for tokens.
    """

    source: SourceSentence
    candidates: tuple[Candidate, ...]
    timings: Timings = field(default_factory=Timings)
    kept: tuple[KeptPart, ...] = ()
    terms: tuple[UsedTerm, ...] = ()
    weigh: Callable[[], WordWeights] | None = None
    pieces: tuple[str, ...] = ()
    log_probs: tuple[float, ...] = ()
    confidence: float | None = None
    tree: tuple[tuple[str, SearchNode], ...] = ()

    @classmethod
    def copied(cls, source: SourceSentence) -> "TranslatedSentence":
        """Returns a sentence that is its own translation, or a term's."""
        text, reason = (source.written, FinishReason.STOP) if source.written else (source.text, FinishReason.COPIED)
        return cls(source, (Candidate(text, 0.0, 0, reason),), terms=source.find_terms(Restored(text)))

    @classmethod
    def decoded(
        cls,
        source: SourceSentence,
        result: Result,
        restored: Sequence[Restored],
        tokenizer: Tokenizer,
        confidence: Confidence | None = None,
    ) -> "TranslatedSentence":
        """Returns a sentence as a model has translated it, with the text of each hypothesis.

        Args:
            source: as the model was shown it.
            result: the engine's.
            restored: of each hypothesis.
            tokenizer: of the model.
            confidence: how sure the model is of its translations, if its bundle says so.
        """
        candidates = tuple(
            Candidate(text.text, each.score, len(each.ids), each.finish_reason)
            for text, each in zip(restored, result.hypotheses, strict=True)
        )
        kept = restored[0].parts if source.markup is None else source.markup.unkept_parts(restored[0].parts)
        terms = source.find_terms(restored[0])
        best = result.hypotheses[0]
        is_spelled = bool(best.log_probs) or result.attention is not None
        pieces = tokenizer.spell_target(best.ids) if is_spelled else []
        weigh = None
        if result.attention is not None:
            source_pieces = tokenizer.spell_source(source.source_ids or ())
            weigh = partial(weigh_words, source.text, source_pieces, restored[0].text, pieces, result.attention)
        sureness = None
        if best.log_probs and confidence is not None and not source.given:
            num_given = len(source.prefix.ids) if source.prefix else 0  # the caller chose these, not the model
            sureness = confidence.of(best.log_probs[num_given:])
        texts = map(clean, tokenizer.spell_target(node.token for node in result.tree))
        return cls(
            source,
            candidates,
            result.timings,
            kept,
            terms,
            weigh,
            tuple(pieces) if best.log_probs else (),
            best.log_probs,
            sureness,
            tuple(zip(texts, result.tree, strict=True)),
        )

    def text(self, rank: int, tag_texts: Mapping[str, str] | None = None) -> str:
        """Returns the `rank`-th best candidate with the sentence's markup; the last one if there are fewer.

        Args:
            rank: 0 for the best.
            tag_texts: see `SentenceMarkup.write`.
        """
        text = self.candidates[min(rank, len(self.candidates) - 1)].text
        markup = self.source.markup
        if markup is None:
            return text
        words = self.weigh() if self.weigh is not None and markup.marks and rank == 0 else None
        return markup.write(self.source.text, text, words, tag_texts)

    def links(self) -> list[Link]:
        """Returns the words of source and best candidate that belong together; none unless the request asks for it."""
        return link_words(self.weigh()) if self.weigh is not None else []

    def tokens(self) -> list[Token]:
        """Returns the tokens of the best candidate, or of the given translation, eos included if it ended so.

        There are none unless the request asks for tokens or confidence.
        """
        text = self.source.given.text if self.source.given is not None else self.candidates[0].text
        spans = [*find_spans(self.pieces, text), None]
        return [Token(*each) for each in zip([*map(clean, self.pieces), ""], spans, self.log_probs, strict=False)]


@dataclass(slots=True)
class TextAnswer:
    """The sentences of one text that are translated so far, or the first error of any sentence.

    Attributes:
        legs: one, or two over a pivot; none if no model translates the text.
        detected: the detected language, if the request left the source language open.
        sentences: the translated sentences, by their numbers in the text.
    """

    split: SplitText
    legs: tuple[Leg, ...] = ()
    detected: DetectedLanguage | None = None
    error: TranslationError | None = field(init=False)
    sentences: dict[int, TranslatedSentence] = field(default_factory=dict)
    _source_begins: list[int] = field(default_factory=list)  # empty until somebody asks
    _waiting: Counter[int] | None = None  # texts in tags that are not translated, by shown sentences

    def __post_init__(self) -> None:
        self.error = self.split.error

    def in_order(self) -> list[TranslatedSentence]:
        """Returns the sentences in reading order, and behind them those that stand within tags of others."""
        return [self.sentences[index] for index in sorted(self.sentences)]

    def note(self, index: int) -> int | None:
        """Notes that a sentence is translated, once for each, or that the text has failed.

        Returns:
            The number of the shown sentence that is now complete with the texts in its tags; None if there is none.
            It is `index` if the text has failed.
        """
        homes, num_shown = self.split.homes, self.split.num_shown
        if self.error is not None or not homes:
            return index
        home = index if index < num_shown else homes[index - num_shown]
        waiting = self._waiting = self._waiting or Counter(homes)
        waiting[home] -= 1
        return home if waiting[home] < 0 else None  # it was counted, too

    def sentence_text(self, index: int, rank: int = 0) -> str:
        """Returns a shown sentence's `rank`-th best candidate with its markup, and with the texts in its tags.

        Where it ends a branch of an ICU message, it ends in no plain apostrophe: "'}" would begin a quotation.
        """
        markup = self.split.sentences[index].markup
        texts = {}
        for stand_in, text in markup.texts.items() if markup else ():
            within = [self.sentences[self.split.num_shown + number] for number in text.sentences]
            texts[stand_in] = text.leading + "".join(each.text(rank) + each.source.separator for each in within)
        written = self.sentences[index].text(rank, texts)
        own, *others = self.split.sentences[index : min(index + 2, self.split.num_shown)]
        is_branch = not own.separator and any(each.text.startswith("}") for each in others)
        if is_branch and begins_quotation(written):
            return f"{written[:-1]}\u2019"
        return written

    def source_begin(self, index: int) -> int:
        """Returns where a shown sentence begins in its text, in code points."""
        if not self._source_begins:
            shown = self.split.sentences[: self.split.num_shown]
            self._source_begins = self.split.begins([sentence.text for sentence in shown])
        return self._source_begins[index]

    @property
    def confidence(self) -> float | None:
        """The mean of the sentences' confidences, weighted by their target tokens, at least 1; None if none has one."""
        weighted = [
            (max(1, each.candidates[0].num_tokens), each.confidence)
            for each in self.in_order()
            if each.confidence is not None
        ]
        total = sum(weight for weight, _ in weighted)
        return sum(weight * confidence for weight, confidence in weighted) / total if weighted else None

    def candidates(self, rank: int) -> list[Candidate]:
        """Returns every sentence's `rank`-th best candidate, in reading order. Rank 0 is the best.

        A sentence with fewer candidates gives its last one.
        """
        return [each.candidates[min(rank, len(each.candidates) - 1)] for each in self.in_order()]

    def shown_texts(self, rank: int = 0) -> list[str]:
        """Returns what `sentence_text` returns, of each shown sentence of a text that is translated whole."""
        return [self.sentence_text(index, rank) for index in range(self.split.num_shown)]

    def text(self, rank: int) -> str:
        """Returns the text of every sentence's `rank`-th best candidate, see `candidates`."""
        return self.split.join(self.shown_texts(rank))

    def score(self, rank: int) -> float:
        """Returns the mean of the candidates' scores. It is 0 if no sentence was translated.

        A score has as much weight as the sentence's best candidate has tokens, at least 1, at every rank. So if no
        sentence's score rises with the rank, neither does the text's.
        """
        candidates = zip(self.in_order(), self.candidates(rank), strict=True)
        weighted = [
            (max(1, sentence.candidates[0].num_tokens), each.score)
            for sentence, each in candidates
            if sentence.source.source_ids
        ]
        num_tokens = sum(weight for weight, _ in weighted)
        return sum(weight * score for weight, score in weighted) / num_tokens if weighted else 0.0

    def num_alternatives(self, most: int) -> int:
        """Returns how many candidates the sentence with the most candidates has, 1 to `most`."""
        return min(most, max((len(each.candidates) for each in self.sentences.values()), default=1))

    @property
    def finish_reason(self) -> FinishReason:
        """The worst of its sentences' reasons; COPIED if there are sentences and all were copied."""
        return FinishReason.of_all(candidate.finish_reason for candidate in self.candidates(0))

    @property
    def kept(self) -> list[KeptPart]:
        """The parts of its sentences that no model was shown, in reading order."""
        return [part for sentence in self.in_order() for part in sentence.kept]

    @property
    def num_source_tokens(self) -> int:
        """The source tokens that were translated."""
        return sum(sentence.source.num_tokens for sentence in self.sentences.values())

    @property
    def num_target_tokens(self) -> int:
        """The tokens of the best candidates."""
        return sum(sentence.candidates[0].num_tokens for sentence in self.sentences.values())


def raise_if_all_failed(answers: Sequence[TextAnswer]) -> None:
    """Raises the first text's error if every text has one."""
    if answers[0].error is not None and all(answer.error is not None for answer in answers):
        raise answers[0].error
