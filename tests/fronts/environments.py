"""Environments of their own for other vendors' clients, whose dependencies do not go with ours.

Each is made when a test first needs it, in `.venvs/`, of the pinned requirements in `tests/fronts/NAME.txt`.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".venvs"


def python_of(name: str) -> Path:
    """Returns the interpreter that has a client. Skips the test where it cannot be installed, but for CI."""
    requirements = ROOT / "tests" / "fronts" / f"{name}.txt"
    folder = FOLDER / f"{name}-{hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]}"
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / f"{name}.lock").open("w") as lock:  # tests may run in several processes
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "made").exists():
            _make(folder, requirements)
    return folder / "bin" / "python"


def run_client(name: str, script: str, *arguments: str) -> str:
    """Runs a script of `tests/fronts` in a client's environment; returns what it prints. Its failure fails the test."""
    path = ROOT / "tests" / "fronts" / script
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [str(python_of(name)), str(path), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _make(folder: Path, requirements: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    install = ["-m", "pip", "--disable-pip-version-check", "install", "--quiet", "-r", str(requirements)]
    done = subprocess.run([str(folder / "bin" / "python"), *install], capture_output=True, text=True, check=False)
    if done.returncode:
        reason = f"{requirements.stem} cannot be installed, for want of a network: {done.stderr.strip()[-300:]}"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    (folder / "made").touch()
