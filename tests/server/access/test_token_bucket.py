import pytest

from server.access.token_bucket import TokenBucket


class Clock:
    """Stands still unless a test moves it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def bucket(clock: Clock) -> TokenBucket:
    """Two seconds' worth come in per second, at most ten are kept."""
    return TokenBucket(rate=2.0, burst=10.0, clock=clock)


def test_a_full_bucket_gives_its_burst_and_then_says_how_long_to_wait(bucket: TokenBucket) -> None:
    assert [bucket.take(4.0), bucket.take(6.0)] == [0.0, 0.0]

    assert bucket.take(3.0) == 1.5


def test_after_the_wait_that_it_told_it_gives(bucket: TokenBucket, clock: Clock) -> None:
    bucket.take(10.0)

    clock.now += bucket.take(3.0) - 0.001
    assert bucket.take(3.0) == pytest.approx(0.001)
    clock.now += 0.0011
    assert bucket.take(3.0) == 0.0


def test_what_is_refused_takes_nothing(bucket: TokenBucket) -> None:
    bucket.take(9.0)

    assert bucket.take(5.0) > 0
    assert bucket.take(1.0) == 0.0


def test_it_never_holds_more_than_its_burst(bucket: TokenBucket, clock: Clock) -> None:
    clock.now += 3600.0

    assert bucket.take(10.0) == 0.0
    assert bucket.take(1.0) == 0.5


def test_a_cost_over_the_burst_waits_for_a_full_bucket_and_leaves_a_debt(bucket: TokenBucket, clock: Clock) -> None:
    bucket.take(1.0)
    assert bucket.take(30.0) == 0.5

    clock.now += 0.5
    assert bucket.take(30.0) == 0.0

    assert bucket.take(0.0) == 10.0  # 20 of debt
    clock.now += 10.0
    assert bucket.take(0.0) == 0.0
    assert bucket.take(2.0) == 1.0


def test_what_is_given_back_can_be_taken_again_but_never_overfills(bucket: TokenBucket) -> None:
    bucket.take(10.0)
    bucket.give_back(4.0)
    assert bucket.take(4.0) == 0.0

    bucket.give_back(100.0)
    assert [bucket.take(10.0), bucket.take(1.0)] == [0.0, 0.5]


def test_over_time_it_gives_its_rate(bucket: TokenBucket, clock: Clock) -> None:
    taken = 0.0
    for _ in range(1000):
        clock.now += 0.1
        while bucket.take(0.25) == 0.0:
            taken += 0.25

    assert taken == pytest.approx(10.0 + 100.0 * 2.0, abs=0.25)
