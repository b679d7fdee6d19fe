"""What translations look like, by model and version: signals that either, or what is asked, has changed for the worse.

Observed when a sentence comes back to its request, so that kept translations count too.
"""

from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry

from server.telemetry.metric_factory import MetricFactory

_TOKENS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
_LENGTH_RATIO = (0.25, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 3)
_FIRST_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30)
_SECONDS_PER_TOKEN = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256)
_NGRAM = 4
_PLACEMENTS = ("by_model", "by_position", "missing")
_TERM_OUTCOMES = ("applied", "missed")
_REPETITIVE = 0.5  # of the n-grams


class TranslationFamilies:
    """The families whose labels `model` and `version` are bound by `TranslationMetrics`, on one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        new = MetricFactory(registry, "model", "version")
        self.time_to_first_sentence_seconds = new.histogram(
            "time_to_first_sentence_seconds", "From a call's arrival to its first translated sentence.", _FIRST_SECONDS
        )
        self.sentence_source_tokens = new.histogram(
            "sentence_source_tokens", "Source tokens of one translated sentence, without its end.", _TOKENS
        )
        self.sentence_target_tokens = new.histogram(
            "sentence_target_tokens", "Target tokens of one translated sentence, without its end.", _TOKENS
        )
        self.length_ratio = new.histogram(
            "length_ratio", "Target by source tokens of one translated sentence.", _LENGTH_RATIO
        )
        self.time_per_output_token_seconds = new.histogram(
            "time_per_output_token_seconds", "Decoding time of one sentence by its target tokens.", _SECONDS_PER_TOKEN
        )
        self.truncated_sentences = new.counter(
            "truncated_sentences", "Translations that the limit of target tokens ended."
        )
        self.looped_sentences = new.counter(
            "looped_sentences", "Translations that ended because they repeated themselves again and again."
        )
        self.repetitive_sentences = new.counter(
            "repetitive_sentences", "Translations of which at least half of the 4-grams occurred before."
        )
        self.garbled_sentences = new.counter(
            "garbled_sentences", "Translations with U+FFFD, or a run of capitals, of a source that has none."
        )
        self.unknown_source_tokens = new.counter(
            "unknown_source_tokens", "Source tokens of translated sentences that the vocabulary spells as bytes or unk."
        )
        self.kept_parts = new.counter(
            "kept_parts",
            "Parts of sentences that the model was not shown, and numbers that it lost, by who placed them.",
            "placement",
        )
        self.terms = new.counter(
            "terms", "Terms of glossaries that sentences had, by whether their translations have them.", "outcome"
        )
        self.repeated_sentences = new.counter(
            "repeated_sentences",
            "Second searches for a sentence, as a part, a number or a term was not in its translation.",
        )


class TranslationMetrics:
    """What the translations of a model's version look like; every series is there from the start.

    Args:
        families: of the server.
        model: name of the model.
        version: of the model.
    """

    def __init__(self, families: TranslationFamilies, model: str, version: str) -> None:
        self.time_to_first_sentence_seconds = families.time_to_first_sentence_seconds.labels(model, version)
        self._source_tokens = families.sentence_source_tokens.labels(model, version)
        self._target_tokens = families.sentence_target_tokens.labels(model, version)
        self._length_ratio = families.length_ratio.labels(model, version)
        self._time_per_output_token_seconds = families.time_per_output_token_seconds.labels(model, version)
        self._truncated_total = families.truncated_sentences.labels(model, version)
        self._looped_total = families.looped_sentences.labels(model, version)
        self._repetitive_total = families.repetitive_sentences.labels(model, version)
        self._unknown_source_tokens_total = families.unknown_source_tokens.labels(model, version)
        self.garbled_total = families.garbled_sentences.labels(model, version)
        self.repeated_total = families.repeated_sentences.labels(model, version)
        self._kept_total = {each: families.kept_parts.labels(model, version, each) for each in _PLACEMENTS}
        self._terms_total = {each: families.terms.labels(model, version, each) for each in _TERM_OUTCOMES}

    def count_terms(self, are_applied: Iterable[bool]) -> None:
        """Counts the terms of a sentence by whether its translation has them."""
        for is_applied in are_applied:
            self._terms_total[_TERM_OUTCOMES[not is_applied]].inc()

    def count_kept(self, placements: Iterable[str]) -> None:
        """Counts parts of a sentence by where they stand; see `server.text.masking.Placement`."""
        for placement in placements:
            self._kept_total[placement].inc()

    def observe(
        self,
        num_source_tokens: int,
        num_unknown: int,
        ids: Sequence[int],
        decode_seconds: float,
        *,
        is_truncated: bool,
        is_looped: bool = False,
    ) -> None:
        """Notes a translation.

        Args:
            num_source_tokens: without the end of the sentence.
            num_unknown: of these, that the vocabulary does not know.
            ids: of the translation, bos and eos left out.
            decode_seconds: that it took; 0 for one that was kept.
            is_truncated: whether a limit ended it.
            is_looped: whether its repeats were cut off.
        """
        num_tokens = len(ids)
        self._source_tokens.observe(num_source_tokens)
        self._target_tokens.observe(num_tokens)
        self._length_ratio.observe(num_tokens / max(1, num_source_tokens))
        if decode_seconds:
            self._time_per_output_token_seconds.observe(decode_seconds / max(1, num_tokens))
        if num_unknown:
            self._unknown_source_tokens_total.inc(num_unknown)
        if is_truncated:
            self._truncated_total.inc()
        if is_looped:
            self._looped_total.inc()
        if _is_repetitive(ids):
            self._repetitive_total.inc()


def _is_repetitive(ids: Sequence[int]) -> bool:
    """Says whether half of the 4-grams, and 4 at least, are repeated: seq-rep-4 of Welleck et al. (2019).

    Where so many are repeated there are few different tokens, which is cheaper to know.
    """
    num_ngrams = len(ids) - _NGRAM + 1
    most_different = num_ngrams * (1 - _REPETITIVE)
    if num_ngrams < 2 * _NGRAM or len(set(ids)) > most_different + _NGRAM - 1:
        return False
    return len(set(zip(*(ids[start:] for start in range(_NGRAM)), strict=False))) <= most_different
