"""`export_bundle`: a model in, a proven bundle out; written whole or not at all."""

import dataclasses
import logging
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

import torch

from export.agreement import MIN_CHRF, check_agreement, measure_agreement
from export.aligner import write_aligner
from export.alignment import Translated, choose_heads, open_heads
from export.compare import compare_with_model
from export.confidence import usual_search, with_confidence
from export.description import described_quality
from export.drafts import drafted
from export.examples import CHECKED_SENTENCES, encode_examples
from export.files import EXACT, check_variants, write_variant
from export.halves import share_halves
from export.id_translator import IdTranslator, open_translator
from export.manifest import draft_manifest
from export.mapped import MappedWeights
from export.parked import ParkedWeights
from export.probe import probe_model
from export.subject import DevSet, Subject
from export.verify import VerificationError, check_quality, check_rows_apart, measure_quality
from model.memory import passing_over_old_objects, return_freed_memory
from model.transformer import Transformer
from server.bundle.bundle import Bundle, open_bundle
from server.bundle.manifest import MANIFEST_FILE, SHORTLIST_FILE, GoldenOutput, Manifest, seal_manifest
from server.bundle.tokenizer import Tokenizer
from server.bundle.variants import VARIANTS
from server.decoding.options import DecodingOptions
from server.decoding.result import Hypothesis
from server.network import Runner
from server.runtime.runner import NetworkRunner, open_runner

logger = logging.getLogger(__name__)

MAX_BLEU_LOSS = 0.5
_ORACLE_WORK = 10**10  # parameters times sentences: the oracle takes a minute or two for that
_PROBE_WORK = 2 * 10**11  # likewise, of the engine
_LEAST_CHECKED = 16


def export_bundle(
    subject: Subject,
    out: Path,
    dev: DevSet,
    *,
    version: str,
    variants: Collection[str] = tuple(VARIANTS),
    max_bleu_loss: float = MAX_BLEU_LOSS,
    min_chrf: float = MIN_CHRF,
) -> Bundle:
    """Writes a bundle and proves it.

    Args:
        subject: the model.
        out: directory to make; must not exist.
        dev: at least 200 pairs, or 32 sentences without references.
        version: of the model, for the manifest.
        variants: some of `server.bundle.variants.VARIANTS`. The proof rests on "cpu-fp32", which is written first in
            any case, and removed again if it is not among them. An int8 variant that is not good enough is left out,
            with a warning, unless it is the only one.
        max_bleu_loss: what a variant may lose to cpu-fp32 on `dev`; on a few hundred sentences half a point is noise.
        min_chrf: without references: chrF of a variant's translations, cpu-fp32's taken as references.

    Raises:
        FileExistsError: `out` exists.
        ValueError: too few dev sentences, or variants that are unknown or not for such a network.
        VerificationError: the graphs do not do what the model does.
    """
    check_variants(subject.model, variants)
    with drafted(out) as draft, passing_over_old_objects():
        _Export(subject, draft, dev, version, max_bleu_loss, min_chrf).write(variants)
        open_bundle(draft)
    return open_bundle(out)


