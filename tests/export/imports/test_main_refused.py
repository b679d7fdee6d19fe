"""What `babelserve-import` refuses before it reads a model, and what names of a stranger it shows."""

import re
import shutil
from pathlib import Path

import pytest

from tests.export.imports.conftest import TINY, Command


def test_codes_take_no_paths_that_follow(command: Command, tmp_path: Path) -> None:
    printed = command("--dry-run", "--source", "en", "--target", "de,nl", "--target", "fr", TINY, tmp_path / "out")

    assert "  en into de, nl, fr\n" in printed


def test_a_model_of_which_no_direction_is_left_is_refused(command: Command) -> None:
    code, message = command.fails("--dry-run", "--source", "de", "--target", "de", TINY)

    assert code == 2
    assert message.splitlines()[1:] == [
        "languages: no direction is left; expected a source and another target; say which: --source CODE --target CODE"
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--version", "1\n2"], "argument --version: '1\\n2' is not 1 to 128 printable characters"),
        (["--name", "x" * 129], "is not 1 to 128 printable characters"),
        (["--min-chrf", "nan"], "argument --min-chrf: 'nan' is no number from 0 to 100"),
        (["--min-chrf", "101"], "argument --min-chrf: '101' is no number from 0 to 100"),
        (["--text", "few"], "--text few has 1 sentences, at least 32 are needed"),
        (["--text", "none"], "No such file or directory: 'none'"),
    ],
)
def test_what_can_be_said_at_once_is_said_before_a_model_is_read(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "few").write_text("One sentence.", encoding="utf-8")

    code, message = command.fails("no-such-model", "out", *arguments)

    assert code == 2
    assert expected in message
    assert "no-such-model: does not exist" not in message


@pytest.mark.parametrize("out", ["file/out", "link", "file"])
def test_where_no_bundle_can_be_made_is_said_before_a_model_is_read(command: Command, tmp_path: Path, out: str) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    (tmp_path / "link").symlink_to("nowhere")

    code, message = command.fails("no-such-model", tmp_path / out)

    assert code == 2
    assert "exists already" in message or "is no directory" in message
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link"]


@pytest.mark.parametrize("name", ["opus\x1b]0;owned\x07-en-de", "x\ny: proven-en-de", "x" * 129 + "-en-de"])
def test_a_directory_s_name_that_no_manifest_may_have_is_a_fault(command: Command, tmp_path: Path, name: str) -> None:
    directory = shutil.copytree(TINY, tmp_path / name)

    code, message = command.fails(directory, "--dry-run")

    assert code == 2
    assert "expected 1 to 128 printable characters; give it another with --name" in message
    assert all(line.isprintable() for line in message.splitlines())
    assert command(directory, "--dry-run", "--name", "en-de").startswith("OPUS-MT (Hugging Face Marian): en-de\n")


@pytest.mark.parametrize("content", [b"version https://git-lfs.github.com/spec/v1\n", b"<!doctype html>"])
def test_what_stands_in_place_of_a_file_is_called_so_for_every_file(
    command: Command, copy: Path, content: bytes
) -> None:
    names = sorted(path.name for path in copy.iterdir() if path.name != "config.json")
    for name in names:
        original = (copy / name).read_bytes()
        (copy / name).write_bytes(content)

        code, message = command.fails(copy, "--dry-run")

        assert code == 2
        assert re.search(
            rf"^{re.escape(name)}: is a (pointer of git-lfs|web page), not the file itself", message, re.MULTILINE
        ), name
        (copy / name).write_bytes(original)
