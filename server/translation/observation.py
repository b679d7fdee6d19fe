"""What the metrics of a model, and the trace of a call, are told of a sentence that is translated."""

from server.decoding.result import FinishReason, Result
from server.models.model import Model
from server.telemetry.tracing import current_trace
from server.text.masked import Restored
from server.translation.answer import TranslatedSentence


def observe(model: Model, result: Result, restored: Restored, sentence: TranslatedSentence) -> None:
    """Tells the metrics and the trace of a translated sentence.

    Args:
        model: that has translated it.
        result: the engine's.
        restored: its best hypothesis, with what the model was not shown.
        sentence: made of these.
    """
    source, best, metrics = sentence.source, result.hypotheses[0], model.metrics.translations
    metrics.observe(
        source.num_tokens,
        model.tokenizer.num_unknown(source.source_ids or ()),
        best.ids,
        result.timings.decode_seconds,
        is_truncated=best.finish_reason is FinishReason.LENGTH,
        is_looped=best.finish_reason is FinishReason.REPETITION,
    )
    timings = result.timings
    current_trace.get().add_sentence(timings.queue_seconds, timings.encode_seconds, timings.decode_seconds)
    metrics.count_kept(kept.placement.value for kept in restored.parts)
    metrics.count_terms(used.span is not None for used in sentence.terms)
    metrics.garbled_total.inc(restored.is_garbled)
