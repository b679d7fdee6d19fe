"""Compares an imported tiny model with what `generate` of `transformers` made of the same sentences."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from export.imports.detect import read_model
from export.imports.foreign import ForeignModel
from export.imports.languages import GivenLanguages, bcp47
from export.imports.report import Report
from export.imports.subject import build_subject
from export.manifest import draft_manifest
from export.subject import Subject
from model.search import SearchRules, search
from model.transformer import Transformer
from server.bundle.languages import LanguagePair
from server.bundle.manifest import Manifest
from server.bundle.tokenizer import Tokenizer
from tests.imports import fairseq, opennmt
from tests.imports.expected import Expected, Run, Sentence, read
from tests.imports.families import EXPECTED, MODELS

NONE_GIVEN = GivenLanguages()


def read_whole(directory: Path, given: GivenLanguages = NONE_GIVEN) -> tuple[ForeignModel, Report]:
    """Reads a foreign model as `babelserve-import` does, with all its checks. Raises ImportFault for its faults."""
    report = Report()
    model = read_model(directory, given, report)
    if model is not None:
        model.check(report)
    report.check()
    assert model is not None
    return model, report


@dataclass(frozen=True, slots=True)
class Imported:
    """A tiny model, read as `babelserve-import` reads it, and what is expected of it."""

    subject: Subject
    manifest: Manifest
    tokenizer: Tokenizer
    expected: Expected
    report: Report

    def pair(self, sentence: Sentence) -> LanguagePair:
        """Returns the direction of a sentence, by our codes."""
        codes = []
        sides = (
            (sentence.source_language, self.manifest.source_codes),
            (sentence.target_language, self.manifest.target_codes),
        )
        for name, known in sides:
            codes.append(known[0] if name is None else bcp47(name.strip("><_")) or "")
        pair = self.manifest.find_pair(*codes) if codes[0] != codes[1] else None
        if pair is None:  # into the same language, which no client asks for: tiny models learn it all the same
            assert self.subject.languages is not None
            source, target = self.subject.languages.source[codes[0]], self.subject.languages.target[codes[1]]
            prefix = target.source_prefix + source.prefix
            return LanguagePair(source=codes[0], target=codes[1], source_prefix=prefix, target_prefix=target.prefix)
        return pair

    def num_equal(self, run: Run, sentences: int) -> int:
        """Returns how many of the first sentences the oracle translates to the very ids that are expected."""
        chosen, model = self.expected.sentences[:sentences], self.subject.model
        assert isinstance(model, Transformer)
        found = search(
            model,
            [sentence.source_ids for sentence in chosen],
            beam_size=run.beam_size,
            length_penalty=run.length_penalty,
            max_tokens=run.max_tokens,
            forced_prefixes=[self.pair(sentence).target_prefix for sentence in chosen],
            rules=SearchRules(early_stopping=run.early_stopping, forced_eos=run.forced_eos),
        )
        equal = 0
        for sentence, hypotheses, ids in zip(chosen, found, self.expected.outputs(run), strict=False):
            own = [token for token in ids[sentence.forced_bos is not None :] if token != self.expected.eos_id]
            equal += hypotheses[0].ids == own
        return equal


def import_tiny(name: str, directory: Path, source: Path | None = None) -> Imported:
    """Imports a tiny model, or what it has been converted to, `source`; `directory` is for its tokenizer's files."""
    if name in ("fsmt", "fairseq"):
        pytest.importorskip("sacremoses", reason="needs sacremoses, of the extra moses")
    path = EXPECTED / f"{'fsmt' if name == 'fairseq' else name}.json.gz"
    if name == "fairseq":  # the same network, weights and pieces as fairseq itself writes them
        source = source or fairseq.write_directory(directory / "en-de")
    if name == "opennmt":
        path = opennmt.EXPECTED
        source = source or opennmt.write_directory(directory / "en-de")
    model, report = read_whole(source or MODELS / name)
    subject = build_subject(model, report)
    for file, content in subject.tokenizer.items():
        (directory / file).write_bytes(content)
    manifest = draft_manifest(subject, directory, version="1")
    tokenizer = Tokenizer(manifest, lambda file: (directory / file).read_bytes())
    return Imported(subject, manifest, tokenizer, read(path), report)
