"""What a request asks of the search, `DecodingOptions`, and what a model does, `SearchRules`."""

import math
from dataclasses import dataclass, replace

from server.decoding.terms import Terms

MAX_LENGTH_PENALTY = 10.0
_ROUNDED = 1e-4  # of a token: ratios come as float32, in which 1.2 is a little more
BEHIND_PREFIX = 3  # tokens for which a target prefix leaves room: what a search needs at least


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How tokens are drawn, in this order.

    Attributes:
        top_k: only the k best, and what equals the last of them, can be drawn; 0 for all.
        temperature: that logits are divided by, 0.01 to 100.
        top_p: only the most probable ones can be drawn, as many as it takes to have this probability together; over 0,
            at most 1.
        seed: of the random numbers, 0 to 2^64 - 1.
    """

    top_k: int = 0
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRules:
    """What the makers of a model have chosen about its search; no request changes it.

    Attributes:
        early_stopping: beam search is over when W hypotheses are finished. If not, it goes on, and better ones replace
            the worst of W, until the best live beam's log-probability / length^length_penalty is no better than the
            worst: Hugging Face's rule.
        forced_eos: a beam that comes to the limit on output tokens ends there with eos, of log-probability 0.
    """

    early_stopping: bool = True
    forced_eos: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingOptions:
    """How a translation is searched for; checked by `server.translation.rules`.

    Attributes:
        beam_size: W, 1 (greedy search) to the manifest's `max_beam_size`.
        num_hypotheses: 1 to `beam_size`, or of alternatives to `max_beam_size` / `beam_size`.
        length_penalty: exponent of the length in a hypothesis' score, 0 to 10.
        max_output_tokens: most target tokens, eos included; None for twice the source tokens plus 16, or the
            model's limit if that is less.
        with_scores: whether greedy search computes scores, which it can do without; beam search always does.
        with_alignment: whether the best hypothesis comes with what it has attended to.
        with_tokens: whether hypotheses come with the log-probability of each token; needs scores.
        with_search: whether the result says which beams were kept; needs scores.
        use_shortlist: whether only the model's lexical shortlist of the sentence is searched.
        forced_prefix: ids that the target must begin with, such as its language's: each of log-probability 0, counted
            in the length, and no part of the hypotheses. No client gives it.
        target_prefix: ids that the target begins with behind the forced prefix: each of log-probability 0, counted in
            the length, and part of every hypothesis; the model's limit leaves room for `BEHIND_PREFIX` more.
        given_targets: ids of translations, without bos and prefix, with eos. They are taken whatever the network would
            choose, so that they get their log-probabilities. `beam_size` is their number. With the prefix, each has at
            most the model's limit on target tokens. Empty to search.
        terms: that the target must have; with a beam of at least 2 and the whole vocabulary. None without any.
        patience: the search is over when `beam_size` times this many hypotheses are finished, 1 to 10.
        repetition_penalty: what the logits of tokens that are there already are divided by, or multiplied with if they
            are negative, 1 to 10.
        no_repeat_ngram_size: no run of so many tokens is there twice; 0 for any.
        min_output_tokens: fewest target tokens, eos not counted.
        suppressed: runs of tokens that the target never has.
        sampling: draws tokens; `beam_size` is `num_hypotheses` then. None takes the best.
        return_alternatives: whether the hypotheses begin with different tokens; see `AlternativeSearch`.
        min_alternative_expansion_prob: the least probability of these tokens, 0 to 1.
        prefix_bias_beta: part of all probability that a beam that follows the target prefix gives to the next token of
            it, 0 to 0.999. 0 means that it must follow.
        min_length_ratio, max_length_ratio: bounds of the target tokens by the source tokens, eos counted in both, 0 to
            10; None for no upper bound. See `of_source`.
        coverage_penalty: a finished score gets so many times the coverage (`server.engine.aligning`), 0 to 10.
        end_loops: whether beams that repeat themselves more often than the source end; see `LoopWatch`.
        exact_tokens: how many target tokens a translation of a one-pass network has, eos not counted, at least 1; None
            for as many as it would have.
        ratio: the same, as times the source tokens, eos not counted either; at most one of the two is given.
    """

    beam_size: int = 4
    num_hypotheses: int = 1
    length_penalty: float = 1.0
    max_output_tokens: int | None = None
    with_scores: bool = True
    with_alignment: bool = False
    with_tokens: bool = False
    with_search: bool = False
    use_shortlist: bool = False
    forced_prefix: tuple[int, ...] = ()
    target_prefix: tuple[int, ...] = ()
    given_targets: tuple[tuple[int, ...], ...] = ()
    terms: Terms | None = None
    patience: float = 1.0
    repetition_penalty: float = 1.0
    no_repeat_ngram_size: int = 0
    min_output_tokens: int = 0
    suppressed: tuple[tuple[int, ...], ...] = ()
    sampling: Sampling | None = None
    return_alternatives: bool = False
    min_alternative_expansion_prob: float = 0.0
    prefix_bias_beta: float = 0.0
    min_length_ratio: float = 0.0
    max_length_ratio: float | None = None
    coverage_penalty: float = 0.0
    end_loops: bool = False
    exact_tokens: int | None = None
    ratio: float | None = None

    @property
    def needs_log_probs(self) -> bool:
        """Whether the search needs log-probabilities, and not logits alone."""
        return self.with_scores or self.beam_size > 1 or self.return_alternatives

    @property
    def num_rows(self) -> int:
        """Rows of a batch that a sentence takes at most."""
        return self.beam_size * (self.num_hypotheses if self.return_alternatives else 1)

    @property
    def is_steered(self) -> bool:
        """Whether the search changes logits or draws from them; then there is no shortlist."""
        return (
            self.repetition_penalty != 1
            or self.no_repeat_ngram_size > 0
            or self.min_output_tokens > 0
            or bool(self.suppressed)
            or self.uses_log_probs
        )

    def length(self, num_tokens: int) -> int | None:
        """Returns how many target tokens are asked for with a source of so many, without eos; None for any number."""
        if self.ratio is not None:
            return max(1, math.floor(self.ratio * num_tokens + 0.5))
        return self.exact_tokens

    @property
    def uses_log_probs(self) -> bool:
        """Whether what the search does to logits depends on their probabilities."""
        return self.sampling is not None or (self.prefix_bias_beta > 0 and bool(self.target_prefix))

    def of_source(self, num_tokens: int) -> "DecodingOptions":
        """Returns the options with the bounds that the ratios mean for a source of so many tokens, eos included."""
        least, most = self.min_output_tokens, self.max_output_tokens
        if self.min_length_ratio > 0:
            least = max(least, math.ceil(self.min_length_ratio * num_tokens - _ROUNDED) - 1)
        if self.max_length_ratio is not None:
            own = max(2, math.floor(self.max_length_ratio * num_tokens + _ROUNDED))
            most = own if most is None else min(own, most)
        if (least, most) == (self.min_output_tokens, self.max_output_tokens):
            return self
        return replace(self, min_output_tokens=least, max_output_tokens=most)

    def most_tokens(self, source_tokens: int, num_given: int, limit: int) -> int:
        """Returns the bound on a sentence's target tokens, eos and target prefix included, and the forced prefix not.

        Args:
            source_tokens: with eos. The options are those of a source of so many tokens (`of_source`).
            num_given: tokens of the target prefix.
            limit: of the model.
        """
        if self.given_targets:
            return limit
        most = self.max_output_tokens or num_given + default_max_tokens(source_tokens, limit)
        most = max(most, 1 + self.min_output_tokens)
        if num_given or self.return_alternatives:  # each alternative is a prefix of its own
            most = max(most, num_given + BEHIND_PREFIX)
        return min(most, limit)


def default_max_tokens(source_tokens: int, limit: int) -> int:
    """Returns the default bound on target tokens: twice the source's plus 16, at most `limit`."""
    return min(limit, 2 * source_tokens + 16)
