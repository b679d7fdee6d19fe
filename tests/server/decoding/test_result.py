import pytest

from server.decoding.result import FinishReason, Result, Timings


def test_the_longest_of_timings_is_taken_for_each_by_itself() -> None:
    slow_queue = Timings(queue_seconds=3.0, encode_seconds=0.1, decode_seconds=0.2)
    slow_network = Timings(queue_seconds=0.5, encode_seconds=0.4, decode_seconds=2.0)

    longest = Timings.longest(iter([slow_queue, slow_network]))

    assert longest == Timings(queue_seconds=3.0, encode_seconds=0.4, decode_seconds=2.0)


def test_of_no_sentence_the_longest_is_no_time() -> None:
    assert Timings.longest([]) == Timings(queue_seconds=0.0, encode_seconds=0.0, decode_seconds=0.0)


def test_a_result_took_no_time_unless_it_says_so() -> None:
    assert Result(()).timings == Timings.longest([])


def test_of_what_follows_at_one_time_the_longest_is_added() -> None:
    first = Timings(queue_seconds=1.0, encode_seconds=2.0, decode_seconds=3.0)
    later = [Timings(queue_seconds=0.5), Timings(queue_seconds=0.25, decode_seconds=1.0)]

    assert first.followed_by(later) == Timings(queue_seconds=1.5, encode_seconds=2.0, decode_seconds=4.0)
    assert first.followed_by([]) == first


@pytest.mark.parametrize(
    ("reasons", "worst"),
    [
        (["STOP", "LENGTH", "REPETITION"], "LENGTH"),
        (["STOP", "COPIED", "REPETITION"], "REPETITION"),
        (["STOP", "COPIED"], "STOP"),
        (["COPIED", "COPIED"], "COPIED"),
        ([], "STOP"),
    ],
)
def test_of_several_reasons_the_worst_is_told(reasons: list[str], worst: str) -> None:
    assert FinishReason.of_all(FinishReason[reason] for reason in reasons) is FinishReason[worst]
