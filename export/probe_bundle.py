"""`babelserve-probe BUNDLE`: finds out what a bundle's network can read and how its translations are aligned.

With references it also finds out how sure the model is of its translations. All is written into the bundle. An export
does the same.
"""

import argparse
import asyncio
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

import shtab

from export.aligner import write_aligner
from export.alignment import choose_heads, open_heads, translate_own
from export.confidence import usual_search, with_confidence
from export.drafts import scratch
from export.endings import endings
from export.examples import CHECKED_SENTENCES, encode_examples
from export.files import EXACT
from export.id_translator import open_translator
from export.imports.samples import own_sentences
from export.probe import probe_model
from export.subject import DevSet
from export.texts import read_lines
from model.command import Parser, parse
from server.bundle.bundle import Bundle, open_bundle
from server.bundle.graphs import TRANSFORMER
from server.bundle.languages import LanguagePair
from server.bundle.manifest import MANIFEST_FILE, REVISION, SEAL_FILE, Manifest, seal_manifest
from server.bundle.tokenizer import Tokenizer
from server.errors import BundleError
from server.models.proof import prove_all
from server.runtime.runner import open_runner


def main() -> None:
    """Entry point; exit code 2 for what cannot be read."""
    arguments = parse(build_parser())
    with endings("babelserve-probe", arguments.bundle, BundleError):
        # In another process first, since a stranger's graph may run for ever or take all memory.
        if faults := asyncio.run(prove_all(arguments.bundle, lambda _: None)):
            raise BundleError(faults)
        bundle = open_bundle(arguments.bundle)
        pair = bundle.manifest.golden_pair
        sentences = own_sentences(pair.source) if arguments.text is None else read_lines("--text", arguments.text)
        references = None if arguments.reference is None else read_lines("--reference", arguments.reference)
        sentences, references = _without_empty(sentences, references)
        if not sentences:
            raise ValueError(f"there are no sample sentences in {pair.source}: give some of your own with --text FILE")
        manifest = _write(bundle, probe_bundle(bundle, pair, sentences, references))
        masking, alignment = manifest.masking, manifest.alignment
        copied, lost = ", ".join(masking.codes), " ".join(masking.unknown_characters)
        found = f"{bundle.directory}: copies {copied or 'no code'}; does not return {lost or 'nothing untried'}"
        if alignment is not None:
            found += f"; aligns with {len(alignment.heads)} heads, error rate {alignment.error_rate:.3f}"
        sys.stdout.write(f"{found}\n")
        if manifest.confidence is not None:
            sys.stdout.write(f"confidence: calibration error {manifest.confidence.calibration_error:.3f}\n")


def _without_empty(sentences: list[str], references: list[str] | None) -> tuple[list[str], list[str]]:
    """Leaves out the sentences that are empty or whose references are. Raises ValueError for unequal numbers."""
    if references is None:
        return [sentence for sentence in sentences if sentence], []
    if len(references) != len(sentences):
        raise ValueError(f"--reference has {len(references)} lines, and there are {len(sentences)} sentences")
    pairs = [pair for pair in zip(sentences, references, strict=True) if all(pair)]
    return [sentence for sentence, _ in pairs], [reference for _, reference in pairs]


def probe_bundle(bundle: Bundle, pair: LanguagePair, sentences: list[str], references: Sequence[str] = ()) -> Manifest:
    """Returns a bundle's manifest with what its network can read and how it aligns.

    Only a Transformer can be aligned, and a one-pass network gets no confidence either.

    Args:
        bundle: to try.
        pair: the direction to try it in.
        sentences: in its source language.
        references: a translation of each sentence; none to leave the bundle's confidence as it is.

    Raises:
        ValueError: no sentence is short enough for the network.
    """
    known = dataclasses.replace(bundle.manifest.masking, codes=(), unknown_characters="")
    manifest = dataclasses.replace(bundle.manifest, masking=known)
    name = EXACT if EXACT in manifest.variants else next(iter(manifest.variants))
    runner = open_runner(bundle, name, "cpu")
    with open_translator(runner, bundle) as translator:
        tokenizer = Tokenizer(manifest, bundle.read)
        encoded = [(text, tokenizer.encode(text, pair.source_prefix)) for text in sentences]
        longest = manifest.limits.max_source_tokens
        fitting = [(text, ids) for text, ids in encoded if len(ids) <= longest]
        if not fitting:
            raise ValueError(f"--text has no sentence of at most {longest} tokens")
        manifest = probe_model(
            translator, tokenizer, manifest, (pair.source, pair.target), [each for each, _ in fitting]
        )
        if manifest.is_one_pass:
            return manifest  # it has neither confidence nor alignment
        if references:
            dev = DevSet(sentences, list(references), [(pair.source, pair.target)] * len(sentences))
            examples = encode_examples(dev, manifest, tokenizer)
            best = translator.of_examples(examples, usual_search(manifest))
            manifest = with_confidence(tokenizer, manifest, examples, best)
        if manifest.family != TRANSFORMER:
            return manifest  # the aligner is made of a Transformer's layers
        own = translate_own(translator, manifest, pair, [ids for _, ids in fitting[:CHECKED_SENTENCES]])
        alignment = choose_heads(open_heads(bundle, name, runner), own)
    return dataclasses.replace(manifest, alignment=alignment)


def _write(bundle: Bundle, manifest: Manifest) -> Manifest:
    """Writes a bundle's manifest, and the aligners that it needs, whole before any is put in its place."""
    with scratch(bundle.directory, ".probe-") as draft:
        variants = dict(manifest.variants)
        if manifest.alignment is not None:
            for name, variant in manifest.variants.items():
                (draft / name).mkdir()
                variants[name] = write_aligner(bundle.directory / name, variant, manifest.alignment.heads, draft / name)
        manifest = dataclasses.replace(manifest, variants=variants)
        manifest = write_manifest(draft, manifest)
        for path in (*draft.glob("*/*"), draft / MANIFEST_FILE, draft / SEAL_FILE):
            path.replace(bundle.directory / path.relative_to(draft))
    return manifest


def write_manifest(directory: Path, manifest: Manifest) -> Manifest:
    """Writes a manifest into a directory, in this revision of the format, and seals it; returns what is written."""
    manifest = dataclasses.replace(manifest, revision=REVISION)
    (directory / MANIFEST_FILE).write_text(manifest.to_json(), encoding="utf-8")
    seal_manifest(directory)
    return manifest


def build_parser() -> argparse.ArgumentParser:
    """All flags, with defaults in their help."""
    parser = Parser(
        prog="babelserve-probe",
        description="Find out which characters and codes a bundle's network returns, and how its translations are"
        " aligned, and write both into the bundle.",
    )
    parser.add_argument("bundle", type=Path, help="directory of the bundle, which is changed")
    parser.add_argument(
        "--text", type=Path, metavar="FILE", help="sentences in the source language, one a line (default: ours)"
    )
    parser.add_argument(
        "--reference", type=Path, metavar="FILE", help="translations of --text, line by line, to measure confidence"
    )
    shtab.add_argument_to(parser, "--print-completion", help="print what completes this command in a shell, and end")
    return parser


if __name__ == "__main__":
    main()
