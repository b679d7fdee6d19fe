import dataclasses
import time

import pytest

from server.decoding.options import DecodingOptions
from server.engine.flow import ANYONE, Flow
from server.errors import InvalidRequest, Overloaded
from server.models.model import Model
from server.telemetry.metrics import Metrics
from server.text.sentences import SourceSentence, SplitText
from server.text.splitter import MAX_TEXT_BYTES
from server.translation.answer import TextAnswer
from server.translation.groups import TextGroup, make_legs
from server.translation.request import DecodingRequest, TranslationRequest
from server.translation.routes import Step
from tests.server.echo_engine import EchoEngine
from tests.server.translation.test_routing import of_pairs

STEPS = (Step("ende", "en", "de"), Step("defr", "de", "fr"))


class AskedEngine(EchoEngine):
    """Notes the deadlines and characters that it is asked for room for."""

    def __init__(self, alone_seconds: float = 0.0) -> None:
        super().__init__(alone_seconds=alone_seconds)
        self.asked: list[tuple[int, float]] = []

    def check_room(
        self, num_characters: int, options: DecodingOptions, deadline: float | None, flow: Flow = ANYONE
    ) -> float:
        assert deadline is not None
        self.asked.append((num_characters, deadline))
        return super().check_room(num_characters, options, deadline, flow)


@pytest.fixture
def engines() -> list[AskedEngine]:
    return [AskedEngine(), AskedEngine(alone_seconds=2.0)]


@pytest.fixture
def used(model: Model, engines: list[AskedEngine]) -> dict[str, Model]:
    models = [of_pairs(model, "ende", "en-de"), of_pairs(model, "defr", "de-fr")]
    return {
        each.manifest.name: dataclasses.replace(each, engine=engine)
        for each, engine in zip(models, engines, strict=True)
    }


def request(**decoding: int | None) -> TranslationRequest:
    return TranslationRequest(
        contents=["Hi."],
        source_language_code="en",
        target_language_code="fr",
        decoding=DecodingRequest(**decoding),  # type: ignore[arg-type]
        arrived=0.0,
        deadline=1.0,
    )


def test_the_first_leg_makes_one_translation_as_long_as_it_is(used: dict[str, Model]) -> None:
    asked = request(beam_size=5, num_hypotheses=3, max_output_tokens=9)
    first, second = (leg.options for leg in make_legs(asked, STEPS, used, 2))

    assert (first.beam_size, first.num_hypotheses, first.max_output_tokens) == (5, 1, None)
    assert (second.beam_size, second.num_hypotheses, second.max_output_tokens) == (5, 3, 9)
    assert [leg.options.beam_size for leg in make_legs(request(), STEPS, used, 2)] == [2, 2]


def test_an_option_must_be_within_the_limits_of_both_models(used: dict[str, Model]) -> None:
    manifest = used["ende"].manifest
    narrow = dataclasses.replace(manifest, limits=dataclasses.replace(manifest.limits, max_beam_size=2))
    used["ende"] = dataclasses.replace(used["ende"], manifest=narrow)

    with pytest.raises(InvalidRequest, match="beam_size: must be from 1 to 2"):
        make_legs(request(beam_size=4), STEPS, used, 0)
    with pytest.raises(InvalidRequest, match="target_language_code: must be one of de, not fr"):
        make_legs(request(), (Step("ende", "en", "fr"),), used, 0)


def test_the_first_leg_leaves_the_second_the_time_that_it_takes(
    used: dict[str, Model], engines: list[AskedEngine]
) -> None:
    group = TextGroup(make_legs(request(), STEPS, used, 0), [0, 2], ["abc", "other", "de"])
    deadline = time.monotonic() + 60
    group.check_room(deadline, ANYONE)

    assert [engine.asked for engine in engines] == [[(5, deadline - 2.0)], [(5, deadline)]]
    assert [leg.spared_seconds for leg in group.legs] == [2.0, 0.0]


def test_but_never_more_than_half_of_it(used: dict[str, Model], engines: list[AskedEngine]) -> None:
    engines[1].alone_seconds = 1000.0
    group = TextGroup(make_legs(request(), STEPS, used, 0), [0], ["abc"])
    group.check_room(time.monotonic() + 60, ANYONE)

    assert group.legs[0].spared_seconds == pytest.approx(30, abs=5)


@pytest.mark.parametrize("full", [0, 1])
def test_both_engines_must_have_room(used: dict[str, Model], engines: list[AskedEngine], full: int) -> None:
    engines[full].refuses = Overloaded("full", "tokens")

    with pytest.raises(Overloaded):
        TextGroup(make_legs(request(), STEPS, used, 0), [0], ["abc"]).check_room(1.0, ANYONE)


def test_texts_cost_what_both_legs_do(used: dict[str, Model], metrics: Metrics) -> None:
    sentence, copied = SourceSentence("a b", "", (5, 6, 3)), SourceSentence("*", "", None)
    answers = [TextAnswer(SplitText("", sentences)) for sentences in ((sentence, copied), (sentence,), (sentence,))]
    both = TextGroup(make_legs(request(beam_size=2), STEPS, used, 0), [0, 2], ["abc", "other", "de"])
    one = TextGroup(make_legs(request(beam_size=2), STEPS[1:], used, 0), [1], ["abc", "other", "de"])

    assert both.cost(answers) == 2 * one.cost(answers) * 2 == 16.0
    both.observe(answers)
    engine = used["ende"].engine
    assert isinstance(engine, EchoEngine)
    assert engine.observed == [(5, 4)]
    assert one.split_rules.language == "de"


def test_texts_that_are_too_long_count_for_nothing(used: dict[str, Model]) -> None:
    legs = make_legs(request(), STEPS, used, 0)

    assert TextGroup(legs, [0, 1], ["abc", "x" * (MAX_TEXT_BYTES + 1)]).num_characters == 3
