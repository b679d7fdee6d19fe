"""Our side of a comparison: a bundle made without the export's proofs, which would take longer than the benchmark.

The ids check of the benchmark takes their place. The graphs are those that the export writes.
"""

import dataclasses
import shutil
import tempfile
from pathlib import Path

import numpy as np

from export.bundle import MAX_BEAM_SIZE, calibrate, save_graphs
from export.graphs import OPSETS, encoder_graph, step_graph
from export.quantize import quantize_graph
from export.verify import open_translator
from model.transformer import Transformer
from server.bundle import (
    ENCODER_FILE,
    MANIFEST_FILE,
    REVISION,
    STEP_FILE,
    TOKENIZER_FILE,
    Bundle,
    Dimensions,
    Golden,
    GoldenOutput,
    LanguagePair,
    Limits,
    Manifest,
    SpecialIds,
    Variant,
    describe_file,
    open_bundle,
)
from server.runner import OrtRunner
from server.sequence import DecodingOptions
from tests.bench.text import Text

VARIANTS = ("cpu-fp32", "cpu-int8")
_CALIBRATION_SENTENCES = 64


def write_bundle(model: Transformer, text: Text, name: str, directory: Path) -> Bundle:
    """Writes variants cpu-fp32 and cpu-int8 of a model, and a manifest that the server accepts.

    Args:
        model: in evaluation mode.
        text: sentences to calibrate with, and the tokenizer.
        name: of the model.
        directory: to make; must not exist.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=directory.parent))
    try:
        (draft / TOKENIZER_FILE).write_bytes(text.tokenizer)
        variants = {variant: _write_variant(model, text, draft, variant) for variant in VARIANTS}
        manifest = _manifest(model, text, name, draft, variants)
        draft_bundle = Bundle(directory=draft, manifest=manifest)
        golden = dataclasses.replace(
            manifest.golden, outputs={variant: _translate(draft_bundle, variant) for variant in VARIANTS}
        )
        manifest = dataclasses.replace(manifest, golden=golden)
        (draft / MANIFEST_FILE).write_text(manifest.to_json(), encoding="utf-8")
        draft.rename(directory)
    except BaseException:
        shutil.rmtree(draft)
        raise
    return open_bundle(directory)


def _write_variant(model: Transformer, text: Text, draft: Path, variant: str) -> Variant:
    graphs = {ENCODER_FILE: encoder_graph(model), STEP_FILE: step_graph(model)}
    if variant == "cpu-int8":
        sources = [list(ids) for ids in text.source_ids[:_CALIBRATION_SENTENCES]]
        ranges = calibrate(model, sources, [[model.config.bos_id, *ids[:-1]] for ids in sources])
        graphs = {file: quantize_graph(graph, ranges) for file, graph in graphs.items()}
    directory = draft / variant
    directory.mkdir()
    save_graphs(directory, graphs)
    files = {path.name: describe_file(path) for path in sorted(directory.iterdir())}
    return Variant(dtype=np.dtype(np.float32).name, opsets=OPSETS, files=files)


def _manifest(model: Transformer, text: Text, name: str, draft: Path, variants: dict[str, Variant]) -> Manifest:
    config = model.config
    return Manifest(
        revision=REVISION,
        name=name,
        version="bench",
        language_pairs=(LanguagePair(source="en", target="de"),),
        dimensions=Dimensions(
            vocab_size=config.vocab_size,
            d_model=config.d_model,
            num_heads=config.num_heads,
            head_dim=config.head_dim,
            encoder_layers=config.encoder_layers,
            decoder_layers=config.decoder_layers,
        ),
        special_ids=SpecialIds(pad=config.pad_id, unk=config.unk_id, bos=config.bos_id, eos=config.eos_id),
        limits=Limits(
            max_source_tokens=config.max_positions // 2 - 8,
            max_target_tokens=config.max_positions,
            max_beam_size=MAX_BEAM_SIZE,
        ),
        tokenizer=describe_file(draft / TOKENIZER_FILE),
        variants=variants,
        golden=Golden(source_text=text.lines[0], source_ids=text.source_ids[0], beam_size=4, outputs={}),
    )


def _translate(bundle: Bundle, variant: str) -> GoldenOutput:
    golden = bundle.manifest.golden
    with open_translator(OrtRunner(bundle, variant, "cpu"), bundle) as translator:
        best = translator([list(golden.source_ids)], DecodingOptions(beam_size=golden.beam_size))[0]
    return GoldenOutput(ids=best.ids, score=best.score)
