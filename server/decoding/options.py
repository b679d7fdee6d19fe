"""How a translation is searched for."""

from dataclasses import dataclass


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
        use_shortlist: whether only the model's lexical shortlist of the sentence is searched.
    """

    beam_size: int = 4
    num_hypotheses: int = 1
    length_penalty: float = 1.0
    max_output_tokens: int | None = None
    with_scores: bool = True
    use_shortlist: bool = False

    @property
    def needs_log_probs(self) -> bool:
        """Whether logits would not do."""
        return self.with_scores or self.beam_size > 1
