"""MkDocs builds everything, strictly, where it is installed (`make docs`)."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import babelserve
from docs.generate.api import FILES
from docs.generate.pages import PAGES

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="needs MkDocs (make docs)")
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def test_every_page_of_the_reference_is_built(site: Path) -> None:
    assert [path for path in PAGES if path.endswith(".md") and not (site / path).with_suffix(".html").is_file()] == []
    assert [name for name in FILES if not (site / "reference" / name).is_file()] == []


def test_every_public_name_of_the_client_is_rendered(site: Path) -> None:
    page = (site / "reference" / "python.html").read_text(encoding="utf-8")

    shown = {name.rpartition(".")[2] for name in re.findall(r'id="(babelserve\.[\w.]+)"', page)}
    assert {*babelserve.__all__, "TranslateOptions", "translate_stream", "use_shortlist", "num_hypotheses"} <= shown


def test_no_code_is_published(site: Path) -> None:
    assert [*site.rglob("*.py*")] == []
