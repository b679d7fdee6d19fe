"""The bundle's golden sentence, whose translation is known: a lane that gives another translation is not trusted.

fp32 must give the same ids, because its sums differ far less between processors than the scores of two tokens. int8
and fp16 kernels differ more, so they may give other ids, but the score of the best translation must be within
`SCORE_MARGIN` of the one at export. The score of a one-pass network is a sum over the tokens, so its margin is
`SCORE_MARGIN` times their number. The export does not translate the golden sentence by shortlist. So the first score by
shortlist in this process is the one that all later ones must give.
"""

import math

from server.bundle.manifest import Manifest
from server.bundle.variants import VARIANTS
from server.decoding.options import DecodingOptions
from server.decoding.result import Hypothesis
from server.network import StepKind

SCORE_MARGIN = 0.1


class GoldenSentence:
    """A bundle's golden sentence as the lanes of one variant translate it, with what its translation must be.

    Args:
        manifest: has the golden sentence.
        variant: that the lanes run.

    Attributes:
        source_ids: of the golden sentence.
    """

    def __init__(self, manifest: Manifest, variant: str) -> None:
        self._manifest = manifest
        self._variant = variant
        self._shortlist_score: float | None = None
        self.source_ids = manifest.golden.source_ids

    def options(self, kind: StepKind) -> DecodingOptions:
        """Returns the options with which steps of a kind translate it."""
        return self._manifest.golden_options(use_shortlist=kind is StepKind.SHORTLIST)

    def faults(self, kind: StepKind, found: Hypothesis) -> list[str]:
        """Returns what is wrong with the best translation that steps of a kind have found."""
        if kind is StepKind.PLAIN:
            return compare_with_golden(self._manifest, self._variant, found)
        if self._shortlist_score is None and math.isfinite(found.score):
            self._shortlist_score = found.score
        if self._shortlist_score is not None and abs(found.score - self._shortlist_score) <= SCORE_MARGIN:
            return []
        return [f"golden sentence: by shortlist it scores {found.score:.4f}, at first {self._shortlist_score}"]


def compare_with_golden(manifest: Manifest, variant: str, found: Hypothesis) -> list[str]:
    """Returns what is wrong with a translation of the golden sentence."""
    golden = manifest.golden.outputs[variant]
    if VARIANTS[variant].is_exact:
        same = found.ids == golden.ids
        return [] if same else [f"golden sentence: {variant} gives ids {found.ids}, at export {golden.ids}"]
    difference = abs(found.score - golden.score)
    margin = SCORE_MARGIN * (max(1, len(golden.ids)) if manifest.is_one_pass else 1)
    if difference <= margin:
        return []
    found_score = f"{variant} scores {found.score:.4f}, {difference:.4f} from {golden.score:.4f} at export"
    return [f"golden sentence: {found_score}, more than {margin:g}"]
