"""Other vendors' own clients of gRPC, as they are, against a server of the built-in models."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from server.access.keys import hash_key
from tests.acceptance.server_process import running_server
from tests.certificates import authority
from tests.fronts.environments import environment_of, run_client

KEY = "key"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Of a server without keys."""
    with running_server(["--models", "builtin"]) as server:
        yield server.address


@pytest.mark.parametrize("name", ["riva", "triton"])
def test_a_client_gets_what_it_asks_for(address: str, name: str) -> None:
    environment_of(name)

    run_client(name, f"{name}_client.py", address)


def test_googles_client_gets_what_it_asks_for(tmp_path: Path) -> None:
    environment_of("google")
    files = {name: tmp_path / name for name in ("tls-cert", "tls-key", "keys")}
    issued, trusted = authority().issue(), tmp_path / "authority"
    files["tls-cert"].write_bytes(issued.chain)
    files["tls-key"].write_bytes(issued.key)
    files["keys"].write_text(f'[tenants.a]\nkeys = [{{ sha256 = "{hash_key(KEY).hex()}" }}]')
    trusted.write_bytes(authority().pem)
    glossaries = tmp_path / "glossaries"
    glossaries.mkdir()
    (glossaries / "it.tsv").write_text("en\tde\nuser\tAnwender\n")
    flags = [part for name, path in files.items() for part in (f"--{name}", str(path))]

    with (
        running_server(["--models", "builtin", "--glossaries", str(glossaries)]) as server,
        running_server(["--models", "builtin", *flags]) as closed,
    ):
        run_client("google", "google_client.py", server.address, f"localhost:{closed.port}", str(trusted), KEY)
