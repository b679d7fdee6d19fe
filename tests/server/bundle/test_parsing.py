from dataclasses import dataclass, field
from typing import Any

import pytest

from server.bundle.parsing import parse


@dataclass(frozen=True)
class Inner:
    size: int
    weight: float


@dataclass(frozen=True)
class Outer:
    name: str
    inner: Inner
    pairs: tuple[Inner, ...] = field(default_factory=tuple)
    by_name: dict[str, int] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    spare: Inner | None = None
    count: int = 7


WHOLE = {"name": "a", "inner": {"size": 1, "weight": 0.5}}


def faults_of(document: object) -> list[str]:
    faults: list[str] = []
    parse(Outer, document, "", faults)
    return faults


def test_json_becomes_dataclasses_within_dataclasses() -> None:
    faults: list[str] = []
    document = {
        **WHOLE,
        "pairs": [{"size": 2, "weight": 1.0}, {"size": 3, "weight": 2.0}],
        "by_name": {"x": 4},
        "notes": {"anything": [None, {"at": "all"}]},
    }

    parsed = parse(Outer, document, "", faults)

    assert faults == []
    assert parsed == Outer(
        name="a",
        inner=Inner(1, 0.5),
        pairs=(Inner(2, 1.0), Inner(3, 2.0)),
        by_name={"x": 4},
        notes={"anything": [None, {"at": "all"}]},
    )


def test_what_has_a_default_may_be_absent() -> None:
    assert parse(Outer, WHOLE, "", []) == Outer("a", Inner(1, 0.5))


def test_what_may_be_none_is_none_or_what_it_may_be() -> None:
    faults: list[str] = []

    assert parse(Outer, {**WHOLE, "spare": None}, "", faults) == Outer("a", Inner(1, 0.5))
    assert parse(Outer, {**WHOLE, "spare": {"size": 2, "weight": 1.0}}, "", faults).spare == Inner(2, 1.0)
    assert faults == []
    assert faults_of({**WHOLE, "spare": 3}) == ["spare must be an object, not int"]


def test_a_whole_number_will_do_for_a_fraction_and_not_the_other_way() -> None:
    faults: list[str] = []

    assert parse(Inner, {"size": 1, "weight": 2}, "inner", faults) == Inner(1, 2.0)
    assert faults == []
    parse(Inner, {"size": 1.0, "weight": 2.0}, "inner", faults)
    assert faults == ["inner.size must be int, not float"]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"name": None}, "name must be str, not NoneType"),
        ({"name": True}, "name must be str, not bool"),
        ({"inner": {"size": True, "weight": 1.0}}, "inner.size must be int, not bool"),
        ({"inner": {"size": 1, "weight": False}}, "inner.weight must be float, not bool"),
        ({"inner": {"size": 1, "weight": "1"}}, "inner.weight must be float, not str"),
        ({"inner": []}, "inner must be an object, not list"),
        ({"inner": {"size": 1}}, "inner.weight is missing"),
        ({"inner": {"size": 1, "weight": 1.0, "more": 0}}, "inner.more is unknown"),
        ({"pairs": {}}, "pairs must be tuple[tests.server.bundle.test_parsing.Inner, ...], not dict"),
        ({"pairs": [{"size": 1, "weight": 1.0}, 7]}, "pairs[1] must be an object, not int"),
        ({"by_name": []}, "by_name must be dict[str, int], not list"),
        ({"by_name": {"x": "4"}}, "by_name.x must be int, not str"),
        ({"more": 0}, "more is unknown"),
    ],
)
def test_a_fault_is_named_with_its_place(changes: dict[str, object], fault: str) -> None:
    assert faults_of({**WHOLE, **changes}) == [fault]


def test_all_faults_are_noted_at_once() -> None:
    document = {"inner": {"size": "1", "more": 0}, "by_name": {"x": None, "y": None}, "other": 0}

    assert sorted(faults_of(document)) == [
        "by_name.x must be int, not NoneType",
        "by_name.y must be int, not NoneType",
        "inner.more is unknown",
        "inner.size must be int, not str",
        "inner.weight is missing",
        "name is missing",
        "other is unknown",
    ]


def test_what_has_faults_is_not_built() -> None:
    assert parse(Inner, {"size": 1}, "inner", []) is None
