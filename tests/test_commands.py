"""The console scripts: what is missing, or somebody else's, is one line and not a traceback."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from babelserve_commands import refuse_foreign, run

ROOT = Path(__file__).parents[1]
SCRIPTS = Path(sysconfig.get_path("scripts"))


def test_a_missing_package_is_one_line_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, "model.transformer", raising=False)
    monkeypatch.setattr(sys, "argv", ["/usr/bin/babelserve-train"])

    with pytest.raises(SystemExit) as ended:
        run("model.transformer", "train", "model")

    assert ended.value.code == "babelserve-train: needs torch: install 'babelserve[train]'"


def test_a_missing_module_of_our_own_is_no_missing_extra() -> None:
    with pytest.raises(ModuleNotFoundError):
        run("model.no_such_module", "train", "model")


def test_our_own_packages_are_taken() -> None:
    refuse_foreign("model", "export", "server")


@pytest.mark.parametrize(
    ("script", "foreign"),
    [
        ("babelserve", "server.py"),
        ("babelserve", "server/__init__.py"),
        ("babelserve-train", "model.py"),
        ("babelserve-export", "server/__init__.py"),
    ],
)
def test_a_foreign_package_on_the_path_is_refused_unread(script: str, foreign: str, tmp_path: Path) -> None:
    (tmp_path / foreign).parent.mkdir(exist_ok=True)
    (tmp_path / foreign).write_text('raise AssertionError("was run")\n')

    done = subprocess.run(
        [SCRIPTS / script, "--help"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    name = foreign.partition("/")[0].removesuffix(".py")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        f"{script}: Python finds {tmp_path / foreign} as '{name}', which is not babelserve's: "
    )
    assert done.stderr.count("\n") == 1


def test_a_package_that_another_distribution_has_overwritten_is_refused_unread(tmp_path: Path) -> None:
    shutil.copy(ROOT / "babelserve_commands.py", tmp_path)
    shutil.copytree(ROOT / "server", tmp_path / "server", ignore=shutil.ignore_patterns("builtin", "__pycache__"))
    (tmp_path / "server" / "__init__.py").write_text('raise AssertionError("was run")\n')

    done = subprocess.run(
        [sys.executable, "-c", "import babelserve_commands; babelserve_commands.serve()"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert f"Python finds {tmp_path / 'server' / '__init__.py'} as 'server'" in done.stderr
    assert done.stderr.count("\n") == 1
