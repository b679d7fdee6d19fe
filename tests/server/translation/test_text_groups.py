import dataclasses
import math
import time
from collections.abc import Sequence

import pytest

from server.decoding.options import DecodingOptions
from server.engine.flow import ANYONE, Flow
from server.errors import Overloaded
from server.models.model import Model
from server.text.source import SourceSentence, SplitText
from server.text.splitter import MAX_TEXT_BYTES
from server.translation.legs import Leg
from server.translation.routes import Routes, TextRoute
from server.translation.text_groups import TextGroup, group_texts
from tests.server.echo_engine import EchoEngine
from tests.server.translation.parts import of_pairs
from tests.server.translation.test_legs import request


class AskedEngine(EchoEngine):
    """Notes the deadlines and characters that it is asked for room for."""

    def __init__(self, alone_seconds: float = 0.0) -> None:
        super().__init__(alone_seconds=alone_seconds)
        self.asked: list[tuple[int, float]] = []

    def check_room(
        self, lengths: Sequence[int], options: DecodingOptions, deadline: float = math.inf, flow: Flow = ANYONE
    ) -> float:
        assert deadline is not None
        self.asked.append((sum(lengths), deadline))
        return super().check_room(lengths, options, deadline, flow)


@pytest.fixture
def engines() -> list[AskedEngine]:
    return [AskedEngine(), AskedEngine(alone_seconds=2.0)]


@pytest.fixture
def models(model: Model, engines: list[AskedEngine]) -> dict[str, Model]:
    two = of_pairs(model, "ende", "en-de"), of_pairs(model, "defr", "de-fr")
    return {
        each.manifest.name: dataclasses.replace(each, engine=engine) for each, engine in zip(two, engines, strict=True)
    }


def routes_of(models: dict[str, Model], *sources: str) -> list[TextRoute]:
    """Routes to French, from languages that the models translate; none for an empty source."""
    table = Routes([each.manifest for each in models.values()], [], ["de"])
    return [TextRoute(table.find("", source, "fr").legs if source else ()) for source in sources]


def legs_of(models: dict[str, Model]) -> tuple[Leg, ...]:
    """The legs from English to French."""
    (group,) = group_texts(request(), routes_of(models, "en"), models, 0)
    return group.legs


def test_texts_that_go_by_the_same_legs_are_a_group(models: dict[str, Model]) -> None:
    asked = request("abc", "other", "", "de")
    groups = group_texts(asked, routes_of(models, "en", "de", "", "en"), models, 0)

    assert [group.indices for group in groups] == [[0, 3], [1]]
    assert [[leg.model.manifest.name for leg in group.legs] for group in groups] == [["ende", "defr"], ["defr"]]
    assert [group.num_characters for group in groups] == [5, 5]


def test_the_first_leg_leaves_the_second_the_time_that_it_takes(
    models: dict[str, Model], engines: list[AskedEngine]
) -> None:
    group = TextGroup(legs_of(models), [0, 2], ["abc", "other", "de"])
    deadline = time.monotonic() + 60
    group.check_room(deadline, ANYONE)

    assert [engine.asked for engine in engines] == [[(5, deadline - 2.0)], [(5, deadline)]]
    assert [leg.spared_seconds for leg in group.legs] == [2.0, 0.0]


def test_but_never_more_than_half_of_it(models: dict[str, Model], engines: list[AskedEngine]) -> None:
    engines[1].alone_seconds = 1000.0
    group = TextGroup(legs_of(models), [0], ["abc"])
    group.check_room(time.monotonic() + 60, ANYONE)

    assert group.legs[0].spared_seconds == pytest.approx(30, abs=5)


@pytest.mark.parametrize("full", [0, 1])
def test_both_engines_must_have_room(models: dict[str, Model], engines: list[AskedEngine], full: int) -> None:
    engines[full].refuses = Overloaded("full", "tokens")

    with pytest.raises(Overloaded):
        TextGroup(legs_of(models), [0], ["abc"]).check_room(1.0, ANYONE)


def test_texts_cost_what_both_legs_do(models: dict[str, Model]) -> None:
    sentence, copied = SourceSentence("a b", "", (5, 6, 3)), SourceSentence("*", "", None)
    texts = [SplitText("", sentences) for sentences in ((sentence, copied), (sentence,), (sentence,))]
    asked = request("abc", "other", "de", beam_size=2)
    both, one = group_texts(asked, routes_of(models, "en", "de", "en"), models, 0)

    assert both.measure(texts) == 2 * one.measure(texts) * 2 == 16.0
    engine = models["ende"].engine
    assert isinstance(engine, EchoEngine)
    assert engine.observed == [(7, 4)]


def test_texts_that_are_too_long_count_for_nothing(models: dict[str, Model]) -> None:
    legs = legs_of(models)

    assert TextGroup(legs, [0, 1], ["abc", "x" * (MAX_TEXT_BYTES + 1)]).num_characters == 3
