"""Sentences that a model translates within this process, with how the words of both texts are aligned."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from prometheus_client import CollectorRegistry

from server.models.catalogue import Catalogue
from server.models.loading import load_model
from server.models.model import Model
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics
from server.text.alignment import WordWeights
from server.translation.memory import MemoryBudget
from server.translation.request import DecodingRequest, TranslationRequest
from server.translation.translator import Translator
from tests.acceptance.server_process import BUILTIN_BUNDLE

_MEMORY_BYTES = 1 << 30
_TEXTS_A_REQUEST = 200
_TIMEOUT_SECONDS = 600.0


class Aligned(NamedTuple):
    """A sentence, its translation, and the attention between their words; None if the sentence was copied."""

    source: str
    target: str
    words: WordWeights | None


def align_texts(
    texts: Sequence[str], source: str, target: str, variant: str = "cpu-int8", bundle: Path | None = None
) -> list[list[Aligned]]:
    """Returns the sentences of each text, translated with a beam of 4.

    Args:
        texts: any texts.
        source, target: languages of the model.
        variant: of the model.
        bundle: of the model; None for the built-in one.

    Raises:
        StartupError: the model cannot be loaded.
        TranslationError: a text has failed.
    """
    metrics = Metrics(CollectorRegistry())
    bundle = bundle or BUILTIN_BUNDLE.with_name(f"{source}-{target}")
    model = load_model(Settings(bundle=bundle, variant=variant), metrics)
    try:
        return asyncio.run(_align(texts, target, model, metrics))
    finally:
        model.stop()


async def _align(texts: Sequence[str], target: str, model: Model, metrics: Metrics) -> list[list[Aligned]]:
    catalogue = Catalogue(metrics.catalogue)
    catalogue.put(model)
    translator = Translator(
        catalogue,
        beam_size=4,
        max_request_seconds=_TIMEOUT_SECONDS,
        memory=MemoryBudget(_MEMORY_BYTES),
        metrics=metrics.access,
    )
    catalogue.is_open = True
    aligned: list[list[Aligned]] = []
    for start in range(0, len(texts), _TEXTS_A_REQUEST):
        now = time.monotonic()
        request = TranslationRequest(
            contents=texts[start : start + _TEXTS_A_REQUEST],
            target_language_code=target,
            decoding=DecodingRequest(beam_size=4),
            with_alignment=True,
            arrived=now,
            deadline=now + _TIMEOUT_SECONDS,
        )
        with await translator.accept(request) as job:
            await job.finish()
        for answer in job.answers:
            if answer.error is not None:
                raise answer.error
            aligned.append(
                [
                    Aligned(each.source.text, each.candidates[0].text, each.weigh() if each.weigh is not None else None)
                    for each in answer.in_order()
                ]
            )
    return aligned
