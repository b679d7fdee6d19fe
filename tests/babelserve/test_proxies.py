"""Calls beside, and through, the proxy that the environment names: a real listener that counts who comes."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from babelserve import AsyncClient, Client, Unavailable
from babelserve.admin import main
from babelserve.proxies import proxy_options
from tests.babelserve.scripted_server import ScriptedServer


class Proxy:
    """Refuses all that it is asked for, and keeps the first lines of it."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection:
                line = connection.recv(4096).partition(b"\r\n")[0]
                if line == b"stop":
                    return
                self.asked.append(line)
                connection.sendall(b"HTTP/1.1 403 Forbidden\r\n\r\n")

    def close(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port)) as last:
            last.sendall(b"stop\r\n")
        self._thread.join()
        self._listener.close()


@pytest.fixture(params=["http_proxy", "https_proxy", "grpc_proxy"])
def variable(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def proxy(variable: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    proxy = Proxy()
    for name in ("http_proxy", "https_proxy", "grpc_proxy", "no_proxy", "no_grpc_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, f"http://user:secret@127.0.0.1:{proxy.port}")
    yield proxy
    proxy.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "dns:///127.0.0.1", "ipv4:127.0.0.1"])
async def test_this_machine_is_called_without_a_proxy(proxy: Proxy, server: ScriptedServer, host: str) -> None:
    address = f"{host}:{server.port}"
    with Client(address) as client:
        assert client.translate(["a"], target="de").translations[0].text == "A"
    async with AsyncClient(address) as asynchronous:
        assert (await asynchronous.translate(["a"], target="de")).translations[0].text == "A"

    assert proxy.asked == []


async def test_where_a_call_goes_through_a_proxy_the_error_says_so(proxy: Proxy, variable: str) -> None:
    address = "server.invalid:50051"
    with Client(address, deadline_seconds=20, max_attempts=1) as client, pytest.raises(Unavailable) as caught:
        client.translate(["a"], target="de")
    async with AsyncClient(address, deadline_seconds=20, max_attempts=1) as asynchronous:
        with pytest.raises(Unavailable) as caught_too:
            await asynchronous.list_models()

    said = f"; {variable} is set, so {address} is called through that proxy, unless no_proxy names the host"
    for error in (caught, caught_too):
        assert str(error.value).endswith(said)
        assert "secret" not in str(error.value)
    assert {line.split()[0] for line in proxy.asked} == {b"CONNECT"}


def test_so_does_the_command_for_models(
    proxy: Proxy, variable: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], dead_address: str
) -> None:
    (tmp_path / "key").write_text("key")
    flags = ["--api-key-file", str(tmp_path / "key"), "--deadline", "20"]

    assert main([*flags, "--address", "server.invalid:1", "list"]) == 3
    assert f"; {variable} is set, so server.invalid:1 is called through" in capsys.readouterr().err
    assert proxy.asked
    proxy.asked.clear()
    assert main([*flags, "--address", dead_address, "list"]) == 3
    assert variable not in capsys.readouterr().err
    assert proxy.asked == []


LOCAL = """
localhost LOCALHOST.:1 a.localhost:1 127.1:5 0x7f000001:5 [::1]:5 ::1 [::ffff:127.0.0.1]:5 0.0.0.0:1 [::]:1
dns:localhost:1 dns://8.8.8.8/localhost:1 ipv4:127.0.0.1:1,127.0.0.2:2 ipv6:%5B::1%5D:1 ipv6:[::1]:1
unix:/a unix-abstract:x passthrough:///127.0.0.1:1
"""
OTHER = """
10.0.0.1:1 example.com:1 localhost.example.com:1 127.0.0.1.example.com:1 :5 [::2]:1 ipv4:127.0.0.1:1,10.0.0.1:1 [:1
"""


@pytest.mark.parametrize("address", LOCAL.split())
def test_addresses_of_this_machine(address: str) -> None:
    assert proxy_options(address) == [("grpc.enable_http_proxy", 0)]


@pytest.mark.parametrize("address", ["", "x" * 5000, "a\0b", "\u00e4" * 100, *OTHER.split()])
def test_other_addresses(address: str) -> None:
    assert proxy_options(address) == []
