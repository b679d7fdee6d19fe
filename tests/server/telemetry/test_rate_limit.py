import logging

from server.telemetry.metrics import Metrics
from server.telemetry.rate_limit import BURST, PER_SECOND, RateLimit, RepeatedRecords
from tests.fakes import FakeClock


def record(line: int, level: int = logging.ERROR) -> logging.LogRecord:
    return logging.LogRecord("server", level, "lane.py", line, "a step failed", None, None)


def test_a_burst_is_allowed_and_then_so_many_a_second() -> None:
    clock = FakeClock()
    limit = RateLimit(clock)

    burst = [limit.take() for _ in range(BURST + 5)]
    clock.now += 2 / PER_SECOND
    later = [limit.take() for _ in range(3)]

    assert burst == [0] * BURST + [None] * 5
    assert later == [5, 0, None]


def test_a_quiet_hour_allows_no_more_than_a_burst() -> None:
    clock = FakeClock()
    limit = RateLimit(clock)

    clock.now += 3600

    assert [limit.take() for _ in range(BURST + 1)].count(None) == 1


def test_each_place_in_the_code_has_a_limit_of_its_own(metrics: Metrics) -> None:
    records = RepeatedRecords(metrics, FakeClock())

    passed = [records.filter(record(line=1)) for _ in range(BURST + 1)]

    assert passed == [True] * BURST + [False]
    assert records.filter(record(line=2))
    assert metrics.registry.get_sample_value("babelserve_log_messages_suppressed_total") == 1


def test_the_next_record_says_how_many_are_missing(metrics: Metrics) -> None:
    clock = FakeClock()
    records = RepeatedRecords(metrics, clock)
    for _ in range(BURST + 7):
        records.filter(record(line=1))
    clock.now += 1
    told = record(line=1)
    vars(told)["facts"] = {"sentences": 2}

    assert records.filter(told)

    assert vars(told)["facts"] == {"sentences": 2, "suppressed": 7}


def test_what_is_no_warning_passes(metrics: Metrics) -> None:
    records = RepeatedRecords(metrics, FakeClock())

    assert all(records.filter(record(line=1, level=logging.INFO)) for _ in range(BURST + 1))


def test_who_has_asked_a_limit_already_is_not_counted_again(metrics: Metrics) -> None:
    records = RepeatedRecords(metrics, FakeClock())
    limited = record(line=1)
    vars(limited)["is_limited"] = True

    assert all(records.filter(limited) for _ in range(BURST + 1))
