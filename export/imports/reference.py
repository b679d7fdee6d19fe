"""What the package that a model is from makes of the same sentences: a second opinion, of which nothing is ours.

It goes from text to text, so that tokenizers, languages, weights, search and decoding are compared at once.
"""

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from export.imports.foreign import TRANSFORMERS
from export.subject import DevSet
from export.verify import open_translator
from model.search import default_max_tokens
from server.bundle.bundle import Bundle
from server.bundle.languages import LanguagePair
from server.bundle.tokenizer import Tokenizer
from server.decoding.options import DecodingOptions
from server.runtime.runner import open_runner

_DEFAULT_BEAM = 4  # the server's, for models that name none
_MOST_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Difference:
    """A sentence that is translated in two ways."""

    text: str
    ours: str
    theirs: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many sentences were translated, and those that came out unlike."""

    sentences: int
    differences: list[Difference]

    def __str__(self) -> str:
        lines = [f"{self.sentences - len(self.differences)} of {self.sentences} sentences identical to transformers'"]
        for each in self.differences[:_MOST_SHOWN]:
            lines += [f"    {each.text!r}", f"      ours:   {each.ours!r}", f"      theirs: {each.theirs!r}"]
        return "\n".join(lines)


def refusal(reference: str) -> str | None:
    """Says why nothing can be compared with a model's own package; None if it can.

    Args:
        reference: as in `ForeignModel`.
    """
    if reference != TRANSFORMERS:
        return f"--check cannot ask {reference}: translate the same sentences with it, and compare"
    if importlib.util.find_spec(TRANSFORMERS) is None:
        return "--check needs transformers: pip install 'transformers>=5.23' sacremoses"
    return None


def compare(directory: Path, bundle: Bundle, dev: DevSet) -> Comparison:
    """Translates sentences with a bundle in float32, and with `generate` of `transformers`, and compares the texts.

    Both have the bundle's beam size and limits on length; `generate` takes the rest from the model's own defaults.

    Args:
        directory: of the model, with its weights as the hub has them.
        bundle: what it was imported to.
        dev: the sentences; too long ones are left out. No references are needed.
    """
    manifest = bundle.manifest
    tokenizer = Tokenizer(manifest, bundle.read)
    theirs = _Transformers(directory)
    beam_size = manifest.search.beam_size or _DEFAULT_BEAM
    asked: list[tuple[str, LanguagePair, list[int]]] = []
    for text, (source, target) in zip(dev.sources, dev.pairs, strict=True):
        pair = manifest.find_pair(source, target)
        assert pair is not None, (source, target)  # the sentences were made for this model
        ids = list(tokenizer.encode(text, pair.source_prefix))
        if len(ids) <= manifest.limits.max_source_tokens:
            asked.append((text, pair, ids))
    options = DecodingOptions(beam_size=beam_size, length_penalty=manifest.search.length_penalty)
    with open_translator(open_runner(bundle, "cpu-fp32", "cpu"), bundle) as translator:
        found = translator([ids for *_, ids in asked], options, [pair.target_prefix for _, pair, _ in asked])
    differences = []
    for (text, pair, ids), best in zip(asked, found, strict=True):
        limit = manifest.limits.max_target_tokens
        most = min(default_max_tokens(len(ids), limit) + len(pair.target_prefix), limit)
        ours, other = tokenizer.decode(best.ids).strip(), theirs.translate(text, pair, beam_size, most)
        if ours != other:
            differences.append(Difference(text, ours, other))
    return Comparison(len(asked), differences)


class _Transformers:
    """A model of the real classes, from its own files alone."""

    def __init__(self, directory: Path) -> None:
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer  # noqa: PLC0415  # not in any extra

        self.tokenizer: Any = AutoTokenizer.from_pretrained(directory, local_files_only=True)
        # Marian's convert_ids_to_tokens has the target's vocabulary; get_vocab has the source's.
        self.names = {token: name for name, token in self.tokenizer.get_vocab().items()}
        model = AutoModelForSeq2SeqLM.from_pretrained(directory, local_files_only=True, dtype=torch.float32)
        self.model: Any = model.eval()

    @torch.inference_mode()
    def translate(self, text: str, pair: LanguagePair, beam_size: int, max_tokens: int) -> str:
        """Translates a sentence alone, so that nothing is padded; `max_tokens` does not count the start."""
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
            num_beams=beam_size,
            do_sample=False,
            max_length=max_tokens + 1,
            forced_bos_token_id=pair.target_prefix[0] if pair.target_prefix else None,
        )
        translation: str = self.tokenizer.decode(output[0], skip_special_tokens=True)
        return translation.strip()
