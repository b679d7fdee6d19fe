"""Tests of which error a fault of the network becomes; `test_batch_failures` has who is answered with it."""

import pytest

from server.errors import EngineFailed, NotServing, Overloaded, TranslationError
from server.network import DeviceLost, OutOfMemory
from tests.server.engine.parts import Parts


@pytest.mark.parametrize(
    ("fault", "answer"),
    [(DeviceLost("gone"), NotServing), (OutOfMemory("full"), Overloaded), (ValueError("odd"), EngineFailed)],
)
def test_a_fault_is_told_as_what_may_be_done_about_it(
    parts: Parts, fault: Exception, answer: type[TranslationError]
) -> None:
    found = parts.faults.note(fault, num_sentences=1)

    assert type(found) is answer
    assert found.cause == str(fault)
    assert str(fault) not in str(found)
