"""DeepL's own clients, as they are, against a server of the built-in models that wants a key."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from server.access.keys import hash_key
from tests.acceptance.server_process import free_ports, running_server
from tests.fronts.environments import environment_of, run_client
from tests.fronts.gateway_process import running_gateway

KEY = "key-of-a-test"


@pytest.fixture(scope="module", params=["server", "gateway"])
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of the API over HTTP: the server's own, and that of a gateway before a server without HTTP."""
    keys: Path = tmp_path_factory.mktemp("keys") / "keys.toml"
    keys.write_text(f'[tenants.callers]\nkeys = [{{ sha256 = "{hash_key(KEY).hex()}" }}]\n')
    (port,) = free_ports(1)
    flags = ["--models", "builtin", "--keys", str(keys)]
    if request.param == "server":
        with running_server([*flags, "--http-port", str(port)]):
            yield f"http://127.0.0.1:{port}"
    else:
        with running_server(flags) as server, running_gateway(server.address) as address:
            yield address


@pytest.mark.parametrize(
    ("environment", "script"), [("deepl", "deepl_client.py"), ("deepl_node", "deepl_node_client.mjs")]
)
def test_a_client_gets_what_it_asks_for(address: str, environment: str, script: str) -> None:
    environment_of(environment)

    run_client(environment, script, address, KEY)
