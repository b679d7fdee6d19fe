"""What a call costs by each front: `python -m tests.fronts.overhead`.

One caller sends the same sentence again and again over one connection. The server keeps its translation, so that what
is left is the front's: the processor time of the server's process for each call, and the median time of a round trip,
which has the caller's own work in it. The fronts take turns, so that a busy machine slows all of them alike.
"""

import http.client
import json
import statistics
import time
from collections.abc import Callable
from urllib.parse import urlencode

import grpc
from tabulate import tabulate

from babelserve.v1 import translation_pb2 as pb
from babelserve.v1.translation_pb2_grpc import TranslationServiceStub
from tests.acceptance.server_process import free_ports, running_server
from tests.chaos.observations import resources

TEXT = "A dog runs."
ROUNDS, CALLS = 10, 200


def main() -> None:
    """Measures, and prints a table."""
    (port,) = free_ports(1)
    flags = ["--http-port", str(port), "--cache-sentences", "100", "--log-level", "warning"]
    with running_server(flags) as server, grpc.insecure_channel(server.address) as channel:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        stub = TranslationServiceStub(channel)
        message = pb.TranslateRequest(contents=[TEXT], target_language_code="de")
        own = json.dumps({"contents": [TEXT], "targetLanguageCode": "de"})
        theirs = urlencode({"q": TEXT, "source": "en", "target": "de"})
        (model,) = json.loads(_post(connection, "/v2/repository/index", "{}"))
        azure = json.dumps([{"Text": TEXT}])
        tensor = {"name": "text", "datatype": "BYTES", "shape": [1], "data": [TEXT]}
        kserve = json.dumps({"inputs": [tensor], "parameters": {"target_language_code": "de"}})
        google = json.dumps({"q": TEXT, "source": "en", "target": "de", "format": "text"})
        fronts: dict[str, Callable[[], object]] = {
            "gRPC": lambda: stub.Translate(message),
            "POST /v1/translate": lambda: _post(connection, "/v1/translate", own),
            "LibreTranslate's /translate": lambda: _post(connection, "/translate", theirs),
            "Azure's /translate": lambda: _post(connection, "/translate?api-version=3.0&from=en&to=de", azure),
            "KServe's infer": lambda: _post(connection, f"/v2/models/{model['name']}/infer", kserve),
            "Google's v2": lambda: _post(connection, "/language/translate/v2", google),
            "GET /healthz": lambda: _post(connection, "/healthz", None),
        }
        seconds: dict[str, list[float]] = {name: [] for name in fronts}
        cpu: dict[str, list[float]] = {name: [] for name in fronts}
        for _ in range(ROUNDS):
            for name, call in fronts.items():
                before = resources(server.process.pid).cpu_seconds
                for _ in range(CALLS):
                    started = time.perf_counter()
                    call()
                    seconds[name].append(time.perf_counter() - started)
                cpu[name].append((resources(server.process.pid).cpu_seconds - before) / CALLS)
    rows = [(name, 1e3 * statistics.median(cpu[name]), 1e3 * statistics.median(seconds[name])) for name in fronts]
    print(tabulate(rows, headers=["front", "server's processor, ms", "round trip, ms"], floatfmt=".3f"))


def _post(connection: http.client.HTTPConnection, path: str, body: str | None) -> bytes:
    connection.request("GET" if body is None else "POST", path, body)
    with connection.getresponse() as answer:
        assert answer.status == 200
        return answer.read()


if __name__ == "__main__":
    main()
