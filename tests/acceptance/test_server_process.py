"""The ports at which servers of the tests listen."""

import socket
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from tests.acceptance import server_process
from tests.acceptance.server_process import free_ports


def test_processes_that_ask_at_a_time_get_different_ports_that_no_client_is_given() -> None:
    with ProcessPoolExecutor(2) as pool:
        found = [port for ports in pool.map(free_ports, [50] * 4) for port in ports]

    assert len(set(found)) == 200
    assert max(found) < 32768


def test_a_port_that_is_taken_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [port] = free_ports(1)
    next_port = tmp_path / "next"
    next_port.write_text(str(port))
    monkeypatch.setattr(server_process, "_NEXT_PORT_PATH", next_port)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()

        assert port not in free_ports(3)


def test_the_last_port_is_followed_by_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    next_port = tmp_path / "next"
    next_port.write_text("32767")
    monkeypatch.setattr(server_process, "_NEXT_PORT_PATH", next_port)

    found = free_ports(2)

    assert found[-1] < 11_000
