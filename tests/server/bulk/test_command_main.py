"""`babelserve-bulk` as a command: what it tells."""

import shutil
from pathlib import Path

import pytest

from server.bulk.__main__ import main
from server.bundle.bundle import Bundle
from tests.chaos.hostile_bundles import BUNDLES


@pytest.mark.parametrize(
    ("flags", "fault"),
    [
        (["--out=--", "--target", "de"], "--out: -- is no value"),
        (["--out", "out"], "the following arguments are required: --target"),
        (
            ["--out", "out", "--target", "\x1b[2J"],
            "target_language_code: must be one of de, not a value of 4 characters",
        ),
    ],
)
def test_wrong_options_are_told_in_a_line(
    tiny_bundle: Bundle,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    flags: list[str],
    fault: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.txt").write_text("A dog runs.\n", encoding="utf-8")

    with pytest.raises(SystemExit) as caught:
        main(["rows.txt", *flags, "--", "--bundle", str(tiny_bundle.directory)])

    assert caught.value.code == 2
    assert capfd.readouterr().err == f"babelserve-bulk: {fault}\n"


def test_a_network_that_fails_is_told_without_what_a_terminal_obeys(
    tiny_bundle: Bundle, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    bundle = shutil.copytree(tiny_bundle.directory, tmp_path / "bundle")
    BUNDLES["failing"](bundle)
    flags = ["--", "--bundle", str(bundle), "--variant", "cpu-fp32"]
    (tmp_path / "rows.txt").write_text("A dog runs.\n", encoding="utf-8")

    with pytest.raises(SystemExit) as caught:
        main([str(tmp_path / "rows.txt"), "--out", str(tmp_path / "out"), "--target", "de", *flags])

    told = capfd.readouterr().err.rstrip("\n").split("\n")
    assert caught.value.code == 2
    assert told[-1].startswith("babelserve-bulk: golden sentence: translating it failed: ")
    assert all(map(str.isprintable, told))
