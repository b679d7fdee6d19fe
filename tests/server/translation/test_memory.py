import pytest

from server.errors import InvalidRequest, Overloaded, SettingsError
from server.translation.memory import MemoryBudget, message_need, requests_share, sentences_need

MIB = 1 << 20


def test_what_is_held_is_counted_and_given_back() -> None:
    memory = MemoryBudget(10)

    with memory.hold(4), memory.hold(6):
        held = memory.used_bytes

    assert (held, memory.used_bytes) == (10, 0)


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


def test_needs_grow_with_bytes_sentences_and_hypotheses() -> None:
    assert message_need(2 * MIB) == 2 * message_need(MIB) > 2 * MIB
    assert sentences_need(10, 4) == 10 * sentences_need(1, 4) > sentences_need(10, 1)


def test_requests_get_what_the_model_its_caches_and_messages_leave() -> None:
    assert requests_share(1000 * MIB, 200 * MIB, 100 * MIB, 64 * MIB) == 536 * MIB


def test_too_little_memory_is_a_fault_that_says_what_takes_it() -> None:
    with pytest.raises(SettingsError) as caught:
        requests_share(256 * MIB, 150 * MIB, 96 * MIB, 64 * MIB)

    (fault,) = caught.value.faults
    assert fault == (
        "--memory-mib: 256 MiB are too few: the model takes 150, may take 96 more, messages 64, and requests need 32"
    )
