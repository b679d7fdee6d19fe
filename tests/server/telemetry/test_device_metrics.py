from prometheus_client import generate_latest

from server.telemetry.metrics import Metrics


def page(metrics: Metrics) -> str:
    lines = generate_latest(metrics.registry).decode().splitlines()
    return "\n".join(line for line in lines if line.startswith("babelserve_device"))


def test_without_a_gpu_the_page_has_nothing_of_it(metrics: Metrics) -> None:
    assert page(metrics) == ""


def test_a_gpus_memory_is_asked_for_whenever_the_page_is_read(metrics: Metrics) -> None:
    free = iter((7, 5))
    metrics.device.watch(lambda: (9, next(free)))

    for expected in (7.0, 5.0):
        assert (
            page(metrics) == f"babelserve_device_memory_total_bytes 9.0\nbabelserve_device_memory_free_bytes {expected}"
        )


def test_memory_that_is_unknown_is_not_shown(metrics: Metrics) -> None:
    metrics.device.watch(lambda: None)

    assert page(metrics) == ""
