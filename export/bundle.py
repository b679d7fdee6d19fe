"""`export_bundle`: checkpoint in, proven bundle out; written whole or not at all."""

import dataclasses
import hashlib
import logging
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import sentencepiece
import torch
from onnx import TensorProto

from export.calibrate import calibrate
from export.graph import OPSETS
from export.graphs import copy_rows_graph, encoder_graph, step_graph
from export.quantize import quantize_graph
from export.verify import (
    check_ids,
    check_quality,
    check_rows_apart,
    check_step_logits,
    measure_quality,
    open_translator,
)
from model.checkpoint import Checkpoint
from model.config import TransformerConfig
from model.transformer import Transformer
from server.bundle.bundle import (
    CACHE_DTYPES,
    COPY_ROWS_FILE,
    EMBEDDING,
    ENCODER_FILE,
    MANIFEST_FILE,
    MAX_BEAM_SIZE,
    PLAIN_STEP,
    REVISION,
    SHORTLIST_FILE,
    TOKENIZER_FILE,
    VARIANTS,
    WEIGHTS_FILE,
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
    is_on_device,
    open_bundle,
    step_forms,
)
from server.bundle.shortlist import Shortlist
from server.engine.sequence import DecodingOptions
from server.runtime.runner import OrtRunner

logger = logging.getLogger(__name__)

MAX_BLEU_LOSS = 0.5
CHECKED_SENTENCES = 200
_ALIGNMENT = 64
_INLINE_BYTES = 256  # smaller tensors stay in the graph, where shape inference sees them
_GOLDEN_BEAM_SIZE = 4


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
    variants: tuple[str, ...] = VARIANTS,
    max_bleu_loss: float = MAX_BLEU_LOSS,
    shortlist: Shortlist | None = None,
) -> Bundle:
    """Writes a bundle and proves it.

    Args:
        checkpoint: a trained model.
        out: directory to make; must not exist.
        dev: at least 200 pairs.
        version: of the model, for the manifest.
        variants: some of `server.bundle.bundle.VARIANTS`; "cpu-fp32" is needed, since the proof rests on it.
        max_bleu_loss: what a variant may lose to cpu-fp32 on `dev`; on a few hundred sentences half a point is noise.
        shortlist: for the bundle to offer, see `export.shortlist`; None for none.

    Raises:
        FileExistsError: `out` exists.
        ValueError: too few dev sentences, or unknown variants.
        VerificationError: the graphs do not do what the checkpoint does.
    """
    if out.exists():
        raise FileExistsError(f"{out} exists already")
    if "cpu-fp32" not in variants or not set(variants) <= set(VARIANTS):
        raise ValueError(f"variants must be cpu-fp32 and others of {', '.join(VARIANTS)}, not {', '.join(variants)}")
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

    def write(self, version: str, variants: tuple[str, ...]) -> None:
        (self.directory / TOKENIZER_FILE).write_bytes(self.checkpoint.tokenizer)
        if self.shortlist is not None:
            self.shortlist.save(self.directory / SHORTLIST_FILE)
        sources, targets = self.sources[:CHECKED_SENTENCES], self._targets(CHECKED_SENTENCES)
        has_shortlist = self.shortlist is not None
        described = {
            name: write_variant(self.model, self.directory, name, sources, targets, has_shortlist=has_shortlist)
            for name in variants
        }
        manifest = self._manifest(version, described)
        parity, quality, outputs = self._prove(Bundle(directory=self.directory, manifest=manifest))
        golden = dataclasses.replace(manifest.golden, outputs=outputs)
        manifest = dataclasses.replace(manifest, golden=golden, parity=parity, quality=quality)
        (self.directory / MANIFEST_FILE).write_text(manifest.to_json(), encoding="utf-8")

    def _manifest(self, version: str, variants: dict[str, Variant]) -> Manifest:
        config, facts = self.checkpoint.config, self.checkpoint.facts
        # Learned positions behind the longest training sentence have never been trained.
        num_positions = self.max_source_tokens if config.positions == "learned" else config.max_positions
        max_target_tokens = min(num_positions, 2 * self.max_source_tokens + 16)
        extra_files = (SHORTLIST_FILE,) if self.shortlist is not None else ()
        return Manifest(
            revision=REVISION,
            name=facts["name"],
            version=version,
            language_pairs=(LanguagePair(source=facts["source_language"], target=facts["target_language"]),),
            dimensions=dimensions_of(config),
            special_ids=special_ids_of(config),
            limits=Limits(
                max_source_tokens=self.max_source_tokens,
                max_target_tokens=max_target_tokens,
                max_beam_size=MAX_BEAM_SIZE,
            ),
            tokenizer=describe_file(self.directory / TOKENIZER_FILE),
            variants=variants,
            golden=Golden(
                source_text=self.golden_text,
                source_ids=tuple(self._encode([self.golden_text])[0]),
                beam_size=_GOLDEN_BEAM_SIZE,
                outputs={},
            ),
            extra_files={file: describe_file(self.directory / file) for file in extra_files},
            training={**facts, "weights_sha256": _weights_hash(self.checkpoint)},
        )

    def _prove(self, bundle: Bundle) -> tuple[dict[str, Any], dict[str, Any], dict[str, GoldenOutput]]:
        parity: dict[str, Any] = {}
        quality: dict[str, Any] = {}
        outputs: dict[str, GoldenOutput] = {}
        golden = bundle.manifest.golden
        checked = self.sources[:CHECKED_SENTENCES]
        for name in bundle.manifest.variants:
            # The CUDA variant is tried on the CPU too, which runs fp16 by way of fp32: that tries its graphs and
            # weights, not CUDA's kernels.
            runner = OrtRunner(bundle, name, "cpu", num_threads=torch.get_num_threads())
            with open_translator(runner, bundle) as translator:
                best = translator([list(golden.source_ids)], DecodingOptions(beam_size=golden.beam_size))[0]
                outputs[name] = GoldenOutput(ids=best.ids, score=best.score)
                if name == "cpu-fp32":
                    logger.info("%s: comparing with the checkpoint", name)
                    max_tokens = bundle.manifest.limits.max_target_tokens
                    parity["step_logits"] = check_step_logits(self.model, runner, checked[:32], self._targets(32))
                    parity["greedy_ids"] = check_ids(self.model, translator, checked, 1, max_tokens)
                    parity["beam_4_ids"] = check_ids(self.model, translator, checked, 4, max_tokens)
                if name == "cpu-int8":
                    parity["int8_rows_apart"] = check_rows_apart(translator, checked)
                quality[name] = measure_quality(translator, self.tokenizer, self.sources, self.references)
                logger.info("%s: dev BLEU %s", name, quality[name]["bleu"])
                if bundle.manifest.variants[name].has_shortlist:
                    shortlisted = measure_quality(
                        translator, self.tokenizer, self.sources, self.references, use_shortlist=True
                    )
                    quality[f"{name}, shortlist"] = shortlisted
                    logger.info("%s, shortlist: dev BLEU %s", name, shortlisted["bleu"])
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


