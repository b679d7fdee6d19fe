"""The search over what a one-pass network returns: it is over after one step."""

from server.decoding.beam_search import BeamSearch
from server.decoding.ctc import Positions, Reading, best_path, exact_length, prefix_beam
from server.decoding.result import FinishReason, Hypothesis
from server.errors import InvalidRequest

# Tokens that each position may be where the number of tokens is given. Half, and a translation of another length than
# the network's own takes worse words; twice, and this search takes four times as long.
_EXACT_TOKENS = 8


class OnePassSearch(BeamSearch):
    """See `BeamSearch`, whose beginning it has. `read` takes the place of `advance`.

    The blank is `bos_id`. The score of a hypothesis is the logarithm of the sum of its paths' probabilities, or of the
    best path's in greedy search and where the options give the length.
    """

    def read(self, positions: Positions, num_source_tokens: int) -> None:
        """Finds the translations.

        Args:
            positions: of the sentence, with at least `top_k` tokens each, or the whole vocabulary.
            num_source_tokens: eos included.

        Raises:
            InvalidRequest: the translation cannot have as many tokens as the options ask for.
        """
        options, num_positions = self._options, len(positions.ids)
        length = options.length(num_source_tokens)
        if length is not None and length > num_positions:
            field = "exact_tokens" if options.ratio is None else "ratio"
            limit = f"a sentence of {num_source_tokens} tokens has at most {num_positions}"
            raise InvalidRequest(f"decoding.{field}", f"asks for {length} target tokens; {limit}")
        if length is not None:
            found = [exact_length(positions, length)]
        elif options.beam_size == 1:
            found = [best_path(positions)]
        else:
            found = prefix_beam(positions, options.beam_size)
        self.finished = [self._hypothesis_of(each) for each in found]
        self.num_tokens = len(found[0].ids)

    def _begin(self) -> None:
        if self._options.exact_tokens is not None or self._options.ratio is not None:
            self.top_k = _EXACT_TOKENS

    def _hypothesis_of(self, reading: Reading) -> Hypothesis:
        score = reading.log_prob if self._options.needs_log_probs else 0.0  # if not, what was added up are logits
        return Hypothesis(reading.ids, score, FinishReason.STOP)
