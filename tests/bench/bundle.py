"""Our side of a comparison: a bundle made without the export's proofs, which would take longer than the benchmark.

The ids check of the benchmark takes their place. The graphs are those that the export writes.
"""

import dataclasses
from pathlib import Path

from export.drafts import drafted
from export.files import write_variant
from export.id_translator import open_translator
from export.manifest import draft_manifest
from export.subject import Subject
from model.transformer import Transformer
from server.bundle.bundle import Bundle, open_bundle
from server.bundle.languages import LanguagePair
from server.bundle.manifest import (
    MANIFEST_FILE,
    SHORTLIST_FILE,
    TOKENIZER_FILE,
    GoldenOutput,
    seal_manifest,
)
from server.bundle.shortlist import Shortlist
from server.decoding.options import DecodingOptions
from server.runtime.runner import open_runner
from tests.bench.text import Text

_CALIBRATION_SENTENCES = 64


def write_bundle(
    model: Transformer, text: Text, name: str, directory: Path, shortlist: Shortlist, variants: tuple[str, ...]
) -> Bundle:
    """Writes variants of a model, and a manifest that the server accepts.

    Args:
        model: in evaluation mode.
        text: sentences to calibrate with, and the tokenizer.
        name: of the model.
        directory: to make; must not exist.
        shortlist: for the bundle to offer.
        variants: some of `server.bundle.bundle.VARIANTS`.
    """
    with drafted(directory) as draft:
        (draft / TOKENIZER_FILE).write_bytes(text.tokenizer)
        shortlist.save(draft / SHORTLIST_FILE)
        sources = [list(ids) for ids in text.source_ids[:_CALIBRATION_SENTENCES]]
        targets = [[model.config.bos_id, *ids[:-1]] for ids in sources]
        described = {
            variant: write_variant(model, draft, variant, sources, targets, has_shortlist=True) for variant in variants
        }
        longest = model.config.max_positions // 2 - 8
        subject = Subject(
            model=model,
            name=name,
            tokenizer={TOKENIZER_FILE: text.tokenizer},
            language_pairs=(LanguagePair(source="en", target="de"),),
            max_source_tokens=longest,
            max_target_tokens=2 * longest + 16,
            shortlist=shortlist,
        )
        manifest = draft_manifest(subject, draft, version="bench")
        golden = dataclasses.replace(manifest.golden, source_text=text.lines[0], source_ids=tuple(text.source_ids[0]))
        manifest = dataclasses.replace(manifest, variants=described, golden=golden)
        draft_bundle = Bundle(directory=draft, manifest=manifest)
        golden = dataclasses.replace(
            golden, outputs={variant: _translate(draft_bundle, variant) for variant in variants}
        )
        manifest = dataclasses.replace(manifest, golden=golden)
        (draft / MANIFEST_FILE).write_text(manifest.to_json(), encoding="utf-8")
        seal_manifest(draft)
    return open_bundle(directory)


def _translate(bundle: Bundle, variant: str) -> GoldenOutput:
    golden = bundle.manifest.golden
    with open_translator(open_runner(bundle, variant, "cpu"), bundle) as translator:
        best = translator([list(golden.source_ids)], DecodingOptions(beam_size=golden.beam_size))[0]
    return GoldenOutput(ids=best.ids, score=best.score)
