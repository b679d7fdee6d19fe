"""The bundle's golden sentence, whose translation is known: who gives another one is not to be trusted.

fp32 must give the same ids: from processor to processor its sums differ far less than two tokens do. int8 and fp16
kernels differ more, so their ids may; there the score of the best translation must be within `SCORE_MARGIN` of the one
at export. By shortlist it was not translated at export: there the first score of this process is what others must give.
"""

import math

from server.bundle.manifest import Manifest
from server.bundle.variants import VARIANTS
from server.decoding.options import DecodingOptions
from server.decoding.result import Hypothesis
from server.network import StepKind

SCORE_MARGIN = 0.1


class Canary:
    """What lanes are given to translate, and what they should make of it.

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
        """Returns how it is searched for by steps of a kind."""
        return self._manifest.golden_options(use_shortlist=kind is StepKind.SHORTLIST)

    def faults(self, kind: StepKind, found: Hypothesis) -> list[str]:
        """Returns what is wrong with the best translation by steps of a kind."""
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
    if difference <= SCORE_MARGIN:
        return []
    found_score = f"{variant} scores {found.score:.4f}, {difference:.4f} from {golden.score:.4f} at export"
    return [f"golden sentence: {found_score}, more than {SCORE_MARGIN}"]
