"""The search in what a one-pass network returns, which ends with the first step."""

from collections.abc import Sequence

from server.decoding.beam_search import BeamSearch
from server.decoding.ctc import Positions, Reading, best_path, exact_length, prefix_beam
from server.decoding.result import FinishReason, Hypothesis
from server.errors import InvalidRequest

# Best tokens of each position that are tried where the options give the length. Halved, a translation of another length
# than the network's own takes worse words; doubled, this search takes four times as long.
EXACT_LENGTH_TOKENS = 8


class OnePassSearch(BeamSearch):
    """See `BeamSearch`, whose beginning it has. `read` takes the place of `advance`.

    The blank is `bos_id`. The score of a hypothesis is a log-probability in nats: of all of its paths that a beam has
    kept, or of the best path alone in greedy search and where the options give the length.
    """

    def read(self, positions: Positions, source_ids: Sequence[int]) -> None:
        """Finds the translations.

        Args:
            positions: of the sentence, with at least `top_k` tokens each, or the whole vocabulary.
            source_ids: of the sentence.

        Raises:
            InvalidRequest: the translation cannot have as many tokens as the options ask for.
        """
        options, num_positions = self._options, len(positions.ids)
        num_source_tokens = len(source_ids) - (source_ids[-1] == self._eos_id)
        length = options.length(num_source_tokens)
        if length is not None and length > num_positions:
            limit = f"{num_positions} for a sentence of {num_source_tokens} source tokens"
            raise InvalidRequest("decoding.exact_tokens", f"must be at most {limit}, not {length}")
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
            self.top_k = EXACT_LENGTH_TOKENS
        elif self._beam_size > 1:
            self.top_k = 2 * self._beam_size

    def _hypothesis_of(self, reading: Reading) -> Hypothesis:
        score = reading.log_prob if self._options.needs_log_probs else 0.0  # if not, what was added up are logits
        return Hypothesis(reading.ids, score, FinishReason.STOP)
