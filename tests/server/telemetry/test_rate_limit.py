import logging
from collections.abc import Iterator

import pytest

from server.telemetry.rate_limit import RateLimit
from tests.fakes import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def logger(clock: FakeClock) -> Iterator[logging.Logger]:
    logger, limit = logging.getLogger("server.test_rate_limit"), RateLimit(most=2, period_seconds=10.0, clock=clock)
    logger.addFilter(limit)
    yield logger
    logger.removeFilter(limit)


def spin(logger: logging.Logger, times: int) -> None:
    for _ in range(times):
        logger.error("broken", extra={"facts": {"sentences": 1}})


def facts(caplog: pytest.LogCaptureFixture) -> list[dict[str, int]]:
    return [vars(record)["facts"] for record in caplog.records]


def test_a_line_that_is_repeated_is_told_a_few_times_and_then_how_often(
    logger: logging.Logger, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    spin(logger, 40_000)
    clock.now = 10.0
    spin(logger, 1)
    clock.now = 20.0
    spin(logger, 1)

    one = {"sentences": 1}
    assert facts(caplog) == [one, one, one | {"suppressed": 39_998}, one]


def test_each_line_of_code_has_a_limit_of_its_own(logger: logging.Logger, caplog: pytest.LogCaptureFixture) -> None:
    spin(logger, 3)
    logger.error("another")

    assert [record.getMessage() for record in caplog.records] == ["broken", "broken", "another"]
