"""The page in Chromium, in front of servers of the built-in models: one with a key and a small quota, one without."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.access.keys import hash_key
from tests.acceptance.server_process import REPOSITORY, free_ports, running_server
from tests.fronts.environments import environment_of
from tests.web.page.checks import CHECKS
from tests.web.page.files import write_files

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUOTA = "{ rate = 0.003, burst = 0.01 }"  # of lane time: a sentence uses up what several seconds give back

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Why each check failed."""
    keys = tmp_path_factory.mktemp("keys") / "keys.toml"
    keys.write_text(f'[tenants.press]\nkeys = [{{ sha256 = "{hash_key("key").hex()}" }}]\nquota = {QUOTA}\n')
    files = tmp_path_factory.mktemp("files")
    write_files(files)
    python = environment_of("page") / "bin" / "python"
    open_port, closed_port = free_ports(2)
    with (
        running_server(["--models", "builtin", "--http-port", str(open_port)]),
        running_server(["--models", "builtin", "--http-port", str(closed_port), "--keys", str(keys)]),
    ):
        sites = {
            "open": f"http://127.0.0.1:{open_port}",
            "closed": f"http://127.0.0.1:{closed_port}",
            "chromium": CHROMIUM,
            "files": str(files),
            "pictures": os.environ.get("BABELSERVE_PICTURES", ""),
        }
        yield run(python, sites)


def run(python: Path, sites: dict[str, str | None]) -> dict[str, str]:
    """Runs `browser.py` in its own environment, and returns what it prints."""
    command = [str(python), "-m", "tests.web.page.browser", json.dumps(sites)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    failures: dict[str, str] = json.loads(done.stdout)
    return failures


@pytest.mark.timeout(600)  # the first one makes the environment, and runs them all
@pytest.mark.parametrize("name", [check.__name__ for check in CHECKS])
def test_the_page(failures: dict[str, str], name: str) -> None:
    assert failures[name] == ""
