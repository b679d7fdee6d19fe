"""What the metrics are told of a translated sentence."""

from server.decoding.result import FinishReason, Hypothesis, Result, Timings
from server.models.model import Model
from server.telemetry.metrics import Metrics
from server.text.glossary import Glossary
from server.text.masked import KeptPart, Placement, Restored
from server.text.source import SourceSentence
from server.text.term_table import Term
from server.translation.answer import TranslatedSentence
from server.translation.observation import observe


def test_each_fact_of_a_sentence_is_counted(model: Model, metrics: Metrics) -> None:
    text = "A dog and a cat run."
    glossary = Glossary([Term(("dog",), ("Hund",)), Term(("cat",), ("Katze",))])
    source = SourceSentence(text, "", model.tokenizer.encode(text), terms=tuple(glossary.find(text)))
    result = Result((Hypothesis((5, 6), -1.0, FinishReason.LENGTH, ()),), Timings(decode_seconds=0.5), None)
    restored = Restored("Ein Hund", (KeptPart("x", Placement.BY_POSITION),), is_garbled=True)
    sentence = TranslatedSentence.decoded(source, result, [restored], model.tokenizer)

    observe(model, result, restored, sentence)

    labels = {"model": model.manifest.name, "version": model.manifest.version}

    def counted(name: str, **more: str) -> float | None:
        return metrics.registry.get_sample_value(f"babelserve_{name}_total", labels | more)

    assert counted("kept_parts", placement="by_position") == 1
    assert (counted("terms", outcome="applied"), counted("terms", outcome="missed")) == (1, 1)
    assert counted("garbled_sentences") == 1
    assert counted("truncated_sentences") == 1
