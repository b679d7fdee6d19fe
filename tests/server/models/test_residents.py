import dataclasses
import threading

from server.models.loading import needed_bytes
from server.models.model import Model
from server.models.residents import Resident, ServedVersions, aside
from server.models.traffic_split import TrafficSplit
from tests.server.echo_engine import idle_supervisor, with_weights


def version_of(model: Model, version: str) -> Model:
    manifest = dataclasses.replace(model.manifest, version=version)
    return dataclasses.replace(model, manifest=manifest, supervisor=idle_supervisor(manifest))


def test_versions_are_counted_together_and_the_main_one_has_most_requests(model: Model) -> None:
    served = ServedVersions.only(version_of(with_weights(model), "1"))
    served.versions["2"] = Resident(version_of(with_weights(model), "2"), num_loans=2)
    served.main.num_loans += 1
    one = needed_bytes(served.main.model.manifest, served.main.model.variant)

    assert (served.main.model.manifest.version, served.num_loans, served.needed_bytes) == ("1", 3, 2 * one)
    served.split = TrafficSplit.of({"1": 10, "2": 90})
    assert served.main.model.manifest.version == "2"


def test_a_version_without_requests_need_not_be_ready(model: Model) -> None:
    served = ServedVersions.only(version_of(model, "1"))
    lost = version_of(model, "2")
    lost.supervisor._is_lost = True
    served.versions["2"] = Resident(lost)
    assert served.is_ready()
    served.split = TrafficSplit.of({"1": 99, "2": 1})

    assert not served.is_ready()


async def test_what_may_take_long_is_done_on_another_thread() -> None:
    threads: list[threading.Thread] = []

    await aside(lambda: threads.append(threading.current_thread()))

    assert threads[0] is not threading.current_thread()
    assert threads[0].daemon
