"""Canaries by which a supervisor finds lanes that fail, idle or busy, on a clock that moves half a second a look."""

from collections.abc import Callable
from typing import Any

from server.errors import Code
from server.network import StepKind
from tests.fakes import EOS
from tests.server.engine.parts import SHORTLIST
from tests.server.models.watched import Watched, make_wrong, on_first_decoder, once, raising


def test_an_idle_engine_translates_a_canary_on_every_lane_now_and_then(watch: Callable[..., Watched]) -> None:
    watched = watch(2)
    look_at = 9.5

    watched.look_until(lambda: watched.clock.now == look_at)
    assert watched.sample("canaries_total", result="passed") == 0
    watched.look_until(lambda: all(each.canary is not None for each in watched.supervisor._watched))
    assert watched.clock.now <= 10.5
    watched.look_until(lambda: watched.sample("canaries_total", result="passed") == 2)

    assert watched.runner.num_decoders == 2


def test_lanes_are_proven_round_after_round_by_each_kind_of_step(watch: Callable[..., Watched]) -> None:
    watched = watch(2)
    watched.submitted += watched.engine.submit([(3, 50, EOS)] * 2, SHORTLIST)

    watched.look_until(lambda: watched.sample("canaries_total", result="passed") >= 12)

    assert watched.runner.kinds.count(StepKind.SHORTLIST) >= 3 * 2
    assert watched.supervisor.is_ready()


def test_idle_engines_of_many_models_together_translate_as_many_canaries_as_one(watch: Callable[..., Watched]) -> None:
    watched = watch(num_models=4)

    seconds = watched.look_until(lambda: watched.sample("canaries_total", result="passed") == 2)

    assert seconds >= 40.0


def test_a_busy_lane_translates_its_canary_beside_the_others(watch: Callable[..., Watched]) -> None:
    watched = watch(1)
    callers = watched.submit(*[3] * 4)
    running = True

    def keep_busy(*_: Any) -> None:
        if running and watched.engine._dispatch.waiting.num_sentences < 8:
            callers.extend(watched.submit(*[3] * 8))

    watched.runner.spoil = keep_busy
    watched.look_until(lambda: watched.sample("canaries_total", result="passed") == 1)
    running = False
    watched.look_until(lambda: all(each.done() for each in callers))

    assert watched.codes() == {Code.OK}
    assert watched.supervisor.is_ready()


def test_a_shortlist_that_only_fails_is_found_although_plain_steps_succeed(watch: Callable[..., Watched]) -> None:
    watched = watch(1)

    def fail_by_shortlist(*_: Any) -> None:
        if watched.runner.kinds[-1] is StepKind.SHORTLIST:
            raise RuntimeError("broken")

    watched.runner.spoil = fail_by_shortlist
    watched.submitted += watched.engine.submit([(3, 50, EOS)], SHORTLIST)

    watched.look_until(lambda: watched.sample("lane_rebuilds_total") == 1 and watched.is_well())
    watched.submitted += watched.engine.submit([(3, 50, EOS)], SHORTLIST)
    watched.look_until(lambda: not watched.supervisor.is_alive())

    assert watched.codes() == {Code.INTERNAL}
    assert watched.sample("canaries_total", result="passed") >= 2  # by plain steps


def test_one_failed_canary_may_be_anothers_fault(watch: Callable[..., Watched]) -> None:
    watched = watch(1, once(raising(RuntimeError("broken"))))

    watched.look_until(lambda: watched.sample("canaries_total", result="failed") == 1)  # of the idle engine
    watched.look_until(watched.is_well)

    assert watched.sample("canaries_total", result="passed") == 1
    assert watched.sample("lane_rebuilds_total") == 0


def test_translations_are_distrusted_again_when_the_wrong_lane_has_ended(watch: Callable[..., Watched]) -> None:
    watched = watch(1, on_first_decoder(make_wrong))
    lane, had_ended = watched.engine.lanes[0], list[bool]()
    watched.supervisor._distrust = lambda: had_ended.append(lane.has_ended)

    watched.look_until(lambda: watched.sample("lane_rebuilds_total") == 1)

    assert (len(had_ended), had_ended[-1]) == (2, True)  # the lane answers sentences yet in its last step
