import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import contextlib, os
from babelserve import Client, TlsOptions, Unavailable
from tests.babelserve.scripted_server import ScriptedServer
with contextlib.closing(ScriptedServer()) as server, contextlib.suppress(Unavailable):
    with Client(server.address, tls=TlsOptions()) as client:
        client.list_models()
print(os.environ.get("GRPC_VERBOSITY"))
"""
AFTER_THE_SERVER = f"import server.app\n{SCRIPT}"


@pytest.mark.parametrize(
    ("script", "given", "left", "is_quiet"),
    [
        (SCRIPT, {}, "None", True),
        (SCRIPT, {"GRPC_VERBOSITY": "INFO"}, "INFO", False),
        (AFTER_THE_SERVER, {}, "None", False),
    ],
)
def test_grpc_writes_nothing_of_its_own_unless_it_is_told_to_or_serves(
    script: str, given: dict[str, str], left: str, is_quiet: bool
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parents[2],
        env=given,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == f"{left}\n"
    assert (done.stderr == "") is is_quiet
