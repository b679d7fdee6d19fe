from functools import partial

from server.engine.charges import Charges
from server.engine.flow import Flow
from server.engine.limits import EngineLimits
from server.errors import Overloaded
from tests.fakes import lane_limits

A, B, C = Flow(name="a"), Flow(name="b"), Flow(name="c")


def new_charges(sentences: int = 10, tokens: int = 1000) -> Charges:
    return Charges(
        EngineLimits(num_lanes=1, lane=lane_limits(), max_waiting_tokens=tokens, max_waiting_sentences=sentences)
    )


def add(charges: Charges, flow: Flow, count: int) -> None:
    for _ in range(count):
        charges.add(flow, 1, 5, +1)


def exceeded(charges: Charges, flow: Flow, share: float) -> str | None:
    """Returns which limit lets nothing more of a flow in."""
    try:
        charges.check(flow, partial(_constant, share))
    except Overloaded as error:
        return error.reason
    return None


def _constant(value: float, _: Flow) -> float:
    return value


def test_a_flow_that_is_alone_may_fill_the_queue() -> None:
    charges = new_charges()
    add(charges, A, 9)
    assert exceeded(charges, A, 1.0) is None

    add(charges, A, 1)
    assert exceeded(charges, A, 1.0) == "sentences"


def test_a_full_queue_lets_others_in_up_to_their_shares() -> None:
    charges = new_charges()
    add(charges, A, 10)

    add(charges, B, 4)
    assert [exceeded(charges, flow, 0.5) for flow in (A, B)] == ["sentences", None]
    add(charges, B, 1)
    assert [exceeded(charges, flow, 0.5) for flow in (A, B)] == ["sentences", "sentences"]


def test_flows_that_come_one_after_the_other_fill_it_so_far_and_no_further() -> None:
    charges, num_waiting = new_charges(sentences=100), 0

    for count in range(1, 6):
        flow, share = Flow(name=str(count)), 1 / count
        while exceeded(charges, flow, share) is None:
            add(charges, flow, 1)
            num_waiting += 1

    assert num_waiting == 100 + 50 + 34 + 25 + 20


def test_tokens_have_a_limit_of_their_own() -> None:
    charges = new_charges(sentences=1000, tokens=50)
    add(charges, A, 10)

    assert [exceeded(charges, flow, 0.5) for flow in (A, B)] == ["tokens", None]


def test_one_request_counts_for_half_a_limit_at_most() -> None:
    charges = new_charges()
    charges.add(A, 1000, 100_000, +1)
    assert exceeded(charges, A, 1.0) is None

    charges.add(A, 1000, 100_000, +1)
    assert exceeded(charges, A, 1.0) == "sentences"
    charges.add(A, 1000, 100_000, -1)
    assert exceeded(charges, A, 1.0) is None


def test_what_is_forgotten_is_charged_to_nobody() -> None:
    charges = new_charges()
    add(charges, A, 10)

    charges.clear()

    assert exceeded(charges, A, 0.1) is None
