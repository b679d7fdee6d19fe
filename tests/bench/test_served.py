"""What the served load says where there is only our server."""

from tests.bench.served import _rows


def test_our_figures_stand_alone_where_there_is_nothing_to_compare_with() -> None:
    facts = {"section": "served", "model": "base", "setting": "served, 80% load"}
    ours, theirs = {"p95 ms": [10.0]}, {"p95 ms": [20.0]}

    (alone,) = _rows([ours], ["p95 ms"], **facts)
    (beside,) = _rows([ours, theirs], ["p95 ms"], **facts)

    assert (alone.ours, alone.theirs, alone.quotient, alone.is_headline) == (10.0, None, "", True)
    assert (beside.ours, beside.theirs, beside.quotient) == (10.0, 20.0, "0.50")
