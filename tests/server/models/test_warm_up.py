import dataclasses

import pytest

from server.bundle.manifest import Golden
from server.errors import BundleError, NotServing
from server.models.model import Model
from server.models.warm_up import warm_up
from tests.server.echo_engine import EchoEngine


def test_the_golden_sentence_is_translated_as_at_export(model: Model, engine: EchoEngine) -> None:
    warm_up(model)

    assert engine.options[0].beam_size == 4


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
