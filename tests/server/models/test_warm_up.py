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


def test_the_golden_sentence_has_the_prefixes_of_its_languages(model: Model, engine: EchoEngine) -> None:
    pair = dataclasses.replace(model.manifest.language_pairs[0], source_prefix=(7,), target_prefix=(8,))
    golden = model.manifest.golden
    outputs = {name: dataclasses.replace(each, ids=(7, *each.ids)) for name, each in golden.outputs.items()}  # an echo
    golden = dataclasses.replace(golden, source_ids=(7, *golden.source_ids), outputs=outputs)
    manifest = dataclasses.replace(model.manifest, language_pairs=(pair,), golden=golden)

    warm_up(dataclasses.replace(model, manifest=manifest))

    assert engine.options[0].forced_prefix == (8,)


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
