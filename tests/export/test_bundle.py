import dataclasses
import json
import logging
import os
import shutil
import signal
import threading
from pathlib import Path

import numpy as np
import onnx
import pytest
import sentencepiece
import torch

from export.bundle import _Export, export_bundle
from export.graph import OPSETS
from export.subject import DevSet, subject_of, weights_hash
from export.verify import VerificationError
from model.checkpoint import Checkpoint
from model.transformer import Transformer
from server.bundle.bundle import Bundle, open_bundle
from server.bundle.files import describe_file
from server.bundle.graphs import EMBEDDING, ENCODER_FILE, HALVES_FILE, WEIGHTS_FILE, step_forms
from server.bundle.manifest import REVISION
from server.bundle.variants import VARIANTS
from server.errors import BundleError


class Interrupt(logging.Handler):
    """Sends this process a signal when the export says what it is about to do."""

    def __init__(self, message: str, number: signal.Signals) -> None:
        super().__init__()
        self.message = message
        self.number = number

    def emit(self, record: logging.LogRecord) -> None:
        if self.message in record.getMessage():
            os.kill(os.getpid(), self.number)


def external(path: Path) -> dict[str, tuple[int, int]]:
    """Offset and length in weights.bin of each tensor of a graph."""
    model = onnx.load(path, load_external_data=False)
    facts = {tensor.name: {e.key: e.value for e in tensor.external_data} for tensor in model.graph.initializer}
    return {name: (int(f["offset"]), int(f["length"])) for name, f in facts.items() if f}


