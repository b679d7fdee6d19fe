"""`export_bundle`: checkpoint in, proven bundle out; written whole or not at all."""

import dataclasses
import hashlib
import logging
import shutil
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sentencepiece
import torch

from export.files import write_variant
from export.manifest import draft_manifest
from export.verify import (
    check_ids,
    check_quality,
    check_rows_apart,
    check_step_logits,
    measure_quality,
    open_translator,
)
from model.checkpoint import Checkpoint
from server.bundle.bundle import Bundle, open_bundle
from server.bundle.manifest import MANIFEST_FILE, SHORTLIST_FILE, TOKENIZER_FILE, GoldenOutput, seal_manifest
from server.bundle.shortlist import Shortlist
from server.bundle.variants import VARIANTS
from server.runtime.runner import open_runner

logger = logging.getLogger(__name__)

MAX_BLEU_LOSS = 0.5
CHECKED_SENTENCES = 200


@dataclass(frozen=True, slots=True)
class DevSet:
    """Real sentences, and their translations, that the export calibrates and proves itself with."""

    sources: list[str]
    references: list[str]


def export_bundle(
    checkpoint: Checkpoint,
    out: Path,
    dev: DevSet,
    *,
    version: str,
    variants: Collection[str] = tuple(VARIANTS),
    max_bleu_loss: float = MAX_BLEU_LOSS,
    shortlist: Shortlist | None = None,
) -> Bundle:
    """Writes a bundle and proves it.

    Args:
        checkpoint: a trained model.
        out: directory to make; must not exist.
        dev: at least 200 pairs.
        version: of the model, for the manifest.
        variants: some of `server.bundle.variants.VARIANTS`; "cpu-fp32" is needed, since the proof rests on it.
        max_bleu_loss: what a variant may lose to cpu-fp32 on `dev`; on a few hundred sentences half a point is noise.
        shortlist: for the bundle to offer, see `export.shortlist`; None for none.

    Raises:
        FileExistsError: `out` exists.
        ValueError: too few dev sentences, unknown variants, or a network that has no graphs.
        VerificationError: the graphs do not do what the checkpoint does.
    """
    if out.exists():
        raise FileExistsError(f"{out} exists already")
    if "cpu-fp32" not in variants or not set(variants) <= set(VARIANTS):
        raise ValueError(f"variants must be cpu-fp32 and others of {', '.join(VARIANTS)}, not {', '.join(variants)}")
    if checkpoint.config.decoder_mixer != "attention":
        raise ValueError(f'decoder_mixer must be "attention" to be exported, not "{checkpoint.config.decoder_mixer}"')
    out.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        _Export(checkpoint, draft, dev, max_bleu_loss, shortlist).write(version, variants)
        open_bundle(draft)
        draft.chmod(0o755)
        draft.rename(out)
    except BaseException:
        shutil.rmtree(draft)
        raise
    return open_bundle(out)


