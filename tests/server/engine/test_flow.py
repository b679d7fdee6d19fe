"""The flow of whoever names none."""

from server.engine.flow import ANYONE, Flow


def test_requests_without_a_flow_are_one() -> None:
    assert Flow() == ANYONE
    assert ANYONE.weight == 1.0
