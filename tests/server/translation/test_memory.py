import contextlib
from collections.abc import Iterator

import pytest

from server.errors import InvalidRequest, Overloaded, SettingsError
from server.translation.memory import (
    Holder,
    MemoryBudget,
    answer_need,
    holder,
    message_need,
    requests_share,
    sentences_need,
)

MIB = 1 << 20


def test_what_is_held_is_counted_and_given_back() -> None:
    memory = MemoryBudget(20)

    with memory.hold(3), memory.hold(5):
        held = memory.used_bytes

    assert (held, memory.used_bytes) == (8, 0)


def test_what_does_not_fit_beside_others_is_refused() -> None:
    memory = MemoryBudget(10 * MIB)

    with memory.hold(4 * MIB), pytest.raises(Overloaded) as caught, memory.hold(7 * MIB):
        pass

    assert (caught.value.reason, memory.used_bytes) == ("memory", 0)
    assert str(caught.value) == "requests under way hold 4 of 10 MiB, this one needs 7"


def test_what_never_fits_is_no_case_for_a_retry() -> None:
    with (
        pytest.raises(InvalidRequest, match="needs 11 MiB of memory; this server has 10"),
        MemoryBudget(10 * MIB).hold(11 * MIB),
    ):
        pass


def test_memory_is_given_back_when_a_call_fails() -> None:
    memory = MemoryBudget(10)

    with pytest.raises(ZeroDivisionError), memory.hold(4):
        raise ZeroDivisionError

    assert memory.used_bytes == 0


class Clock:
    """Stands still, but for what a test adds."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@contextlib.contextmanager
def held_by(name: str, memory: MemoryBudget, mib: int, weight: float = 1.0) -> Iterator[None]:
    """Holds memory as somebody does."""
    token = holder.set(Holder(name=name, weight=weight))
    try:
        held = memory.hold(mib * MIB)
        held.__enter__()
    finally:
        holder.reset(token)
    yield
    held.__exit__(None, None, None)


def test_what_is_kept_is_counted_although_there_is_no_room_for_it() -> None:
    memory = MemoryBudget(10)

    give_back = memory.keep(11)

    assert memory.used_bytes == 11
    with pytest.raises(Overloaded), memory.hold(1):
        pass
    give_back()
    assert memory.used_bytes == 0


def test_nobody_takes_the_last_eighth_but_who_holds_nothing() -> None:
    memory = MemoryBudget(80 * MIB)

    with held_by("a", memory, 70):
        with pytest.raises(
            Overloaded, match=r"^the caller's requests under way hold 70 of its 52 MiB, this one needs 1"
        ):
            held_by("a", memory, 1).__enter__()
        with held_by("b", memory, 10):
            assert memory.used_bytes == 80 * MIB


def test_while_others_are_active_everybody_has_a_share_by_weight() -> None:
    memory = MemoryBudget(80 * MIB)

    with held_by("a", memory, 20), held_by("b", memory, 20, weight=3.0):
        with pytest.raises(Overloaded, match="hold 20 of its 15 MiB"):
            held_by("a", memory, 1).__enter__()
        with held_by("b", memory, 25, weight=3.0):
            pass


def test_small_requests_find_room_beside_large_ones_of_the_same_holder() -> None:
    memory = MemoryBudget(80 * MIB)

    with held_by("a", memory, 30), held_by("a", memory, 22):
        with pytest.raises(Overloaded, match="hold 52 of its 52 MiB, this one needs 1"):
            held_by("a", memory, 1).__enter__()
        token = holder.set(Holder(name="a"))
        with memory.hold(MIB // 4), memory.hold(MIB // 4):
            assert memory.used_bytes == 52 * MIB + MIB // 2
        holder.reset(token)


def test_shares_do_not_count_while_half_of_all_is_free() -> None:
    memory = MemoryBudget(80 * MIB)

    with held_by("b", memory, 1), held_by("c", memory, 1), held_by("a", memory, 30), held_by("a", memory, 8):
        assert memory.used_bytes == 40 * MIB


def test_who_has_not_asked_for_long_has_no_share_any_more() -> None:
    clock = Clock()
    memory = MemoryBudget(80 * MIB, clock)
    with held_by("b", memory, 1):
        pass

    with held_by("a", memory, 40):
        with pytest.raises(Overloaded, match="hold 40 of its 30 MiB"):
            held_by("a", memory, 10).__enter__()
        clock.now += 11.0
        with held_by("a", memory, 10):
            pass


def test_a_request_that_has_begun_is_not_refused_by_its_holders_share() -> None:
    memory = MemoryBudget(80 * MIB)

    with memory.hold(79 * MIB), memory.hold(1 * MIB, is_more=True):
        assert memory.used_bytes == 80 * MIB


def test_needs_grow_with_bytes_sentences_and_hypotheses() -> None:
    assert message_need(2 * MIB) == 2 * message_need(MIB) > 2 * MIB
    assert answer_need(2 * MIB) == 2 * answer_need(MIB) > 2 * MIB
    assert sentences_need(10, 4) == 10 * sentences_need(1, 4) > sentences_need(10, 1)
    assert sentences_need(1, 1, num_nodes=10) > sentences_need(1, 1)


def test_requests_get_what_the_model_its_caches_and_messages_leave() -> None:
    assert requests_share(1000 * MIB, 200 * MIB, 100 * MIB, 64 * MIB) == 536 * MIB


def test_too_little_memory_is_a_fault_that_says_what_takes_it() -> None:
    with pytest.raises(SettingsError) as caught:
        requests_share(256 * MIB, 150 * MIB, 96 * MIB, 64 * MIB)

    (fault,) = caught.value.faults
    assert fault == (
        "--memory-mib: 256 MiB are too few: the model takes 150, may take 96 more, messages 64, and requests need 32"
    )


def test_what_models_take_later_is_not_for_requests_until_it_is_given_back() -> None:
    memory = MemoryBudget(100 << 20)

    assert memory.reserve(60 << 20)
    assert memory.max_bytes == 40 << 20
    assert not memory.reserve(69 << 20)
    assert memory.max_bytes == 32 << 20
    assert memory.reserve(0)
    assert memory.max_bytes == 100 << 20


def test_less_can_be_reserved_though_too_little_is_left() -> None:
    memory = MemoryBudget(60 << 20)
    assert memory.reserve(20 << 20)
    memory.max_bytes -= 30 << 20

    assert memory.reserve(10 << 20)
