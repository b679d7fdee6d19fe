"""Each mistake with TLS, on either side, says which it is: by the client's errors, and by `explain`."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from babelserve import AsyncClient, Client, TlsFailed, TlsOptions, Unavailable
from babelserve.diagnosis import explain
from tests.babelserve.scripted_server import ScriptedServer
from tests.certificates import Authority


class Files:
    """Certificates in files, by what they are good for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority()
        self.ca = self._write("ca.pem", self.authority.pem)
        server, client = self.authority.issue(), self.authority.issue("client", ())
        self.pair = (server.key, server.chain)
        self.certificate, self.key = self._write("client.pem", client.chain), self._write("client.key", client.key)
        stranger = Authority("stranger")
        self.other_ca = self._write("other-ca.pem", stranger.pem)
        other = stranger.issue("other", ())
        self.other_certificate, self.other_key = self._write("o.pem", other.chain), self._write("o.key", other.key)

    def _write(self, name: str, content: bytes) -> Path:
        (self.folder / name).write_bytes(content)
        return self.folder / name


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def encrypted(files: Files) -> Iterator[ScriptedServer]:
    server = ScriptedServer(grpc.ssl_server_credentials([files.pair]))
    yield server
    server.close()


@pytest.fixture
def asking(files: Files) -> Iterator[ScriptedServer]:
    """A server that wants a client's certificate."""
    server = ScriptedServer(grpc.ssl_server_credentials([files.pair], files.authority.pem, require_client_auth=True))
    yield server
    server.close()


async def failure(address: str, tls: TlsOptions | None) -> str:
    """What both clients say; both say the same."""
    with Client(address, tls=tls, deadline_seconds=20) as client, pytest.raises(TlsFailed) as caught:
        client.translate(["a"], target="de")
    async with AsyncClient(address, tls=tls, deadline_seconds=20) as asynchronous:
        with pytest.raises(TlsFailed) as caught_too:
            await asynchronous.list_models()
    assert str(caught_too.value) == str(caught.value)
    return str(caught.value)


async def test_a_client_without_tls_is_told_that_the_server_has_it(encrypted: ScriptedServer) -> None:
    assert await failure(encrypted.address, None) == "the server speaks TLS at this port, and the client does not"


async def test_a_client_with_tls_is_told_that_the_server_has_none(server: ScriptedServer, files: Files) -> None:
    assert await failure(server.address, TlsOptions()) == "the server does not speak TLS at this port"


async def test_a_certificate_that_nobody_vouches_for_is_said_to_be_one(encrypted: ScriptedServer, files: Files) -> None:
    said = await failure(encrypted.address, TlsOptions(ca_file=files.other_ca))

    assert said.startswith("the server's certificate is not trusted: unable to get local issuer certificate")


async def test_a_certificate_for_another_name_is_said_to_be_one(encrypted: ScriptedServer, files: Files) -> None:
    said = await failure(encrypted.address, TlsOptions(ca_file=files.ca, server_name="other.example"))

    assert said.startswith("the server's certificate is not trusted: Hostname mismatch")
    assert "other.example" in said


async def test_a_client_without_a_certificate_is_told_to_bring_one(asking: ScriptedServer, files: Files) -> None:
    said = await failure(asking.address, TlsOptions(ca_file=files.ca))
    plain = await failure(asking.address, None)

    assert said == "the server wants a client certificate, and the client has none"
    assert plain == ("the server speaks TLS at this port, and the client does not, and wants a client certificate, too")


async def test_a_client_certificate_that_the_server_does_not_take(asking: ScriptedServer, files: Files) -> None:
    tls = TlsOptions(ca_file=files.ca, certificate_file=files.other_certificate, key_file=files.other_key)

    assert await failure(asking.address, tls) == "the server does not take the client's certificate"


def test_what_fits_together_is_not_complained_of(
    asking: ScriptedServer, encrypted: ScriptedServer, server: ScriptedServer, files: Files
) -> None:
    own = TlsOptions(ca_file=files.ca, certificate_file=files.certificate, key_file=files.key)

    assert explain(asking.address, own) is None
    assert explain(encrypted.address, TlsOptions(ca_file=files.ca)) is None
    assert explain(server.address, None) is None
    with Client(asking.address, tls=own) as client:
        assert client.translate(["a"], target="de").translations[0].text == "A"


def test_what_cannot_be_looked_into_is_left_to_grpc(dead_address: str) -> None:
    odd = ["localhost:99999", f"localhost:{'9' * 5000}", "a..b:1", f"{'x' * 70}.de:1", ".:1"]
    for address in (dead_address, "unix:/nowhere", "ipv4:127.0.0.1:1,127.0.0.1:2", *odd):
        assert explain(address, TlsOptions()) is None
    with Client(dead_address, tls=TlsOptions()) as client, pytest.raises(Unavailable, match="refused") as caught:
        client.translate(["a"], target="de")
    assert type(caught.value) is Unavailable


def test_who_listens_and_says_nothing_keeps_nobody_waiting_for_long() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert explain(f"127.0.0.1:{silent.getsockname()[1]}", TlsOptions()) is None


def test_a_server_that_has_answered_is_not_suspected(encrypted: ScriptedServer, files: Files) -> None:
    with Client(encrypted.address, tls=TlsOptions(ca_file=files.ca), max_attempts=1) as client:
        client.list_models()
        encrypted.close()
        with contextlib.closing(ScriptedServer(port=encrypted.port)), pytest.raises(Unavailable) as caught:
            client.translate(["a"], target="de")

    assert type(caught.value) is Unavailable


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"ca_file": "key"}, r"client\.key: holds no certificate in PEM"),
        ({"certificate_file": "certificate", "key_file": "other_key"}, "key values mismatch"),
        ({"certificate_file": "key", "key_file": "key"}, "are no client certificate and its unencrypted key"),
    ],
)
def test_files_that_do_not_hold_what_they_should_are_named(files: Files, names: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Client("localhost:1", tls=TlsOptions(**{name: getattr(files, path) for name, path in names.items()}))
