import dataclasses

import pytest

from server.bundle.manifest import Golden, Manifest
from server.decoding.result import FinishReason, Hypothesis
from server.errors import BundleError, NotServing
from server.models.model import Model
from server.models.warm_up import compare_with_golden, warm_up
from tests.server.echo_engine import EchoEngine


def found(manifest: Manifest, score: float = -1.0) -> Hypothesis:
    ids = manifest.golden.outputs["cpu-fp32"].ids
    return Hypothesis(ids=ids, score=score, finish_reason=FinishReason.STOP)


def test_the_golden_sentence_is_translated_as_at_export(model: Model, engine: EchoEngine) -> None:
    warm_up(model)

    assert engine.options[0].beam_size == 4


def test_other_ids_in_fp32_are_a_fault(manifest: Manifest) -> None:
    other = dataclasses.replace(found(manifest), ids=(9, 9))

    (fault,) = compare_with_golden(manifest, "cpu-fp32", other)

    assert "(9, 9)" in fault


@pytest.mark.parametrize(
    ("score", "num_faults"),
    [(-1.09, 0), (-1.11, 1), (-0.95, 0), (-0.85, 1), (float("nan"), 1)],
)
def test_int8_is_compared_by_its_score(manifest: Manifest, score: float, num_faults: int) -> None:
    other = dataclasses.replace(found(manifest, score), ids=(9, 9))

    assert len(compare_with_golden(manifest, "cpu-int8", other)) == num_faults


def test_a_tokenizer_that_gives_other_ids_is_a_fault(model: Model) -> None:
    golden = Golden(source_text="A dog runs.", source_ids=(7, 3), beam_size=4, outputs=model.manifest.golden.outputs)
    other = dataclasses.replace(model, manifest=dataclasses.replace(model.manifest, golden=golden))

    with pytest.raises(BundleError, match="tokenizer"):
        warm_up(other)


def test_an_engine_that_fails_is_a_fault(model: Model, engine: EchoEngine) -> None:
    engine.refuses = NotServing("no")

    with pytest.raises(BundleError, match="golden sentence: translating it failed: no"):
        warm_up(model)


def test_a_network_that_gives_something_else_is_a_fault(model: Model) -> None:
    outputs = {"cpu-fp32": dataclasses.replace(model.manifest.golden.outputs["cpu-fp32"], ids=(9,))}
    golden = dataclasses.replace(model.manifest.golden, outputs=outputs)
    other = dataclasses.replace(model, manifest=dataclasses.replace(model.manifest, golden=golden))

    with pytest.raises(BundleError, match="at export"):
        warm_up(other)
