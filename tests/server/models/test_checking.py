import dataclasses
import json
import shutil
from pathlib import Path

import pytest
from sentencepiece import SentencePieceProcessor

from export.id_translator import open_translator
from server.bundle.bundle import Bundle, open_bundle
from server.bundle.files import describe_file
from server.bundle.languages import Languages, SourceLanguage, TargetLanguage
from server.bundle.manifest import (
    MANIFEST_FILE,
    SOURCE_MODEL_FILE,
    SOURCE_PIECES_FILE,
    TOKENIZER_FILE,
    GoldenOutput,
    SearchDefaults,
    seal_manifest,
)
from server.errors import BundleError
from server.models.checking import check_bundle
from server.runtime.runner import open_runner
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics


def copied(tiny_bundle: Bundle, directory: Path, **limits: int) -> Path:
    """A copy of the bundle, with other limits."""
    copy = directory / "bundle"
    shutil.copytree(tiny_bundle.directory, copy)
    document = json.loads((copy / MANIFEST_FILE).read_text(encoding="utf-8"))
    document["limits"] |= limits
    (copy / MANIFEST_FILE).write_text(json.dumps(document), encoding="utf-8")
    seal_manifest(copy)
    return copy


def test_a_whole_bundle_is_checked_variant_by_variant(tiny_bundle: Bundle, metrics: Metrics) -> None:
    lines = list(check_bundle(tiny_bundle.directory, Settings(), metrics))

    assert [line.split(":")[0] for line in lines] == ["tiny 0", *tiny_bundle.manifest.variants]


def test_a_faulty_bundle_does_not_pass_the_check(tiny_bundle: Bundle, tmp_path: Path, metrics: Metrics) -> None:
    bundle = copied(tiny_bundle, tmp_path)
    (bundle / "cpu-int8" / "encoder.onnx").write_bytes(b"")

    with pytest.raises(BundleError, match=r"cpu-int8/encoder\.onnx"):
        list(check_bundle(bundle, Settings(), metrics))


@pytest.mark.parametrize("side", ["source", "target"])
def test_limits_beyond_the_models_positions_are_refused(
    tiny_bundle: Bundle, tmp_path: Path, metrics: Metrics, side: str
) -> None:
    num_positions = tiny_bundle.manifest.training["recipe"]["model"]["max_positions"]
    field = f"max_{side}_tokens"
    copied(tiny_bundle, tmp_path, **{field: num_positions})
    list(check_bundle(tmp_path / "bundle", Settings(variant="cpu-fp32"), metrics))
    shutil.rmtree(tmp_path / "bundle")
    beyond = copied(tiny_bundle, tmp_path, **{field: num_positions + 1})

    with pytest.raises(
        BundleError, match=rf"limits.{field}, {num_positions + 1}: it may be beyond the model's positions: ."
    ):
        list(check_bundle(beyond, Settings(), metrics))


def with_languages(tiny_bundle: Bundle, directory: Path) -> Path:
    """A copy that is told its languages by ids, its tokenizer a SentencePiece model with a table of its pieces."""
    copy = shutil.copytree(tiny_bundle.directory, directory / "spoken")
    manifest = tiny_bundle.manifest
    (copy / TOKENIZER_FILE).rename(copy / SOURCE_MODEL_FILE)
    processor = SentencePieceProcessor(model_proto=(copy / SOURCE_MODEL_FILE).read_bytes())
    pieces = [processor.IdToPiece(token) for token in range(processor.vocab_size())]
    english, german = (processor.PieceToId(word) for word in ("\u2581dog", "\u2581ein"))
    for token in (*dataclasses.astuple(manifest.special_ids), english, german):
        pieces[token] = ""
    (copy / SOURCE_PIECES_FILE).write_text(json.dumps(pieces), encoding="utf-8")
    files = {name: describe_file(copy / name) for name in (SOURCE_MODEL_FILE, SOURCE_PIECES_FILE)}
    languages = Languages(
        source={"en": SourceLanguage(prefix=(english,))}, target={"de": TargetLanguage(prefix=(german,))}
    )
    golden = dataclasses.replace(
        manifest.golden,
        source_ids=(english, *manifest.golden.source_ids),
        source_language="en",
        target_language="de",
    )
    manifest = dataclasses.replace(
        manifest,
        language_pairs=(),
        languages=languages,
        tokenizer=None,
        extra_files=manifest.extra_files | files,
        golden=golden,
        search=SearchDefaults(early_stopping=False, forced_eos=True),
    )
    bundle = Bundle(directory=copy, manifest=manifest)
    outputs = {}
    for variant in manifest.variants:
        with open_translator(open_runner(bundle, variant, "cpu"), bundle) as translate:
            best = translate([list(golden.source_ids)], manifest.golden_options())[0]
            outputs[variant] = GoldenOutput(ids=best.ids, score=best.score)
    manifest = dataclasses.replace(manifest, golden=dataclasses.replace(golden, outputs=outputs))
    (copy / MANIFEST_FILE).write_text(manifest.to_json(), encoding="utf-8")
    seal_manifest(copy)
    return copy


def test_a_bundle_of_languages_and_a_pieces_table_passes(tiny_bundle: Bundle, tmp_path: Path, metrics: Metrics) -> None:
    bundle = with_languages(tiny_bundle, tmp_path)

    lines = list(check_bundle(bundle, Settings(), metrics))

    assert lines[0] == "tiny 0: manifest, files and tokenizer are as they should be"
    assert len(lines) == 1 + len(tiny_bundle.manifest.variants)
    golden = open_bundle(bundle).manifest.golden.outputs["cpu-fp32"]
    assert golden.ids != tiny_bundle.manifest.golden.outputs["cpu-fp32"].ids  # it was told otherwise


def test_a_table_that_does_not_fit_is_told_before_any_network(
    tiny_bundle: Bundle, tmp_path: Path, metrics: Metrics
) -> None:
    bundle = with_languages(tiny_bundle, tmp_path)
    (bundle / SOURCE_PIECES_FILE).write_text('["a", "a"]', encoding="utf-8")
    document = json.loads((bundle / MANIFEST_FILE).read_text(encoding="utf-8"))
    document["extra_files"][SOURCE_PIECES_FILE] = dataclasses.asdict(describe_file(bundle / SOURCE_PIECES_FILE))
    (bundle / MANIFEST_FILE).write_text(json.dumps(document), encoding="utf-8")
    seal_manifest(bundle)

    checking = check_bundle(bundle, Settings(), metrics)
    with pytest.raises(BundleError, match=r"^source_pieces.json: has 'a' 2 times$"):
        next(checking)


def test_a_one_pass_bundle_is_checked_variant_by_variant(one_pass_bundle: Bundle, metrics: Metrics) -> None:
    lines = list(check_bundle(one_pass_bundle.directory, Settings(), metrics))

    assert [line.split(":")[0] for line in lines] == ["tiny-one-pass 0", "cpu-fp32", "cpu-int8"]


def test_a_one_pass_network_must_have_positions_for_its_longest_source(
    one_pass_bundle: Bundle, tmp_path: Path, metrics: Metrics
) -> None:
    num_positions = one_pass_bundle.manifest.training["recipe"]["model"]["max_positions"]
    copied(one_pass_bundle, tmp_path, max_source_tokens=num_positions)
    list(check_bundle(tmp_path / "bundle", Settings(), metrics))

    copied(one_pass_bundle, tmp_path / "more", max_source_tokens=num_positions + 1)
    with pytest.raises(BundleError, match=f"translating {num_positions + 1} tokens with .* failed"):
        list(check_bundle(tmp_path / "more" / "bundle", Settings(), metrics))
