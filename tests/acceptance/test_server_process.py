"""The ports at which servers of the tests listen."""

import socket
from concurrent.futures import ThreadPoolExecutor

from tests.acceptance.server_process import free_ports


def test_threads_that_ask_at_a_time_get_different_ports_that_no_client_is_given() -> None:
    with ThreadPoolExecutor(4) as pool:
        found = [port for ports in pool.map(free_ports, [50] * 4) for port in ports]

    assert len(set(found)) == 200
    assert max(found) < 32768


def test_a_port_that_is_taken_is_left_out() -> None:
    [first] = free_ports(1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first + 1))
        taken.listen()

        assert first + 1 not in free_ports(3)
