"""What is a loop, and how much of it is kept."""

import random

import pytest

from server.decoding.loops import LoopWatch

EOS = 3
SOURCE = (*range(100, 110), EOS)  # repeats nothing


@pytest.mark.parametrize(
    ("ids", "kept"),
    [
        ([7] * 8, 1),
        ([7] * 7, None),  # too short
        ([5, 6, *[7] * 9], 3),
        ([5, *[7, 8] * 4], 3),
        ([5, *[7, 8, 9] * 3], 4),
        ([5, *[7, 8, 9] * 2], None),  # too seldom
        ([5, *range(20, 32), *range(20, 32), *range(20, 32)], 13),  # the longest phrase
        ([5, *range(20, 33), *range(20, 33), *range(20, 33)], None),
        ([7] * 20 + [8], None),  # it has come to an end
        ([5, 8, *[7, 8, 9] * 3, 7, 8], 5),  # it ends within a phrase
        ([], None),
    ],
)
def test_a_loop_is_a_phrase_that_is_there_three_times_in_eight_tokens(ids: list[int], kept: int | None) -> None:
    assert LoopWatch(SOURCE).find(ids) == kept


def test_a_translation_may_repeat_itself_as_often_as_its_source() -> None:
    watch = LoopWatch((50, *[60, 61] * 5, 62, EOS))

    assert watch.find([7, 8, 9] * 5) is None
    assert watch.find([7, 8, 9] * 6) == 15, "as often as the source"


def test_no_loop_is_longer_than_its_source_and_sixteen_tokens() -> None:
    watch = LoopWatch((*[60] * 10, EOS))

    assert watch.find([7, 8, 9] * 8) is None
    assert watch.find([7, 8, 9] * 9) == 24
    assert watch.find([*range(20, 44), *[7, 8, 9] * 4]) == 26


def test_what_repeats_nothing_is_no_loop() -> None:
    chance = random.Random(1)
    watch = LoopWatch(SOURCE)

    assert all(watch.find([chance.randrange(50) for _ in range(40)]) is None for _ in range(200))


def test_a_long_translation_of_few_tokens_is_a_loop_that_varies() -> None:
    watch = LoopWatch((*range(100, 120), EOS))
    varied = [5, 6, 7, 8, 6, 5, 8, 7, 9, 5, 6, 8, 5, 9, 7, 6, 8, 9, 5, 7, 8, 6, 9, 7]

    assert watch.find([*range(200, 212), *varied]) is None, "it is as long as it may be"
    assert watch.find([*range(200, 213), *varied]) == 36
    assert watch.find([*range(200, 213), *range(300, 324)]) is None


def test_a_long_translation_has_no_loop_that_has_come_and_gone() -> None:
    watch = LoopWatch((*range(100, 120), EOS))
    others = [*range(300, 315)]

    assert watch.find([*range(200, 213), *[7, 8, 9] * 3, *others]) == 36
    assert watch.find([*range(200, 213), *[7, 8, 9] * 2, 7, 8, 10, *others]) is None
