"""Tests of the command that adds to a bundle what its network can read."""

import dataclasses
import shutil
from pathlib import Path

import pytest

from export.probe_bundle import main
from server.bundle.bundle import Bundle, open_bundle
from server.bundle.manifest import MANIFEST_FILE, REVISION, seal_manifest
from server.bundle.masking import Masking


@pytest.fixture
def copied(tiny_bundle: Bundle, tmp_path: Path) -> Path:
    """A bundle of an older revision, of which nothing is known."""
    directory = tmp_path / "tiny"
    shutil.copytree(tiny_bundle.directory, directory)
    masking = Masking(num_placeholders=2)
    older = dataclasses.replace(tiny_bundle.manifest, revision=6, masking=masking, alignment=None)
    (directory / MANIFEST_FILE).write_text(older.to_json(), encoding="utf-8")
    seal_manifest(directory)
    return directory


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr("sys.argv", ["babelserve-probe", *map(str, arguments)])
    main()


def test_a_bundle_is_told_what_its_network_can_read(
    copied: Path, tiny_bundle: Bundle, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = copied.parent / "text"
    text.write_text("A man in a red shirt is standing.\n\nTwo dogs run through the snow.\n", encoding="utf-8")

    run(monkeypatch, copied, "--text", text)

    manifest = open_bundle(copied).manifest
    assert manifest.revision == REVISION
    assert manifest.masking.num_placeholders == 2
    assert manifest.alignment is not None
    assert manifest.alignment.num_sentences == 2
    assert all("aligner.onnx" in variant.files for variant in manifest.variants.values())
    known = tiny_bundle.manifest
    found = dataclasses.replace(manifest, masking=known.masking, alignment=known.alignment, variants=known.variants)
    assert found == known
    assert str(copied) in capsys.readouterr().out
    assert not list(copied.glob(".*"))


@pytest.mark.parametrize("name", ["nowhere", "text"])
def test_what_is_no_bundle_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (tmp_path / "text").write_text("no bundle", encoding="utf-8")

    with pytest.raises(SystemExit):
        run(monkeypatch, tmp_path / name)

    assert name in capsys.readouterr().err
