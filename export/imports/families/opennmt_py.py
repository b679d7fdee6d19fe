"""OpenNMT-py's checkpoints: Transformers with norms before each sub-layer, positions and vocabularies in the file.

Source of names and rules: OpenNMT-py 1.2, 2.3 and 3.5, onmt/model_builder.py, encoders, decoders and modules.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from export.imports.families.opennmt_py_files import Checkpoint, read_checkpoint
from export.imports.families.opennmt_py_options import HARMLESS
from export.imports.families.pieces import read_models
from export.imports.foreign import ForeignModel
from export.imports.formats.tensors import Tensors
from export.imports.languages import GivenLanguages, choose, language_pairs, pair_in_name
from export.imports.licences import read_licence
from export.imports.report import Report, name_of
from export.imports.settings import ForeignSettings
from export.imports.weights import Plan, Rows, Stack, stack
from model.config import TransformerConfig
from server.bundle.languages import LanguagePair
from server.bundle.manifest import SearchDefaults

_MOST_POSITIONS = 1024  # of the 5,000 in every file: more than any sentence has
_ACTIVATIONS = {"relu": "relu", "gelu": "gelu"}
# Its translator stops when the best of a beam has ended, so that its own length penalties hardly matter.
_SEARCH = SearchDefaults(beam_size=5, length_penalty=0.0)
_EMBEDDING = "{}.embeddings.make_embedding.emb_luts.0.weight"
_POSITIONS = "{}.embeddings.make_embedding.pe.pe"
_OUTPUT = "generator.weight"
# What changes the network, and the values that leave it as it is here.
_ONLY: dict[str, tuple[Any, ...]] = {
    "encoder_type": ("transformer",),
    "decoder_type": ("transformer",),
    "model_type": ("text",),
    "model_task": ("seq2seq",),
    "position_encoding": (True,),
    "max_relative_positions": (0,),
    "relative_positions_buckets": (0,),
    "self_attn_type": ("scaled-dot", "scaled-dot-flash"),
    "layer_norm": ("standard",),
    "multiquery": (False,),
    "parallel_residual": (False,),
    "shared_layer_norm": (False,),
    "sliding_window": (0,),
    "num_experts": (0,),
    "copy_attn": (False,),
    "coverage_attn": (False,),
    "generator_function": ("softmax",),
    "aan_useffn": (False,),
    "n_src_feats": (0,),
    "src_feats": ({}, []),
    "lora_layers": ([],),
    "lora_embedding": (False,),
    "quant_layers": ([],),
}
# Of the steps ahead of training, those that change no sentence that is translated.
_TRANSFORMS = ("sentencepiece", "filtertoolong", "clean", "switchout", "tokendrop", "tokenmask")


@dataclass(frozen=True, slots=True)
class _Ids:
    pad: int
    unk: int
    start: int
    eos: int
    num_extra: int  # rows behind both embeddings, to pad with


def is_here(directory: Path) -> bool:
    """Whether a directory has a checkpoint of torch."""
    return any(directory.glob("*.pt"))


def read(directory: Path, given: GivenLanguages, report: Report) -> ForeignModel | None:
    """Reads a directory; returns None where faults leave nothing to go on with."""
    checkpoint = read_checkpoint(directory, report)
    if checkpoint is None:
        return None
    options = ForeignSettings(f"{checkpoint.file}: opt", checkpoint.options, report)
    sides = (checkpoint.source, checkpoint.target)
    ids = _read_ids(checkpoint, report)
    tokenizer = read_models(directory, sides, (), report, _named_models(options))
    network = _read_network(options, checkpoint, ids, report)
    _check_transforms(options, report)
    options.finish(HARMLESS)
    if network is None:
        return None
    extra = () if not ids.num_extra else (network.vocab_size - 1,)
    return ForeignModel(
        family="OpenNMT-py",
        reference="OpenNMT-py",
        name=directory.resolve().name,
        config=network,
        plan=_plan(network, checkpoint.tensors, ids.num_extra),
        tensors=checkpoint.tensors,
        tokenizer=tokenizer,
        language_pairs=_read_pairs(directory, given, report),
        source_eos=False,
        suppressed=extra,
        search=_SEARCH,
        max_source_tokens=network.max_positions,
        max_target_tokens=network.max_positions,
        origin={"licence": read_licence(directory, report)},
    )


def _read_ids(checkpoint: Checkpoint, report: Report) -> _Ids:
    """Returns the ids of the tokens with a meaning: each is a piece of its vocabulary by its name."""
    found = {}
    wanted = [("source", "<unk>"), *(("target", name) for name in ("<blank>", "</s>", checkpoint.start_token))]
    for side, name in wanted:
        pieces = checkpoint.source if side == "source" else checkpoint.target
        if name not in pieces:
            report.fault(f"{checkpoint.file}: vocab", side, found=f"no {name}", expected=f"{name} among its pieces")
        found[name] = pieces.index(name) if name in pieces else 0
    source_pad = checkpoint.source.index("<blank>") if "<blank>" in checkpoint.source else -1
    has_pad = source_pad == found["<blank>"]
    return _Ids(
        pad=source_pad if has_pad else max(len(checkpoint.source), len(checkpoint.target)),
        unk=found["<unk>"],
        start=found[checkpoint.start_token],
        eos=found["</s>"],
        num_extra=0 if has_pad else 1,
    )


def _read_network(
    options: ForeignSettings, checkpoint: Checkpoint, ids: _Ids, report: Report
) -> TransformerConfig | None:
    for key, accepted in _ONLY.items():
        options.expect(key, *accepted, remedy="nothing here computes that")
    for key in ("encoder_type", "decoder_type", "position_encoding"):  # whose defaults are others
        if key not in options:
            options.fault(key, str(_ONLY[key][0]))
    heads = options.whole("heads", 8, least=1, most=2**8)
    options.expect("num_kv", 0, heads, remedy="nothing here computes that")
    layers = {key: options.whole(key, 2, least=1, most=2**8) for key in ("enc_layers", "dec_layers")}
    activation = options.text("pos_ffn_activation_fn", "relu")
    if activation not in _ACTIVATIONS:
        options.fault("pos_ffn_activation_fn", " or ".join(_ACTIVATIONS), "others are gated, or unknown here")
    shapes = {name: _shape(checkpoint.tensors, name) for name in _sizes()}
    missing = [name for name, shape in shapes.items() if len([n for n in shape if n != 1]) != 2]
    for name in missing:
        report.fault(checkpoint.file, name, found=f"shape {list(shapes[name])}", expected="a matrix")
    is_joint = options.flag("share_embeddings", False) and checkpoint.source == checkpoint.target
    width = shapes[_EMBEDDING.format("decoder")][-1] if not missing else 8 * heads
    if width % (8 * heads):
        options.fault("heads", f"a width / heads that is a multiple of 8; the model's width is {width}")
    if report.faults:
        return None
    longest = max(len(checkpoint.source), len(checkpoint.target)) if ids.num_extra else 0
    return TransformerConfig(
        vocab_size=longest + 1 if longest else len(checkpoint.target),
        source_vocab_size=None if is_joint else longest + 1 if longest else len(checkpoint.source),
        d_model=width,
        encoder_layers=layers["enc_layers"],
        decoder_layers=layers["dec_layers"],
        encoder_num_heads=heads,
        num_heads=heads,
        encoder_ffn_dim=shapes["encoder.transformer.0.feed_forward.w_1.weight"][0],
        ffn_dim=shapes["decoder.transformer_layers.0.feed_forward.w_1.weight"][0],
        max_positions=min(_MOST_POSITIONS, *(shapes[_POSITIONS.format(side)][0] for side in ("encoder", "decoder"))),
        norm="pre",
        layer_norm_eps=options.number("norm_eps", 1e-6, least=1e-12, most=1e-2),
        activation=_ACTIVATIONS[activation],  # type: ignore[arg-type]  # one of ours
        scale_embedding=True,
        positions="table",
        tied_output=options.flag("share_decoder_embeddings", False),
        output_bias=True,
        pad_id=ids.pad,
        unk_id=ids.unk,
        bos_id=ids.start,
        eos_id=ids.eos,
    )


def _sizes() -> Iterator[str]:
    for side in ("encoder", "decoder"):
        yield _EMBEDDING.format(side)
        yield _POSITIONS.format(side)
    yield "encoder.transformer.0.feed_forward.w_1.weight"
    yield "decoder.transformer_layers.0.feed_forward.w_1.weight"


def _shape(tensors: Tensors, name: str) -> tuple[int, ...]:
    return tensors[name].shape if name in tensors else ()


def _check_transforms(options: ForeignSettings, report: Report) -> None:
    """What cut the sentences of training must be what cuts them here; older checkpoints do not say."""
    found = options.get("transforms", [])
    names = found if isinstance(found, list) else [found]
    for name in names:
        if name not in _TRANSFORMS:
            remedy = "sentencepiece is read; if it changes no sentence that is translated, pass --allow transforms"
            report.unknown(options.file, "transforms", name_of(name), remedy)


def _named_models(options: ForeignSettings) -> list[tuple[str, str]]:
    names = [options.get(f"{side}_subword_model", "") for side in ("src", "tgt")]
    source, target = (PurePosixPath(name).name if isinstance(name, str) else "" for name in names)
    return [(source, target or source)] if source else []


def _read_pairs(directory: Path, given: GivenLanguages, report: Report) -> tuple[LanguagePair, ...]:
    named = pair_in_name(directory)
    sources = choose("source", given.source, named[:1] if named else (), directory.resolve().name, report)
    targets = choose("target", given.target, named[1:] if named else (), directory.resolve().name, report)
    return language_pairs(sources, targets)


def _plan(network: TransformerConfig, tensors: Tensors, num_extra: int) -> Plan:
    plan: Plan = {}
    sides = (
        ("encoder", "encoder.transformer", network.encoder_layers, {"self": ("self_attn", "layer_norm")}),
        (
            "decoder",
            "decoder.transformer_layers",
            network.decoder_layers,
            {"self": ("self_attn", "layer_norm_1"), "cross": ("context_attn", "layer_norm_2")},
        ),
    )
    for side, theirs, num_layers, attentions in sides:
        for ours, name in ((f"{side}.{i}", f"{theirs}.{i}") for i in range(num_layers)):
            for kind, (attention, norm) in attentions.items():
                parts = [f"{name}.{attention}.linear_{part}" for part in ("query", "keys", "values")]
                plan |= _linear(f"{ours}.{kind}_attention.qkv", tensors, *parts)
                plan |= _linear(f"{ours}.{kind}_attention.output", tensors, f"{name}.{attention}.final_linear")
                plan |= _norm(f"{ours}.{kind}_norm", f"{name}.{norm}")
            plan |= _linear(f"{ours}.feed_forward.hidden", tensors, f"{name}.feed_forward.w_1")
            plan |= _linear(f"{ours}.feed_forward.output", tensors, f"{name}.feed_forward.w_2")
            plan |= _norm(f"{ours}.feed_forward_norm", f"{name}.feed_forward.layer_norm")
        plan |= _norm(f"{side}_norm", f"{side}.layer_norm")
        rows = _shape(tensors, _POSITIONS.format(side))[0]
        plan[f"{side}_positions"] = Stack((Rows(_POSITIONS.format(side), rest=rows - network.max_positions),))
    return plan | _plan_vocabularies(network, tensors, num_extra)


def _plan_vocabularies(network: TransformerConfig, tensors: Tensors, num_extra: int) -> Plan:
    """Returns the embeddings and the output; with a row to pad with, all have rows of zeros at their ends."""
    source, target = (_EMBEDDING.format(side) for side in ("encoder", "decoder"))
    num_target = network.vocab_size - _shape(tensors, target)[0] if num_extra else 0
    num_source = (network.source_vocab_size or 0) - _shape(tensors, source)[0] if num_extra else 0
    tied = [_OUTPUT] if network.tied_output else []
    tied += [source] if network.source_vocab_size is None else []
    plan: Plan = {"embedding.tokens.weight": _padded(target, num_target, same=tuple(tied))}
    if network.source_vocab_size is not None:
        plan["source_embedding.tokens.weight"] = _padded(source, num_source)
    if not network.tied_output:
        plan["output.weight"] = _padded(_OUTPUT, num_target)
    return plan | {"output_bias": _padded("generator.bias", num_target)}


def _padded(name: str, num_rows: int, same: tuple[str, ...] = ()) -> Stack:
    return Stack((Rows(name), Rows(None, num_rows)) if num_rows else (Rows(name),), same=same)


def _linear(ours: str, tensors: Tensors, *names: str) -> Plan:
    """Returns a linear map of several, one after the other; biases may be missing."""
    biases = (f"{name}.bias" if f"{name}.bias" in tensors else None for name in names)
    return {f"{ours}.weight": stack(*(f"{name}.weight" for name in names)), f"{ours}.bias": stack(*biases)}


def _norm(ours: str, theirs: str) -> Plan:
    return {f"{ours}.{part}": stack(f"{theirs}.{part}") for part in ("weight", "bias")}
