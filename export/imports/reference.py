"""What the package that a model is from makes of the same sentences: a second opinion, of which nothing is ours.

With `transformers` it goes from text to text, so that tokenizers, languages, weights, search and decoding are compared
at once; CTranslate2 has no tokenizer.
"""

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from export.id_translator import open_translator
from export.imports.families.ctranslate2_vocabularies import read_side
from export.imports.foreign import CTRANSLATE2, TRANSFORMERS, ForeignModel
from export.imports.report import Report
from export.imports.settings import read_settings
from export.subject import DevSet
from model.search import default_max_tokens
from server.bundle.bundle import Bundle
from server.bundle.languages import LanguagePair
from server.bundle.manifest import Manifest
from server.bundle.tokenizer import Tokenizer
from server.decoding.options import DecodingOptions
from server.runtime.runner import open_runner

_DEFAULT_BEAM = 4  # the server's, for models that name none
_MOST_SHOWN = 3
_PACKAGES = {TRANSFORMERS: "'transformers>=5.23' sacremoses", CTRANSLATE2: "'ctranslate2>=4.8'"}


@dataclass(frozen=True, slots=True)
class Difference:
    """A sentence that is translated in two ways."""

    text: str
    ours: str
    theirs: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many sentences were translated, and those that came out unlike; `reference` says whose the others are."""

    reference: str
    sentences: int
    differences: list[Difference]

    def __str__(self) -> str:
        equal = self.sentences - len(self.differences)
        lines = [f"{equal} of {self.sentences} sentences identical to those of {self.reference}"]
        for each in self.differences[:_MOST_SHOWN]:
            lines += [f"    {each.text!r}", f"      ours:   {each.ours!r}", f"      theirs: {each.theirs!r}"]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A sentence to be translated by both: its text, its ids with prefix and eos, and the most ids of an answer."""

    text: str
    ids: list[int]
    pair: LanguagePair
    max_tokens: int


def refusal(reference: str) -> str | None:
    """Says why nothing can be compared with a model's own package; None if it can.

    Args:
        reference: as in `ForeignModel`.
    """
    if reference not in _PACKAGES:
        return f"--check cannot ask {reference}: translate the same sentences with it, and compare"
    if importlib.util.find_spec(reference) is None:
        return f"--check needs {reference}: pip install {_PACKAGES[reference]}"
    return None


def compare(model: ForeignModel, opened: Path, bundle: Bundle, dev: DevSet) -> Comparison:
    """Translates sentences with a bundle in float32 and with the model's own package, and compares the texts.

    Both have the same beam size and limits on length; `generate` takes the rest from the model's own defaults.
    CTranslate2 searches greedily, since its beams are by other rules, and is given pieces: it has no tokenizer.

    Args:
        model: as it was read.
        opened: its directory, with its weights as the hub has them.
        bundle: what it was imported to.
        dev: the sentences; too long ones are left out. No references are needed.
    """
    manifest = bundle.manifest
    tokenizer = Tokenizer(manifest, bundle.read)
    theirs = (
        _Transformers(opened, manifest.search.beam_size or _DEFAULT_BEAM)
        if model.directory is None
        else _CTranslate2(model.directory, tokenizer)
    )
    asked = list(_fitting(dev, manifest, tokenizer))
    options = DecodingOptions(beam_size=theirs.beam_size, length_penalty=manifest.search.length_penalty)
    with open_translator(open_runner(bundle, "cpu-fp32", "cpu"), bundle) as translator:
        found = translator([each.ids for each in asked], options, [each.pair.target_prefix for each in asked])
    differences = []
    for each, best in zip(asked, found, strict=True):
        ours, other = tokenizer.decode(best.ids).strip(), theirs.translate(each)
        if ours != other:
            differences.append(Difference(each.text, ours, other))
    return Comparison(theirs.name, len(asked), differences)


def _fitting(dev: DevSet, manifest: Manifest, tokenizer: Tokenizer) -> Iterator[_Asked]:
    limits = manifest.limits
    for text, (source, target) in zip(dev.sources, dev.pairs, strict=True):
        pair = manifest.find_pair(source, target)
        assert pair is not None, (source, target)  # the sentences were made for this model
        ids = list(tokenizer.encode(text, pair.source_prefix))
        if len(ids) <= limits.max_source_tokens:
            most = default_max_tokens(len(ids), limits.max_target_tokens) + len(pair.target_prefix)
            yield _Asked(text, ids, pair, min(most, limits.max_target_tokens))


class _Transformers:
    """A model of the real classes, from its own files alone."""

    name = TRANSFORMERS

    def __init__(self, directory: Path, beam_size: int) -> None:
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer  # noqa: PLC0415  # not in any extra

        self.beam_size = beam_size
        self.tokenizer: Any = AutoTokenizer.from_pretrained(directory, local_files_only=True)
        # Marian's convert_ids_to_tokens has the target's vocabulary; get_vocab has the source's.
        self.names = {token: name for name, token in self.tokenizer.get_vocab().items()}
        model = AutoModelForSeq2SeqLM.from_pretrained(directory, local_files_only=True, dtype=torch.float32)
        self.model: Any = model.eval()

    @torch.inference_mode()
    def translate(self, asked: _Asked) -> str:
        """Translates a sentence alone, so that nothing is padded; `max_tokens` does not count the start."""
        text, pair = asked.text, asked.pair
        names = [self.names[token] for token in pair.source_prefix]
        if hasattr(self.tokenizer, "src_lang"):  # the language of the source, by the tokenizer's name for it
            if names:
                self.tokenizer.src_lang = names[0].strip("_")
        else:  # Marian's: the language of the target, as a word
            text = " ".join([*names, text])
        inputs = self.tokenizer(text, return_tensors="pt")
        output = self.model.generate(
            inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            num_beams=self.beam_size,
            do_sample=False,
            max_length=asked.max_tokens + 1,
            forced_bos_token_id=pair.target_prefix[0] if pair.target_prefix else None,
        )
        translation: str = self.tokenizer.decode(output[0], skip_special_tokens=True)
        return translation.strip()


class _CTranslate2:
    """A model.bin run by CTranslate2 itself, its weights made float32."""

    name = f"{CTRANSLATE2}, greedy"
    beam_size = 1

    def __init__(self, directory: Path, tokenizer: Tokenizer) -> None:
        import ctranslate2  # noqa: PLC0415  # of a group

        report = Report()
        self.pieces = [read_side(directory, side, report) for side in ("source", "target")]
        config = read_settings(directory, "config.json", report, is_optional=True)
        report.check()
        # What CTranslate2 adds itself.
        self.num_ahead, self.num_behind = (int(config.flag(f"add_source_{key}", False)) for key in ("bos", "eos"))
        self.tokenizer = tokenizer
        self.translator: Any = ctranslate2.Translator(str(directory), compute_type="float32", intra_threads=1)

    def translate(self, asked: _Asked) -> str:
        """Translates a sentence alone."""
        source, target = self.pieces
        prefix = [target[token] for token in asked.pair.target_prefix]
        (result,) = self.translator.translate_batch(
            [[source[token] for token in asked.ids[self.num_ahead : len(asked.ids) - self.num_behind]]],
            target_prefix=[prefix] if prefix else None,
            beam_size=1,
            max_input_length=0,
            max_decoding_length=asked.max_tokens,
        )
        pieces = result.hypotheses[0][len(prefix) :]
        return self.tokenizer.decode([target.index(piece) for piece in pieces]).strip()
