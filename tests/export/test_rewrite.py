"""Bundles of earlier revisions written anew: smaller, and the same to the last bit."""

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest

from export.files import save_graphs
from export.rewrite import main, rewrite
from server.bundle.bundle import Bundle, open_bundle
from server.bundle.files import describe_file
from server.bundle.graphs import EMBEDDING, WEIGHTS_FILE
from server.bundle.manifest import MANIFEST_FILE, REVISION, seal_manifest


@pytest.fixture
def old(tiny_bundle: Bundle, tmp_path: Path) -> Bundle:
    """The tiny bundle as revision 7 had it: every variant with all of its weights, in int8 the embedding twice."""
    directory = tmp_path / "old"
    shutil.copytree(tiny_bundle.directory, directory)
    (directory / "halves.bin").unlink()
    variants = {}
    for name, variant in tiny_bundle.manifest.variants.items():
        (directory / name / WEIGHTS_FILE).write_bytes(tiny_bundle.read(f"{name}/{WEIGHTS_FILE}"))
        offset = variant.embedding_offset
        if name == "cpu-int8":
            files = ("encoder.onnx", "decoder_step_shared.onnx", "decoder_step.onnx")
            offset = save_graphs(
                directory / name, [(file, with_two_tables(onnx.load(directory / name / file))) for file in files]
            )
        facts = {file: describe_file(directory / name / file) for file in variant.files}
        variants[name] = dataclasses.replace(variant, files=facts, embedding_offset=offset, halves=None)
    manifest = dataclasses.replace(tiny_bundle.manifest, revision=7, variants=variants)
    (directory / MANIFEST_FILE).write_text(manifest.to_json(), encoding="utf-8")
    seal_manifest(directory)
    return open_bundle(directory)


def with_two_tables(model: onnx.ModelProto) -> onnx.ModelProto:
    for node in [node for node in model.graph.node if node.op_type == "Transpose" and node.input[0] == EMBEDDING]:
        (table,) = (tensor for tensor in model.graph.initializer if tensor.name == EMBEDDING)
        turned = np.ascontiguousarray(onnx.numpy_helper.to_array(table).T)
        model.graph.initializer.append(onnx.numpy_helper.from_array(turned, node.output[0]))
        model.graph.node.remove(node)
    return model


def test_a_bundle_becomes_what_would_be_written_today(old: Bundle, tiny_bundle: Bundle, tmp_path: Path) -> None:
    new = rewrite(old.directory, tmp_path / "new")

    assert new.manifest.revision == REVISION
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    for name in ("cpu-fp32", "cuda-fp16"):
        assert new.manifest.variants[name] == tiny_bundle.manifest.variants[name]
        assert new.read(f"{name}/{WEIGHTS_FILE}") == old.read(f"{name}/{WEIGHTS_FILE}")
    sizes = [each.manifest.variants["cpu-int8"].weights_bytes for each in (old, new)]
    dimensions = new.manifest.dimensions
    assert sizes[0] - sizes[1] == pytest.approx(dimensions.vocab_size * dimensions.d_model, abs=128)
    rest = dataclasses.replace(new.manifest, revision=7, variants=old.manifest.variants)
    assert rest == old.manifest


def test_what_is_stored_once_is_refused(
    tiny_bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["rewrite", str(tiny_bundle.directory), str(tmp_path / "new")])

    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 2
    assert "stores its weights once already" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_an_existing_directory_is_never_touched(old: Bundle, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()

    with pytest.raises(FileExistsError):
        rewrite(old.directory, tmp_path / "new")
