"""A few kills of what `tests.acceptance.resumed_equals_undisturbed` does by the dozen."""

import itertools
import subprocess
from pathlib import Path

from server.bundle.bundle import Bundle
from tests.acceptance.resumed_equals_undisturbed import Jobs, job, lines_of_text, serving
from tests.acceptance.server_process import REPOSITORY

NUM_LINES = 200


def test_killed_clients_and_clients_of_killed_servers_lose_no_line(tiny_bundle: Bundle, tmp_path: Path) -> None:
    flags = ["--bundle", str(tiny_bundle.directory), "--lanes", "1"]
    source, expected, stderr = tmp_path / "in.txt", tmp_path / "expected.txt", tmp_path / "stderr.log"
    source.write_bytes(lines_of_text(NUM_LINES))

    with serving(stderr, *flags) as server:
        subprocess.run(job(server.address, source, expected), cwd=REPOSITORY, check=True)
        clients = Jobs(source, expected, tmp_path / "client.txt")
        clients.kill_clients(server.address, 2, itertools.cycle([0.6, 0.2, 0.9, 0.15, 0.3]))
    servers = Jobs(source, expected, tmp_path / "server.txt")
    servers.kill_servers(stderr, 2, itertools.cycle([0.5, 0.2, 0.7, 0.1]), *flags)

    assert expected.read_bytes().count(b"\n") == NUM_LINES
    assert (clients.num_kills, clients.faults) == (2, [])
    assert (servers.num_kills, servers.faults) == (2, [])
    assert min(clients.num_ended, servers.num_ended) >= 1
