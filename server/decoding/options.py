"""What a request asks of the search, `DecodingOptions`, and what a model does, `SearchRules`."""

from dataclasses import dataclass

from server.decoding.terms import Terms

MAX_LENGTH_PENALTY = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How tokens are drawn, in this order.

    Attributes:
        top_k: only the k best can be drawn; 0 for all.
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
        num_hypotheses: 1 to `beam_size`.
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
        given_target: ids, without bos and prefix, with eos, that a beam of 1 takes one after the other whatever the
            network would choose, so that they get their log-probabilities; at most the model's limit on target tokens,
            with the prefix. None to search.
        terms: that the target must have; with a beam of at least 2 and the whole vocabulary. None without any.
        patience: the search is over when `beam_size` times this many hypotheses are finished, 1 to 10.
        repetition_penalty: what the logits of tokens that are there already are divided by, or multiplied with if they
            are negative, 1 to 10.
        no_repeat_ngram_size: no run of so many tokens is there twice; 0 for any.
        min_output_tokens: fewest target tokens, eos not counted.
        suppressed: runs of tokens that the target never has.
        sampling: draws tokens; `beam_size` is `num_hypotheses` then. None takes the best.
        end_loops: whether beams that repeat themselves more often than the source end; see `LoopWatch`.
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
    given_target: tuple[int, ...] | None = None
    terms: Terms | None = None
    patience: float = 1.0
    repetition_penalty: float = 1.0
    no_repeat_ngram_size: int = 0
    min_output_tokens: int = 0
    suppressed: tuple[tuple[int, ...], ...] = ()
    sampling: Sampling | None = None
    end_loops: bool = False

    @property
    def needs_log_probs(self) -> bool:
        """Whether logits would not do."""
        return self.with_scores or self.beam_size > 1

    @property
    def is_steered(self) -> bool:
        """Whether the search changes logits or draws from them; then there is no shortlist."""
        return (
            self.repetition_penalty != 1
            or self.no_repeat_ngram_size > 0
            or self.min_output_tokens > 0
            or bool(self.suppressed)
            or self.sampling is not None
        )
