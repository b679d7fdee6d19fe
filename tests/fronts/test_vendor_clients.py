"""Other vendors' own clients, as they are, against a server of the built-in models."""

import os
from collections.abc import Iterator

import pytest

from tests.acceptance.server_process import free_ports, running_server
from tests.fronts.environments import environment_of, run_client
from tests.fronts.gateway_process import running_gateway

IF_ASKED_FOR = pytest.mark.skipif(
    not os.environ.get("BABELSERVE_WEBLATE"), reason="its environment has 360 MB; BABELSERVE_WEBLATE=1 makes it"
)


@pytest.fixture(scope="module", params=["server", "gateway"])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """Of the API over HTTP: the server's own, and that of a gateway before a server without HTTP."""
    (port,) = free_ports(1)
    if request.param == "server":
        with running_server(["--models", "builtin", "--http-port", str(port)]):
            yield f"http://127.0.0.1:{port}"
    else:
        with running_server(["--models", "builtin"]) as server, running_gateway(server.address) as address:
            yield address


@pytest.mark.parametrize(
    ("environment", "script"),
    [
        ("libretranslate", "libretranslatepy_client.py"),
        ("libretranslate", "libretranslate_aio_client.py"),
        ("argostranslate", "argostranslate_client.py"),
        ("deep_translator", "deep_translator_client.py"),
        pytest.param("weblate", "weblate_client.py", marks=IF_ASKED_FOR),
        ("openapi", "openapi_client.py"),
        ("azure1", "azure1_client.py"),
        ("azure2", "azure2_client.py"),
        ("azure_rest", "azure_rest_client.mjs"),
        ("triton_http", "triton_http_client.py"),
        ("google", "google_rest_client.py"),
    ],
)
def test_a_client_gets_what_it_asks_for(address: str, environment: str, script: str) -> None:
    environment_of(environment)

    run_client(environment, script, address)
