"""Tests of the command that adds to a bundle what its network can read."""

import dataclasses
import shutil
from pathlib import Path

import pytest

import export.probe_bundle
from export.probe_bundle import main
from export.subject import DevSet
from server.bundle.bundle import Bundle, open_bundle
from server.bundle.manifest import MANIFEST_FILE, REVISION, Manifest, seal_manifest
from server.bundle.masking import Masking
from tests.chaos.hostile_bundles import BUNDLES


@pytest.fixture
def copied(tiny_bundle: Bundle, tmp_path: Path) -> Path:
    """A bundle of an older revision, of which nothing is known."""
    directory = tmp_path / "tiny"
    shutil.copytree(tiny_bundle.directory, directory)
    masking = Masking(num_placeholders=2)
    older = dataclasses.replace(tiny_bundle.manifest, revision=6, masking=masking, alignment=None, confidence=None)
    (directory / MANIFEST_FILE).write_text(older.to_json(), encoding="utf-8")
    seal_manifest(directory)
    return directory


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr("sys.argv", ["babelserve-probe", *map(str, arguments)])
    main()


def test_a_bundle_is_told_what_its_network_can_read(
    copied: Path, tiny_bundle: Bundle, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
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
    measured = {"masking": known.masking, "alignment": known.alignment, "confidence": known.confidence}
    found = dataclasses.replace(manifest, **measured, variants=known.variants)  # type: ignore[arg-type]
    assert found == known
    assert str(copied) in capfd.readouterr().out
    assert not list(copied.glob(".*"))


@pytest.mark.parametrize("name", ["nowhere", "text"])
def test_what_is_no_bundle_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    (tmp_path / "text").write_text("no bundle", encoding="utf-8")

    with pytest.raises(SystemExit):
        run(monkeypatch, tmp_path / name)

    assert name in capfd.readouterr().err


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("failing", "cpu-fp32: the encoder fails at limits.max_source_tokens, 64: "),
        ("loop", "{0}/cpu-fp32/encoder.onnx: it has a Loop, "),
    ],
)
def test_a_graph_is_proved_by_another_process_first(
    copied: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], kind: str, fault: str
) -> None:
    BUNDLES[kind](copied)
    before = (copied / MANIFEST_FILE).read_bytes()
    monkeypatch.setattr("export.probe_bundle.open_bundle", None)  # nothing of it is loaded here

    with pytest.raises(SystemExit) as caught:
        run(monkeypatch, copied)

    told = capfd.readouterr().err.rstrip("\n")
    assert caught.value.code == 2
    assert told.startswith(f"babelserve-probe: {fault.format(copied)}")
    assert told.isprintable()
    assert (copied / MANIFEST_FILE).read_bytes() == before


def test_sentences_that_are_too_long_are_left_out(
    copied: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    text = copied.parent / "text"
    text.write_text("dog " * 100, encoding="utf-8")

    with pytest.raises(SystemExit) as caught:
        run(monkeypatch, copied, "--text", text)

    assert caught.value.code == 2
    assert capfd.readouterr().err == "babelserve-probe: --text has no sentence of at most 64 tokens\n"
    text.write_text("dog " * 100 + "\nA dog runs.\n", encoding="utf-8")
    run(monkeypatch, copied, "--text", text)
    alignment = open_bundle(copied).manifest.alignment
    assert alignment is not None
    assert alignment.num_sentences == 1


def test_references_say_how_sure_a_model_is(
    copied: Path, dev_set: DevSet, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    text, reference = copied.parent / "text", copied.parent / "reference"
    text.write_text("\n".join(dev_set.sources), encoding="utf-8")
    reference.write_text("\n".join(dev_set.references), encoding="utf-8")

    run(monkeypatch, copied, "--text", text, "--reference", reference)

    confidence = open_bundle(copied).manifest.confidence
    assert confidence is not None
    assert confidence.num_sentences >= 200
    assert f"calibration error {confidence.calibration_error:.3f}" in capfd.readouterr().out

    reference.write_text("one line", encoding="utf-8")
    with pytest.raises(SystemExit):
        run(monkeypatch, copied, "--text", text, "--reference", reference)
    assert "--reference has 1 lines" in capfd.readouterr().err


@pytest.mark.parametrize("name", ["write_aligner", "write_manifest"])
def test_a_probe_that_is_stopped_leaves_the_bundle_as_it_was(
    copied: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    text = copied.parent / "text"
    text.write_text("A dog runs.\n", encoding="utf-8")
    before = {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()}
    work = getattr(export.probe_bundle, name)

    def stopped(*arguments: object) -> None:
        work(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(export.probe_bundle, name, stopped)

    with pytest.raises(SystemExit):
        run(monkeypatch, copied, "--text", text)

    assert {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()} == before
    assert not list(copied.glob(".*"))
    open_bundle(copied)


def test_each_reference_belongs_to_the_line_of_its_number(
    copied: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    text, reference = copied.parent / "text", copied.parent / "reference"
    text.write_text("A dog runs.\n\nTwo\u2028cats sleep.\nA man.\n", encoding="utf-8")
    reference.write_text("Ein Hund rennt.\nNichts.\nZwei Katzen schlafen.\n\n", encoding="utf-8")
    pairs: list[tuple[str, str]] = []

    def probed(bundle: Bundle, _pair: object, sentences: list[str], references: list[str]) -> Manifest:
        pairs.extend(zip(sentences, references, strict=True))
        return bundle.manifest

    monkeypatch.setattr("export.probe_bundle.probe_bundle", probed)

    run(monkeypatch, copied, "--text", text, "--reference", reference)

    assert pairs == [("A dog runs.", "Ein Hund rennt."), ("Two\u2028cats sleep.", "Zwei Katzen schlafen.")]
    reference.write_text("Ein Hund rennt.\nZwei Katzen schlafen.\nEin Mann.\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        run(monkeypatch, copied, "--text", text, "--reference", reference)
    assert "--reference has 3 lines, and there are 4 sentences" in capfd.readouterr().err


def test_a_one_pass_bundle_is_told_what_its_network_can_read_alone(
    one_pass_bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "one-pass"
    shutil.copytree(one_pass_bundle.directory, directory)

    run(monkeypatch, directory)

    manifest = open_bundle(directory).manifest
    assert (manifest.alignment, manifest.confidence) == (None, None)
    assert "aligns" not in capfd.readouterr().out
