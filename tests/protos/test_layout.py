"""The protos are laid out, and named, as buf and every code generator expect."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

PROTOS = Path(__file__).parents[2] / "protos"


def test_each_file_lies_in_the_folder_of_its_package() -> None:
    files = list(PROTOS.rglob("*.proto"))

    folders = {file.name: [file.parent.relative_to(PROTOS).as_posix().replace("/", ".")] for file in files}
    packages = {file.name: re.findall(r"^package (.*);$", file.read_text(), re.MULTILINE) for file in files}
    assert files
    assert packages == folders


@pytest.mark.skipif(shutil.which("buf") is None, reason="needs buf (`pip install buf-bin`)")
def test_buf_has_nothing_to_say() -> None:
    done = subprocess.run(["buf", "lint"], cwd=PROTOS, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, "")
