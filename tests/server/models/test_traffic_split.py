import hashlib

import pytest

from server.models.traffic_split import TrafficSplit

KEYS = [f"user {number}" for number in range(2000)]


def chosen(split: TrafficSplit, model: str = "en-de") -> dict[str, str]:
    return {key: split.choose(model, key) for key in KEYS}


def test_a_key_goes_where_the_documented_hash_says() -> None:
    split = TrafficSplit.of({"2": 30, "1": 70})

    for key, version in chosen(split).items():
        digest = hashlib.sha256(b"en-de\0" + key.encode()).hexdigest()
        bucket = int(digest[:16], 16) % 100
        assert version == ("1" if bucket < 70 else "2")


@pytest.mark.parametrize("percents", [{"1": 100}, {"1": 99, "2": 1}, {"9": 50, "10": 30, "11": 20}, {"1": 0, "2": 100}])
def test_versions_have_their_shares(percents: dict[str, int]) -> None:
    versions = list(chosen(TrafficSplit.of(percents)).values())

    for version, percent in percents.items():
        assert versions.count(version) / len(KEYS) == pytest.approx(percent / 100, abs=0.03)


def test_no_key_leaves_the_highest_version_while_its_share_grows() -> None:
    highest: set[str] = set()
    for percent in (1, 5, 10, 50, 99, 100):
        versions = chosen(TrafficSplit.of({"9": 100 - percent, "10": percent}))
        grown = {key for key, version in versions.items() if version == "10"}
        assert highest < grown
        highest = grown


def test_of_two_models_different_keys_go_first() -> None:
    split = TrafficSplit.of({"1": 90, "2": 10})
    one, other = ({key for key, version in chosen(split, name).items() if version == "2"} for name in ("a", "b"))

    assert len(one & other) < len(one) / 3


def test_the_main_version_has_most_and_of_equals_is_the_lowest() -> None:
    assert TrafficSplit.of({"1": 40, "2": 60}).main == "2"
    assert TrafficSplit.of({"10": 50, "9": 50}).main == "9"
    split = TrafficSplit.of({"1": 100, "2": 0})
    assert (split.main, split.percent("1"), split.percent("2"), split.percent("3")) == ("1", 100, 0, 0)


def test_shares_that_are_not_whole_are_no_split() -> None:
    with pytest.raises(AssertionError):
        TrafficSplit.of({"1": 90})
