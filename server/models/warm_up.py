"""The translation that a server must get right before it calls itself SERVING: the bundle's golden sentence.

fp32 must give the same ids: from processor to processor its sums differ far less than two tokens do. int8 and fp16
kernels differ more, so their ids may; there the score of the best translation must be within `SCORE_MARGIN` of the one
at export.
"""

import time

from server.bundle.manifest import Manifest
from server.bundle.variants import VARIANTS
from server.decoding.options import DecodingOptions
from server.decoding.result import Hypothesis
from server.errors import BundleError, TranslationError
from server.models.model import Model

SCORE_MARGIN = 0.1
_TIMEOUT_SECONDS = 60.0


def warm_up(model: Model) -> None:
    """Translates the golden sentence and compares; blocks until the engine has answered.

    Args:
        model: its engine runs.

    Raises:
        BundleError: the tokenizer or the network does not give what it gave at export.
    """
    golden = model.manifest.golden
    source_ids = model.tokenizer.encode(golden.source_text)
    if source_ids != golden.source_ids:
        raise BundleError(["golden sentence: the tokenizer gives other ids than at export"])
    options = DecodingOptions(beam_size=golden.beam_size)
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    try:
        (future,) = model.engine.submit([source_ids], options, deadline)
        best = future.result(_TIMEOUT_SECONDS).hypotheses[0]
    except (TranslationError, TimeoutError) as error:
        raise BundleError([f"golden sentence: translating it failed: {str(error) or 'no answer'}"]) from error
    faults = compare_with_golden(model.manifest, model.variant, best)
    if faults:
        raise BundleError(faults)


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
