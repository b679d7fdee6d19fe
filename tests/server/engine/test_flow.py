"""As whose a request counts."""

from server.engine.flow import ANYONE, Flow


def test_requests_without_a_flow_are_one() -> None:
    assert Flow() == ANYONE
    assert ANYONE.weight == 1.0


def test_a_tenants_long_requests_are_a_flow_of_their_own_with_less_weight() -> None:
    flow = Flow(name="a", weight=4.0, rank=2)
    long = flow.of_long()

    assert long != flow
    assert (long.name, long.rank, long.weight) == ("a", 2, 1.0)
    assert flow == Flow(name="a", rank=7)


def test_the_flow_of_long_requests_is_its_own() -> None:
    long = Flow(name="a").of_long()

    assert long.of_long().weight == long.weight


def test_a_tenants_bulk_calls_are_a_flow_of_their_own_with_the_weight_of_long_requests() -> None:
    flow = Flow(name="a", weight=4.0, rank=2)
    bulk = flow.of_bulk()

    assert len({flow, flow.of_long(), bulk}) == 3
    assert (bulk.name, bulk.rank, bulk.weight) == ("a", 2, 1.0)
    assert bulk.of_long() == bulk, "a long text of a bulk call is of its flow"


def test_what_a_request_still_needs_goes_before_requests_of_its_rank_and_is_of_its_flow() -> None:
    flow = Flow(name="a", rank=2)

    assert flow.first() == flow
    assert flow.first().rank < flow.rank
    assert (flow.is_begun, flow.first().is_begun) == (False, True)
