import dataclasses
import inspect

import pytest

from server.bundle.files import FileFacts
from server.bundle.graphs import StepForm
from server.bundle.variant_files import Variant
from server.bundle.variants import VARIANTS
from server.engine.engine import Engine
from server.errors import NotServing
from server.models.model import Model, SentenceEngine
from server.models.sentence_cache import SentenceCache
from tests.server.echo_engine import EchoEngine


@pytest.mark.parametrize("variant", VARIANTS)
def test_its_device_is_the_variants(model: Model, variant: str) -> None:
    assert dataclasses.replace(model, variant=variant).device == VARIANTS[variant].device


def with_files(model: Model, *names: str) -> Model:
    """The model, whose variant has these files."""
    files = {name: FileFacts(sha256="0", bytes=0) for name in names}
    variant = Variant(dtype="float32", embedding_offset=0, opsets={}, files=files)
    manifest = dataclasses.replace(model.manifest, variants={"cpu-fp32": variant})
    return dataclasses.replace(model, manifest=manifest)


def test_a_shortlist_may_be_asked_for_where_the_variant_has_steps_for_one(model: Model) -> None:
    assert with_files(model, StepForm(has_shortlist=True).file).has_shortlist
    assert not with_files(model, StepForm().file).has_shortlist


def test_a_shortlist_of_another_variant_does_not_count(model: Model) -> None:
    other = dataclasses.replace(with_files(model, StepForm(has_shortlist=True).file), variant="cpu-int8")

    assert not other.has_shortlist


def test_whoever_watches_it_stops_before_the_engine(model: Model, engine: EchoEngine) -> None:
    model.supervisor.start()

    model.stop()

    assert not model.supervisor._thread.is_alive()
    assert isinstance(engine.refuses, NotServing)


@pytest.mark.parametrize("engine", [Engine, SentenceCache, EchoEngine])
def test_whatever_answers_requests_is_called_alike(engine: type) -> None:
    """The one that tests have in place of the engine must not drift from it."""
    for name in ("submit", "check_room", "observe_text", "predict_seconds", "stop"):
        wanted, found = (inspect.signature(getattr(kind, name)) for kind in (SentenceEngine, engine))
        assert [(p.name, p.kind, p.default) for p in found.parameters.values()] == [
            (p.name, p.kind, p.default) for p in wanted.parameters.values()
        ]
