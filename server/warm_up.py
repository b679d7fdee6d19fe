"""The translation that a server must get right before it calls itself SERVING: the bundle's golden sentence.

fp32 must give the same ids: from processor to processor its sums differ far less than two tokens do. int8 and fp16
kernels differ more, so their ids may; there the score of the best translation must be within `SCORE_MARGIN` of the one
at export. On a processor without int8 dot products sums may saturate: up to twice the margin is then only warned of.
"""

import logging
import time

from server.bundle import Manifest
from server.errors import BundleError, TranslationError
from server.sequence import DecodingOptions, Hypothesis
from server.translation import ServedModel

logger = logging.getLogger(__name__)

SCORE_MARGIN = 0.1
_TIMEOUT_SECONDS = 60.0


def warm_up(model: ServedModel, has_int8_dot_product: bool) -> None:
    """Translates the golden sentence and compares; blocks until the engine has answered.

    Args:
        model: its engine runs.
        has_int8_dot_product: of this processor.

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
    faults = compare_with_golden(model.manifest, model.variant, best, has_int8_dot_product)
    if faults:
        raise BundleError(faults)


def compare_with_golden(manifest: Manifest, variant: str, found: Hypothesis, has_int8_dot_product: bool) -> list[str]:
    """Returns what is wrong with a translation of the golden sentence."""
    golden = manifest.golden.outputs[variant]
    if variant.endswith("fp32"):
        same = found.ids == golden.ids
        return [] if same else [f"golden sentence: {variant} gives ids {found.ids}, at export {golden.ids}"]
    difference = abs(found.score - golden.score)
    fault = f"golden sentence: {variant} scores {found.score:.4f}, {difference:.4f} from {golden.score:.4f} at export"
    if difference <= SCORE_MARGIN:
        return []
    if variant == "cpu-int8" and not has_int8_dot_product and difference <= 2 * SCORE_MARGIN:
        logger.warning("%s; this processor has no int8 dot product", fault)
        return []
    return [f"{fault}, more than {SCORE_MARGIN}"]
