import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import contextlib, os
from client import Client, TlsOptions, Unavailable
from tests.client.scripted_server import ScriptedServer
with contextlib.closing(ScriptedServer()) as server, contextlib.suppress(Unavailable):
    with Client(server.address, tls=TlsOptions()) as client:
        client.list_models()
print(os.environ.get("GRPC_VERBOSITY"))
"""


@pytest.mark.parametrize(
    ("given", "left", "is_quiet"), [({}, "None", True), ({"GRPC_VERBOSITY": "INFO"}, "INFO", False)]
)
def test_grpc_writes_nothing_of_its_own_unless_it_is_told_to(given: dict[str, str], left: str, is_quiet: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=Path(__file__).parents[2],
        env=given,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == f"{left}\n"
    assert (done.stderr == "") is is_quiet
