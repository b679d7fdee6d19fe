"""`make demo TEXT="..."` hands the text on whole: no shell and no make expansion touches it."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        'it\'s "so" $5, $$ $(shell touch pwned) ${HOME} `touch pwned` \\n * # ; & | > pwned',
        "zwei\nZeilen ü",
        "",
    ],
)
def test_the_demos_text_arrives_whole(text: str, tmp_path: Path) -> None:
    (tmp_path / "babelserve").mkdir()
    for name in ("Makefile", "pyproject.toml", "babelserve/pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\nprintf %s "$DEMO_TEXT"\n')
    python.chmod(0o755)
    (tmp_path / ".venv" / "installed-cpu").touch()
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "DEMO_"))
    }

    done = subprocess.run(
        ["make", "demo", f"TEXT={text}"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (0, text)
    assert not (tmp_path / "pwned").exists()


def test_contributors_are_told_the_targets_as_make_help_tells_them() -> None:
    targets = re.findall(r"^([a-z-]+):.*## (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    page = (ROOT / "CONTRIBUTING.md").read_text()
    table = page.partition("| `make ...` |")[2].partition("\n\n")[0]

    assert targets
    assert re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", table, re.MULTILINE) == targets