def test_an_existing_directory_is_never_touched(tiny_checkpoint: Checkpoint, dev_set: DevSet, tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    out.mkdir()
    (out / "mine").write_text("precious", encoding="utf-8")

    with pytest.raises(FileExistsError, match=r"bundle exists already"):
        export_bundle(subject_of(tiny_checkpoint), out, dev_set, version="1")

    assert [path.name for path in tmp_path.rglob("*")] == ["bundle", "mine"]


def test_too_few_sentences_prove_nothing(tiny_checkpoint: Checkpoint, dev_set: DevSet, tmp_path: Path) -> None:
    few = DevSet(sources=dev_set.sources[:199], references=dev_set.references[:199])

    with pytest.raises(ValueError, match=r"has 199 sentences of at most \d+ tokens, at least 200 are needed"):
        export_bundle(subject_of(tiny_checkpoint), tmp_path / "bundle", few, version="1")

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("variants", [("cpu-fp32", "cpu-int4"), ()])
def test_variants_that_nobody_knows_are_refused(
    tiny_checkpoint: Checkpoint, dev_set: DevSet, tmp_path: Path, variants: tuple[str, ...]
) -> None:
    with pytest.raises(ValueError, match="variants must be some of cpu-fp32, "):
        export_bundle(subject_of(tiny_checkpoint), tmp_path / "bundle", dev_set, version="1", variants=variants)

    assert not list(tmp_path.iterdir())


def test_a_failing_check_leaves_nothing(
    tiny_checkpoint: Checkpoint, dev_set: DevSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for tolerance in ("LOGITS_ATOL", "LOGITS_RTOL"):
        monkeypatch.setattr(f"export.verify.{tolerance}", 0.0)  # no float32 is that exact

    with pytest.raises(VerificationError, match="step logits differ"):
        export_bundle(subject_of(tiny_checkpoint), tmp_path / "bundle", dev_set, version="1", variants=("cpu-fp32",))

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("moment", ["cpu-fp32: ", "comparing with the model"])
def test_ctrl_c_leaves_nothing(
    tiny_checkpoint: Checkpoint,
    dev_set: DevSet,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    moment: str,
) -> None:
    caplog.set_level(logging.INFO, "export.bundle")
    handler, logger, threads = (
        Interrupt(moment, signal.SIGINT),
        logging.getLogger("export.bundle"),
        threading.enumerate(),
    )
    logger.addHandler(handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            export_bundle(
                subject_of(tiny_checkpoint), tmp_path / "deep" / "bundle", dev_set, version="1", variants=("cpu-fp32",)
            )
    finally:
        logger.removeHandler(handler)

    assert not list((tmp_path / "deep").iterdir())
    assert threading.enumerate() == threads


def test_a_bundle_is_what_its_manifest_says(tiny_bundle: Bundle) -> None:
    directory, manifest = tiny_bundle.directory, tiny_bundle.manifest

    again = open_bundle(directory)

    assert again.manifest == manifest
    text = (directory / "manifest.json").read_text(encoding="utf-8")
    assert manifest.to_json() == text
    assert json.loads(text)["revision"] == manifest.revision == REVISION
    assert tuple(manifest.variants) == tuple(VARIANTS)
    halves = describe_file(directory / HALVES_FILE)
    for name, variant in manifest.variants.items():
        found = {path.name: describe_file(path) for path in (directory / name).iterdir()}
        assert found == variant.files
        assert variant.halves == (None if name == "cpu-int8" else halves)
        assert variant.opsets == OPSETS
    assert [manifest.variants[name].dtype for name in VARIANTS] == ["float32", "int8", "float16"]
    files = {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}
    named = {f"{name}/{file}" for name, variant in manifest.variants.items() for file in variant.files}
    assert files == named | {"manifest.json", "manifest.json.sha256", "tokenizer.model", HALVES_FILE}
    assert [path.name for path in directory.parent.iterdir()] == [directory.name]
    assert directory.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("name", ["cpu-fp32/weights.bin", HALVES_FILE])
def test_a_changed_byte_in_any_file_is_a_fault(tiny_bundle: Bundle, tmp_path: Path, name: str) -> None:
    copy = shutil.copytree(tiny_bundle.directory, tmp_path / "copy")
    weights = bytearray((copy / name).read_bytes())
    weights[len(weights) // 2] ^= 1
    (copy / name).write_bytes(weights)

    with pytest.raises(BundleError) as caught:
        open_bundle(copy, "cpu-fp32")

    (fault,) = caught.value.faults
    assert f"{name}: sha256 is" in fault


def test_the_manifest_describes_the_model(tiny_bundle: Bundle, tiny_checkpoint: Checkpoint) -> None:
    manifest, config = tiny_bundle.manifest, tiny_checkpoint.config

    dimensions = dataclasses.asdict(manifest.dimensions)
    assert dimensions.pop("source_vocab_size") is None
    assert dimensions == {name: getattr(config, name) for name in dimensions}
    assert dataclasses.asdict(manifest.special_ids) == {"pad": 0, "unk": 1, "bos": 2, "eos": 3}
    assert (manifest.name, manifest.version) == ("tiny", "0")
    assert [(pair.source, pair.target) for pair in manifest.language_pairs] == [("en", "de")]
    assert dataclasses.astuple(manifest.limits) == (64, 128, 16)  # of its recipe, its positions, and ours
    assert manifest.training["recipe"]["name"] == "tiny"
    assert len(manifest.training["weights_sha256"]) == 64


def test_the_proof_stands_in_the_manifest(tiny_bundle: Bundle, sources: list[list[int]]) -> None:
    parity, quality = tiny_bundle.manifest.parity, tiny_bundle.manifest.quality

    assert parity["step_logits"]["largest_difference"] <= 1e-4
    for name in ("greedy_ids", "beam_4_ids"):
        assert parity[name]["equal"] + len(parity[name]["near_ties"]) == parity[name]["sentences"] == len(sources)
    assert parity["int8_rows_apart"]["same_alone"] >= 0.99 * len(sources)
    assert parity["max_bleu_loss"] == 3.0
    assert quality.keys() == set(VARIANTS)
    assert all(quality["cpu-fp32"]["bleu"] - scores["bleu"] <= 3.0 for scores in quality.values())


def test_the_golden_sentence_has_an_output_of_every_variant(
    tiny_bundle: Bundle, tiny_checkpoint: Checkpoint, dev_set: DevSet
) -> None:
    golden = tiny_bundle.manifest.golden
    tokenizer = sentencepiece.SentencePieceProcessor(model_proto=tiny_bundle.read("tokenizer.model"))

    assert golden.source_text == dev_set.sources[0]
    assert golden.source_ids == (*tokenizer.encode(golden.source_text), 3)
    assert tuple(golden.outputs) == tuple(VARIANTS)
    for output in golden.outputs.values():
        assert output.score < 0
        assert output.ids
        assert not {0, 2, 3} & set(output.ids)
    assert golden.outputs["cpu-fp32"].ids == golden.outputs["cuda-fp16"].ids


@pytest.mark.parametrize("variant", VARIANTS)
def test_weights_are_stored_once(tiny_bundle: Bundle, variant: str) -> None:
    directory = tiny_bundle.directory / variant
    files = [ENCODER_FILE, *(form.file for form in step_forms(variant, has_shortlist=False))]
    graphs = [external(directory / file) for file in files]

    places = {place for graph in graphs for place in graph.values()}

    end = 0
    content = tiny_bundle.read(f"{variant}/{WEIGHTS_FILE}")
    alignment = 64 if variant == "cuda-fp16" else 128
    seen = set()
    for offset, length in sorted(places):
        assert offset % alignment == 0
        assert end <= offset < end + alignment
        end = offset + length
        seen.add(content[offset:end])
    assert end == len(content)
    assert len(seen) == len(places)
    assert len({graph[EMBEDDING] for graph in graphs}) == 1
    assert all((directory / file).stat().st_size < 40_000 for file in files)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_manifest_says_where_the_embedding_is(tiny_bundle: Bundle, tiny_model: Transformer, variant: str) -> None:
    facts = tiny_bundle.manifest.variants[variant]
    expected = tiny_model.embedding.tokens.weight.detach().numpy()

    weights = tiny_bundle.read(f"{variant}/{WEIGHTS_FILE}")
    table = np.frombuffer(weights, facts.dtype, expected.size, facts.embedding_offset).reshape(expected.shape)

    if facts.dtype == "int8":  # with a scale per token
        expected = expected / np.maximum(np.abs(expected).max(axis=1, keepdims=True), 1e-12) * 127
        np.testing.assert_allclose(table, expected, atol=0.5001)
    else:
        assert np.array_equal(table, expected.astype(facts.dtype))


def test_sizes_of_the_variants_are_those_of_their_precisions(tiny_bundle: Bundle) -> None:
    sizes = {name: variant.weights_bytes for name, variant in tiny_bundle.manifest.variants.items()}

    assert sizes["cuda-fp16"] == sizes["cpu-fp32"] / 2
    assert sizes["cpu-int8"] < sizes["cpu-fp32"] / 2
    assert sizes == {name: len(tiny_bundle.read(f"{name}/{WEIGHTS_FILE}")) for name in VARIANTS}


def test_sentences_that_are_too_long_are_left_out_and_never_golden(
    tiny_checkpoint: Checkpoint, dev_set: DevSet, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    long = " ".join(dev_set.sources[:10])
    dev = DevSet(sources=[long, *dev_set.sources], references=["x", *dev_set.references])

    export, fitting = (_Export(subject_of(tiny_checkpoint), tmp_path, one) for one in (dev, dev_set))

    assert export.examples[0].text == dev_set.sources[0]
    assert export.examples == fitting.examples
    assert "over 64 tokens" in caplog.text


def test_a_dev_set_of_long_sentences_alone_is_refused(
    tiny_checkpoint: Checkpoint, dev_set: DevSet, tmp_path: Path
) -> None:
    long = " ".join(dev_set.sources[:10])

    with pytest.raises(ValueError, match="has 0 sentences of at most 64 tokens, at least 200 are needed"):
        export_bundle(
            subject_of(tiny_checkpoint),
            tmp_path / "b",
            DevSet(sources=[long] * 200, references=["x"] * 200),
            version="1",
        )

    assert not list(tmp_path.iterdir())


def test_other_weights_have_another_hash(tiny_checkpoint: Checkpoint, tiny_bundle: Bundle) -> None:
    weights = {name: weight.clone() for name, weight in tiny_checkpoint.weights.items()}
    assert weights_hash(tiny_checkpoint.weights) == tiny_bundle.manifest.training["weights_sha256"]

    weights["decoder.0.self_norm.bias"] += torch.tensor(1.0).half()

    assert weights_hash(weights) != weights_hash(tiny_checkpoint.weights)