class _Export:
    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: Path,
        dev: DevSet,
        max_bleu_loss: float,
        shortlist: Shortlist | None = None,
    ) -> None:
        self.max_bleu_loss = max_bleu_loss
        self.shortlist = shortlist
        self.checkpoint = checkpoint
        self.directory = directory
        self.model = checkpoint.build_model()
        self.tokenizer = sentencepiece.SentencePieceProcessor(model_proto=checkpoint.tokenizer)
        recipe = checkpoint.facts.get("recipe", {})
        self.max_source_tokens = min(
            recipe.get("training", {}).get("max_tokens", checkpoint.config.max_positions),
            checkpoint.config.max_positions,
        )
        pairs = list(zip(dev.sources, self._encode(dev.sources), dev.references, strict=True))
        fitting = [pair for pair in pairs if len(pair[1]) <= self.max_source_tokens]
        if len(fitting) < CHECKED_SENTENCES:
            raise ValueError(
                f"the dev set has {len(fitting)} sentences of at most {self.max_source_tokens} tokens, "
                f"at least {CHECKED_SENTENCES} are needed"
            )
        if len(fitting) < len(pairs):
            logger.warning(
                "left out %d dev sentences over %d tokens", len(pairs) - len(fitting), self.max_source_tokens
            )
        self.sources = [ids for _, ids, _ in fitting]
        self.references = [reference for _, _, reference in fitting]
        self.golden_text = fitting[0][0]

    def write(self, version: str, variants: Collection[str]) -> None:
        (self.directory / TOKENIZER_FILE).write_bytes(self.checkpoint.tokenizer)
        if self.shortlist is not None:
            self.shortlist.save(self.directory / SHORTLIST_FILE)
        sources, targets = self.sources[:CHECKED_SENTENCES], self._targets(CHECKED_SENTENCES)
        has_shortlist = self.shortlist is not None
        described = {
            name: write_variant(self.model, self.directory, name, sources, targets, has_shortlist=has_shortlist)
            for name in variants
        }
        manifest = draft_manifest(
            self.checkpoint.config,
            self.directory,
            described,
            version=version,
            facts={**self.checkpoint.facts, "weights_sha256": _weights_hash(self.checkpoint)},
            max_source_tokens=self.max_source_tokens,
            golden_text=self.golden_text,
            golden_ids=tuple(self.sources[0]),
        )
        parity, quality, outputs = self._prove(Bundle(directory=self.directory, manifest=manifest))
        golden = dataclasses.replace(manifest.golden, outputs=outputs)
        manifest = dataclasses.replace(manifest, golden=golden, parity=parity, quality=quality)
        (self.directory / MANIFEST_FILE).write_text(manifest.to_json(), encoding="utf-8")
        seal_manifest(self.directory)

    def _prove(self, bundle: Bundle) -> tuple[dict[str, Any], dict[str, Any], dict[str, GoldenOutput]]:
        parity: dict[str, Any] = {}
        quality: dict[str, Any] = {}
        outputs: dict[str, GoldenOutput] = {}
        golden = bundle.manifest.golden
        checked = self.sources[:CHECKED_SENTENCES]
        for name in bundle.manifest.variants:
            # The CUDA variant is tried on the CPU too, which runs fp16 by way of fp32: that tries its graphs and
            # weights, not CUDA's kernels.
            runner = open_runner(bundle, name, "cpu", num_threads=torch.get_num_threads())
            with open_translator(runner, bundle) as translator:
                best = translator([list(golden.source_ids)], bundle.manifest.golden_options())[0]
                outputs[name] = GoldenOutput(ids=best.ids, score=best.score)
                if VARIANTS[name].is_exact and runner.has_host_caches:
                    logger.info("%s: comparing with the checkpoint", name)
                    max_tokens = bundle.manifest.limits.max_target_tokens
                    parity["step_logits"] = check_step_logits(self.model, runner, checked[:32], self._targets(32))
                    parity["greedy_ids"] = check_ids(self.model, translator, checked, 1, max_tokens)
                    parity["beam_4_ids"] = check_ids(self.model, translator, checked, 4, max_tokens)
                if VARIANTS[name].dtype == "int8":
                    parity["int8_rows_apart"] = check_rows_apart(translator, checked)
                for use_shortlist in (False, True) if bundle.manifest.variants[name].has_shortlist else (False,):
                    measured = f"{name}, shortlist" if use_shortlist else name
                    quality[measured] = measure_quality(
                        translator, self.tokenizer, self.sources, self.references, use_shortlist=use_shortlist
                    )
                    logger.info("%s: dev BLEU %s", measured, quality[measured]["bleu"])
        check_quality(quality, self.max_bleu_loss)
        parity["max_bleu_loss"] = self.max_bleu_loss
        return parity, quality, outputs

    def _encode(self, texts: list[str]) -> list[list[int]]:
        return [[*ids, self.checkpoint.config.eos_id] for ids in self.tokenizer.encode(texts)]

    def _targets(self, count: int) -> list[list[int]]:
        """Returns the first references as decoder input."""
        config = self.checkpoint.config
        encoded = self.tokenizer.encode(self.references[:count])
        return [[config.bos_id, *ids][: config.max_positions] for ids in encoded]


def _weights_hash(checkpoint: Checkpoint) -> str:
    digest = hashlib.sha256()
    for name, weight in sorted(checkpoint.weights.items()):
        digest.update(name.encode())
        digest.update(weight.contiguous().numpy().tobytes())
    return digest.hexdigest()
