"""The times of steps by their position."""

from server.bundle.bundle import Bundle, open_bundle
from tests.acceptance.server_process import BUILTIN_BUNDLE
from tests.bench.network_steps import step_times


def test_a_step_has_a_time_at_each_position() -> None:
    times = step_times(open_bundle(BUILTIN_BUNDLE, "cpu-int8"), "cpu-int8", 60)

    assert list(times) == [25, 50]
    assert min(times.values()) > 0


def test_a_network_that_takes_one_step_has_none(one_pass_bundle: Bundle) -> None:
    assert step_times(one_pass_bundle, "cpu-int8") == {}
