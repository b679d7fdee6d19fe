"""Environments of their own for other vendors' clients, whose dependencies do not go with ours.

Each is made when a test first needs it, in `.venvs/`, of the pinned requirements in `tests/fronts/NAME.txt`, or in
`tests/fronts/NAME.json` for a client that runs on Node. A file that begins with `# pip install --no-deps`
has all that its client needs.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / ".venvs"
_WHOLE = "# pip install --no-deps"


def environment_of(name: str) -> Path:
    """Returns the folder that has a client. Skips the test where it cannot be installed, but for CI."""
    requirements = next(path for path in (HERE / f"{name}.txt", HERE / f"{name}.json") if path.exists())
    folder = FOLDER / f"{name}-{hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]}"
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / f"{name}.lock").open("w") as lock:  # tests may run in several processes
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "made").exists():
            _make(folder, requirements)
    return folder


def run_client(name: str, script: str, *arguments: str) -> str:
    """Runs a script of `tests/fronts` in a client's environment; returns what it prints. Its failure fails the test."""
    folder = environment_of(name)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    interpreter = "node" if script.endswith(".mjs") else str(folder / "bin" / "python")
    command = [interpreter, str(HERE / script), *arguments]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _make(folder: Path, requirements: Path) -> None:
    if requirements.suffix == ".json":
        folder.mkdir(exist_ok=True)
        shutil.copy(requirements, folder / "package.json")
        install = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder)]
    else:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        options = ["--disable-pip-version-check", "install", "--quiet", "-r", str(requirements)]
        options += ["--no-deps"] if requirements.read_text(encoding="utf-8").startswith(_WHOLE) else []
        install = [str(folder / "bin" / "python"), "-m", "pip", *options]
    try:
        done = subprocess.run(install, capture_output=True, text=True, check=False)
        error = done.stderr.strip()[-300:] if done.returncode else ""
    except OSError as missing:
        error = str(missing)
    if error:
        reason = f"{requirements.name} cannot be installed, for want of a network or of npm: {error}"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    (folder / "made").touch()
