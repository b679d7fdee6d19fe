"""Translates the bundle's golden sentence before the server calls itself SERVING."""

import time

from server.errors import BundleError, TranslationError
from server.models.golden_sentence import compare_with_golden
from server.models.model import Model

_TIMEOUT_SECONDS = 60.0
_MOST_CHARACTERS = 500


def reason_of(error: TranslationError | TimeoutError) -> str:
    """Returns why a bundle does not translate, in words for the operator: with the cause, which callers never see."""
    cause = error.cause if isinstance(error, TranslationError) else "no answer"
    return ": ".join(filter(None, (str(error), cause[:_MOST_CHARACTERS])))


def warm_up(model: Model) -> None:
    """Translates the golden sentence and compares. It blocks until the engine has answered.

    Raises:
        BundleError: the tokenizer or the network does not give what it gave at export.
    """
    golden = model.manifest.golden
    source_ids = model.tokenizer.encode(golden.source_text, model.manifest.golden_pair.source_prefix)
    if source_ids != golden.source_ids:
        raise BundleError(["golden sentence: the tokenizer gives other ids than at export"])
    options = model.manifest.golden_options()
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    try:
        (future,) = model.engine.submit([source_ids], options, deadline)
        best = future.result(_TIMEOUT_SECONDS).hypotheses[0]
    except (TranslationError, TimeoutError) as error:
        raise BundleError([f"golden sentence: translating it failed: {reason_of(error)}"]) from error
    faults = compare_with_golden(model.manifest, model.variant, best)
    if faults:
        raise BundleError(faults)