def write_variant(
    model: Transformer,
    bundle: Path,
    name: str,
    sources: list[list[int]],
    targets: list[list[int]],
    *,
    has_shortlist: bool = False,
) -> Variant:
    """Writes one variant's graphs and weights.

    Args:
        model: in evaluation mode.
        bundle: the directory to make the variant's own one in.
        name: one of `server.bundle.bundle.VARIANTS`.
        sources: token ids with eos, to calibrate int8 with.
        targets: token ids starting with bos, of the same sentences.
        has_shortlist: write the steps with a shortlist too.
    """
    cache_dtype = CACHE_DTYPES[name]
    dtype = np.dtype("float32" if cache_dtype == "int8" else cache_dtype)
    graphs = {ENCODER_FILE: encoder_graph(model, dtype)}
    graphs |= {form.file: step_graph(model, dtype, form) for form in step_forms(name, has_shortlist)}
    if is_on_device(name):
        graphs[COPY_ROWS_FILE] = copy_rows_graph(model.config, dtype)
    if cache_dtype == "int8":
        ranges = calibrate(graphs[ENCODER_FILE], graphs[PLAIN_STEP.file], sources, targets)
        graphs = {file: quantize_graph(graph, ranges) for file, graph in graphs.items()}
    directory = bundle / name
    directory.mkdir()
    embedding_offset = save_graphs(directory, graphs)
    files = {path.name: describe_file(path) for path in sorted(directory.iterdir())}
    logger.info("%s: %.1f MB", name, sum(facts.bytes for facts in files.values()) / 1e6)
    return Variant(dtype=cache_dtype, embedding_offset=embedding_offset, opsets=OPSETS, files=files)


def save_graphs(directory: Path, graphs: Mapping[str, onnx.ModelProto]) -> int:
    """Writes the graphs with their weights in one `WEIGHTS_FILE`, in which equal tensors are stored once.

    Returns:
        Where in it the token embedding begins, in bytes.
    """
    places: dict[str, int] = {}
    embedding_offset = -1
    with (directory / WEIGHTS_FILE).open("wb") as weights:
        for file, model in graphs.items():
            for tensor in model.graph.initializer:
                data = tensor.raw_data
                if len(data) < _INLINE_BYTES:
                    continue
                key = hashlib.sha256(data).hexdigest()
                if key not in places:
                    weights.write(b"\0" * (-weights.tell() % _ALIGNMENT))
                    places[key] = weights.tell()
                    weights.write(data)
                if tensor.name == EMBEDDING:
                    embedding_offset = places[key]
                facts = {"location": WEIGHTS_FILE, "offset": str(places[key]), "length": str(len(data))}
                tensor.ClearField("raw_data")
                tensor.data_location = TensorProto.EXTERNAL
                tensor.external_data.extend(onnx.StringStringEntryProto(key=k, value=v) for k, v in facts.items())
            onnx.save(model, directory / file)
            onnx.checker.check_model(directory / file)
    return embedding_offset


def dimensions_of(config: TransformerConfig) -> Dimensions:
    """Returns a model's sizes as the manifest has them."""
    return Dimensions(
        vocab_size=config.vocab_size,
        d_model=config.d_model,
        num_heads=config.num_heads,
        head_dim=config.head_dim,
        encoder_layers=config.encoder_layers,
        decoder_layers=config.decoder_layers,
    )


def special_ids_of(config: TransformerConfig) -> SpecialIds:
    """Returns a model's special token ids as the manifest has them."""
    return SpecialIds(pad=config.pad_id, unk=config.unk_id, bos=config.bos_id, eos=config.eos_id)


def _weights_hash(checkpoint: Checkpoint) -> str:
    digest = hashlib.sha256()
    for name, weight in sorted(checkpoint.weights.items()):
        digest.update(name.encode())
        digest.update(weight.contiguous().numpy().tobytes())
    return digest.hexdigest()
