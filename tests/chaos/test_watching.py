import re

from tests.chaos.alert_faults import FAULTS
from tests.chaos.watching import FACTOR, RULES, scaled


def test_ranges_and_lasting_times_become_shorter_and_nothing_else() -> None:
    rules = 'expr: rate(a:rate5m{le="2.0"}[5m]) > 5 and time() - b > 30 or c[3d]\nfor: 10m\nsummary: "for: 10m of"\n'

    assert scaled(rules, 60) == (
        'expr: rate(a:rate5m{le="2.0"}[5000ms]) > 5 and time() - b > 30 or c[4320000ms]\nfor: 10000ms\n'
        'summary: "for: 10m of"\n'
    )


def test_a_scaled_range_has_several_scrapes_a_second_apart() -> None:
    ranges = [int(each) for each in re.findall(r"\[(\d+)ms\]", scaled(RULES.read_text(encoding="utf-8"), FACTOR))]

    assert min(ranges) >= 4_000
    assert "h]" not in scaled(RULES.read_text(encoding="utf-8"), FACTOR)


def test_every_alert_has_a_fault_for_which_it_must_fire() -> None:
    alerts = set(re.findall(r"alert: (\w+)", RULES.read_text(encoding="utf-8")))

    assert {each for fault in FAULTS for each in fault.expected} == alerts
