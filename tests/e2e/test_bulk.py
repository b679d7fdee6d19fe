"""A bulk call with a real server: what it answers, and what becomes of it when the server stops."""

import signal
from collections.abc import Iterator

from babelserve import Client
from export.subject import DevSet
from tests.acceptance.server_process import ServerProcess
from tests.e2e.conftest import Start, metric
from tests.e2e.test_serving import translate


def test_a_bulk_call_translates_as_others_do(server: ServerProcess, dev_set: DevSet) -> None:
    texts = [*dev_set.sources[:40], "", " ".join(dev_set.sources[:10])]
    before = metric(server, "requests_total", method="TranslateBulk", code="OK")

    with Client(server.address) as client:
        found = {each.index: each.translation.text for each in client.translate_bulk(iter(texts), target="de")}

    assert [found[index] for index in range(len(texts))] == translate(server, *texts)
    assert metric(server, "requests_total", method="TranslateBulk", code="OK") == before + 1


def test_a_bulk_call_waits_where_others_are_refused(start: Start, dev_set: DevSet) -> None:
    server = start("--max-waiting-sentences", "1", "--max-rows", "16")
    texts = [" ".join(dev_set.sources[:8])] * 4

    with Client(server.address, max_attempts=1) as client:
        found = list(client.translate_bulk(iter(texts), target="de"))

    assert sorted(each.index for each in found) == list(range(len(texts)))
    assert all(each.translation.error is None for each in found)
    assert metric(server, "queue_rejected_total") == 0


def test_a_server_that_stops_answers_what_it_has_and_the_client_goes_on_elsewhere(
    start: Start, dev_set: DevSet
) -> None:
    servers = [start("--drain-delay", "0") for _ in range(2)]
    stopped = []

    def contents() -> Iterator[str]:
        for number, source in enumerate(dev_set.sources * 3):
            if number == len(dev_set.sources):
                (calling,) = (each for each in servers if metric(each, "requests_in_flight", method="TranslateBulk"))
                calling.process.send_signal(signal.SIGTERM)
                stopped.append(calling)
            yield f"{source} {number}"

    with Client("ipv4:" + ",".join(each.address for each in servers)) as client:
        found = [each.index for each in client.translate_bulk(contents(), target="de")]

    assert sorted(found) == list(range(3 * len(dev_set.sources)))
    assert stopped[0].process.wait() == 0