class _Export:
    def __init__(
        self,
        subject: Subject,
        directory: Path,
        dev: DevSet,
        version: str = "1",
        max_bleu_loss: float = MAX_BLEU_LOSS,
        min_chrf: float = MIN_CHRF,
    ) -> None:
        self.max_bleu_loss = max_bleu_loss
        self.min_chrf = min_chrf
        self.subject = subject
        self.parked = ParkedWeights(subject.model, directory)
        self.directory = directory
        for name, content in subject.tokenizer.items():
            (directory / name).write_bytes(content)
        if subject.shortlist is not None:
            subject.shortlist.save(directory / SHORTLIST_FILE)
        self.manifest = draft_manifest(subject, directory, version=version)
        self.tokenizer = Tokenizer(self.manifest, lambda name: (directory / name).read_bytes())
        self.examples = encode_examples(dev, self.manifest, self.tokenizer)
        self.has_references = bool(dev.references)
        num_parameters = sum(weight.numel() for weight in subject.model.state_dict().values())
        num_checked = max(_LEAST_CHECKED, min(CHECKED_SENTENCES, _ORACLE_WORK // num_parameters))
        self.num_translations = _PROBE_WORK // num_parameters
        self.checked = self.examples[:num_checked]
        self.targets = self._references()
        self.exact: list[str] = []  # translations of the exact variant, where there are no references
        self.best: list[Hypothesis] = []  # those of the variant that was measured last, where there are
        self.outputs: dict[str, GoldenOutput] = {}
        self.parity: dict[str, Any] = {}
        self.quality: dict[str, dict[str, Any]] = {}

    def write(self, variants: Collection[str]) -> None:
        """Writes and proves the variants, the exact one first: without references its translations are needed."""
        golden = self.examples[0]
        source_language, target_language = golden.pair
        drafted = dataclasses.replace(
            self.manifest.golden,
            source_text=golden.text,
            source_ids=golden.source_ids,
            source_language=source_language,
            target_language=target_language,
        )
        self.manifest = dataclasses.replace(self.manifest, golden=drafted)
        for name in (EXACT, *(name for name in variants if name != EXACT)):
            try:
                self._write_variant(name)
                self._let_go()
                self._prove_variant(name)
                self._let_go()
                self._check_quality(name)
            except VerificationError as error:
                others = [other for other in variants if other != name]
                if VARIANTS[name].dtype != "int8" or not others:
                    raise
                self._leave_out(name, error)
                variants = others
        if EXACT not in variants:
            shutil.rmtree(self.directory / EXACT)
        named = {name: self.outputs[name] for name in variants}
        written = {name: self.manifest.variants[name] for name in variants}
        if (alignment := self.manifest.alignment) is not None:
            written = {
                name: write_aligner(self.directory / name, each, alignment.heads) for name, each in written.items()
            }
        self._save(
            dataclasses.replace(
                self.manifest,
                variants=share_halves(self.directory, written),
                golden=dataclasses.replace(self.manifest.golden, outputs=named),
                parity=self.parity,
                quality=self.quality,
            )
        )

    def _leave_out(self, name: str, error: VerificationError) -> None:
        """Removes a variant that is not good enough; the others do not depend on it."""
        shutil.rmtree(self.directory / name)
        self.quality = {of: found for of, found in self.quality.items() if not of.startswith(name)}
        self.parity.pop("int8_rows_apart", None)
        logger.warning("warning: the bundle is written without %s: %s", name, error)

    def _write_variant(self, name: str) -> None:
        sources = [list(example.source_ids) for example in self.examples[:CHECKED_SENTENCES]]
        has_shortlist = self.subject.shortlist is not None
        written = write_variant(
            self.subject.model,
            self.directory,
            name,
            sources[: len(self.targets)],
            self.targets,
            has_shortlist=has_shortlist,
            let_go=self.parked.drop,
        )
        self.manifest = dataclasses.replace(self.manifest, variants={**self.manifest.variants, name: written})

    def _let_go(self) -> None:
        """Gives back memory: what comes next needs other weights."""
        self.parked.drop()
        return_freed_memory()

    def _prove_variant(self, name: str) -> None:
        """Proves what is written, with weights that are mapped rather than packed into every session."""
        bundle = Bundle(directory=self.directory, manifest=self.manifest)
        # The CUDA variant is tried on the CPU too, which runs fp16 by way of fp32: that tries its graphs and weights,
        # not CUDA's kernels.
        mapped = MappedWeights(self.directory / name)
        runner = open_runner(bundle, name, "cpu", num_threads=torch.get_num_threads(), lend=mapped)
        with open_translator(
            runner, bundle, let_go=mapped.drop, placeholder_ids=self.tokenizer.placeholder_ids
        ) as translator:
            self.outputs[name] = self._golden_output(translator)
            if not self.has_references and name == EXACT:
                self.exact = self._translate(translator)
                self.targets = self._forced_targets(translator)
            self._prove(name, runner, translator)
            if name == EXACT:
                self._probe(translator)
                if self.has_references and not self.manifest.is_one_pass:
                    self.manifest = with_confidence(self.tokenizer, self.manifest, self.examples, self.best)
                if isinstance(self.subject.model, Transformer):  # the aligner is made of its layers
                    self._choose_heads(bundle, runner, translator)

    def _probe(self, translator: IdTranslator) -> None:
        pair, most = self.examples[0].pair, self.num_translations
        texts = [example.text for example in self.examples if example.pair == pair]
        self.manifest = probe_model(translator, self.tokenizer, self.manifest, pair, texts, most)

    def _choose_heads(self, bundle: Bundle, runner: Runner, translator: IdTranslator) -> None:
        targets = self._forced_targets(translator) if self.has_references else self.targets  # own translations
        translations = [
            Translated(example.source_ids, tuple(target), len(example.prefix))
            for example, target in zip(self.examples, targets, strict=False)
        ]
        alignment = choose_heads(open_heads(bundle, EXACT, runner), translations)
        logger.info("alignment: error rate %.3f with %d heads", alignment.error_rate, len(alignment.heads))
        self.manifest = dataclasses.replace(self.manifest, alignment=alignment)

    def _prove(self, name: str, runner: NetworkRunner, translator: IdTranslator) -> None:
        sources = [list(example.source_ids) for example in self.checked]
        prefixes = [example.prefix for example in self.checked]
        if VARIANTS[name].is_exact:
            logger.info("%s: comparing with the model", name)
            self.parity |= compare_with_model(
                self.subject, runner, translator, sources, self.targets[: len(sources)], prefixes, self._let_go
            )
        if VARIANTS[name].dtype == "int8":
            self.parity["int8_rows_apart"] = check_rows_apart(translator, sources, prefixes)
        for use_shortlist in (False, True) if self.manifest.variants[name].has_shortlist else (False,):
            measured = f"{name}, shortlist" if use_shortlist else name
            self.quality[measured] = self._measure(translator, use_shortlist)
            logger.info("%s: %s", measured, described_quality(self.quality[measured]))

    def _measure(self, translator: IdTranslator, use_shortlist: bool) -> dict[str, Any]:
        if not self.has_references:
            return measure_agreement(self._translate(translator, use_shortlist), self.exact)
        options = dataclasses.replace(usual_search(self.manifest), use_shortlist=use_shortlist)
        found, best = measure_quality(translator, self.tokenizer, self.examples, options)
        if not use_shortlist:
            self.best = best
        return found

    def _check_quality(self, name: str) -> None:
        measured = {of: found for of, found in self.quality.items() if of.startswith((EXACT, name))}
        if self.has_references:
            check_quality(measured, self.max_bleu_loss)
            self.parity["max_bleu_loss"] = self.max_bleu_loss
        else:
            check_agreement(measured, self.min_chrf)
            self.parity["min_chrf"] = self.min_chrf

    def _save(self, manifest: Manifest) -> None:
        (self.directory / MANIFEST_FILE).write_text(manifest.to_json(), encoding="utf-8")
        seal_manifest(self.directory)

    def _golden_output(self, translator: IdTranslator) -> GoldenOutput:
        best = translator([list(self.manifest.golden.source_ids)], self.manifest.golden_options())[0]
        return GoldenOutput(ids=best.ids, score=best.score)

    def _translate(self, translator: IdTranslator, use_shortlist: bool = False) -> list[str]:
        options = DecodingOptions(
            beam_size=4, length_penalty=self.subject.search.length_penalty, use_shortlist=use_shortlist
        )
        return [self.tokenizer.decode(best.ids) for best in translator.of_examples(self.examples, options)]

    def _references(self) -> list[list[int]]:
        """Returns the first references as decoder input; none if there are none."""
        config = self.subject.model.config
        references = [example.reference for example in self.examples[:CHECKED_SENTENCES] if self.has_references]
        encoded = [self.tokenizer.encode(reference)[:-1] for reference in references]  # without eos
        return [[config.bos_id, *ids][: config.max_positions] for ids in encoded]

    def _forced_targets(self, translator: IdTranslator) -> list[list[int]]:
        """Returns the model's own translations of the first sentences as decoder input."""
        config, examples = self.subject.model.config, self.examples[:CHECKED_SENTENCES]
        found = zip(examples, translator.of_examples(examples, DecodingOptions(beam_size=1)), strict=True)
        return [[config.bos_id, *each.prefix, *best.ids][: config.max_positions] for each, best in found]
