"""A CTranslate2 model.bin as our network: its numbers and tensors.

Source of names and rules: CTranslate2, python/ctranslate2/specs/transformer_spec.py and src/layers.
"""

import math
from dataclasses import dataclass
from functools import partial

from export.imports.families.ctranslate2_vocabularies import FILE, Vocabularies
from export.imports.families.positions import tensor2tensor
from export.imports.formats.ctranslate2_bin import Variables
from export.imports.formats.tensors import Tensors
from export.imports.report import Report
from export.imports.settings import ForeignSettings
from export.imports.weights import MOST, Computed, Plan, Rows, Stack, stack
from model.config import TransformerConfig

_COMPUTED_POSITIONS = 512
_ACTIVATIONS = {0: "relu", 2: "silu", 3: "gelu", 4: "quick_gelu"}
_FLAGS = ("num_heads", "pre_norm", "activation", "scale_embeddings", "start_from_zero_embedding")
_HARMLESS = ("alignment_heads", "alignment_layer", "embeddings_merge")
_SCALE_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """What a model.bin says of the encoder, or of the decoder."""

    layers: int
    heads: int
    ffn: int
    is_pre_norm: bool
    is_scaled: bool
    activation: int
    has_final_norm: bool
    has_embedding_norm: bool


def read_flags(variables: Variables, report: Report) -> dict[str, float]:
    """Returns the numbers among the variables by name; one that is set and that nothing here does is a fault."""
    flags: dict[str, float] = {}
    for name, tensor in variables.tensors.items():
        if tensor.shape != () or name.endswith("_scale"):
            continue
        flags[name] = float(tensor.load())
        if not abs(flags[name]) <= MOST:
            report.fault(FILE, name, found=flags.pop(name), expected="a finite number")
            continue
        short = name.rpartition("/")[2]
        if flags[name] and short not in (*_FLAGS, *_HARMLESS):
            report.fault(FILE, name, found=flags[name], expected="0: nothing here computes that")
    return flags


def read_network(
    flags: dict[str, float], tensors: Tensors, vocabularies: Vocabularies, config: ForeignSettings, report: Report
) -> TransformerConfig | None:
    """Returns our network; None if there are faults."""
    encoder, decoder = (_read_side(side, flags, tensors, vocabularies.width, report) for side in ("encoder", "decoder"))
    for key in ("is_scaled", "activation", "has_final_norm", "has_embedding_norm"):
        if getattr(encoder, key) != getattr(decoder, key):
            report.fault(
                FILE, key.removeprefix("is_").removeprefix("has_"), found="other on each side", expected="equal"
            )
    epsilon = config.number("layer_norm_epsilon", 1e-5, least=1e-12, most=1e-2)
    config.expect("multi_query_attention", False)
    if report.faults:
        return None
    starts_from_zero = flags.get("decoder/start_from_zero_embedding")
    return TransformerConfig(
        vocab_size=vocabularies.num_rows,
        source_vocab_size=None if vocabularies.is_joint else vocabularies.num_rows,
        d_model=vocabularies.width,
        encoder_layers=encoder.layers,
        decoder_layers=decoder.layers,
        encoder_num_heads=encoder.heads,
        num_heads=decoder.heads,
        encoder_ffn_dim=encoder.ffn,
        ffn_dim=decoder.ffn,
        max_positions=_num_positions(tensors),
        encoder_norm="pre" if encoder.is_pre_norm else "post",
        norm="pre" if decoder.is_pre_norm else "post",
        final_norm=decoder.has_final_norm,
        embedding_norm=decoder.has_embedding_norm,
        layer_norm_eps=epsilon,
        activation=_ACTIVATIONS[decoder.activation],  # type: ignore[arg-type]  # one of ours
        scale_embedding=decoder.is_scaled,
        positions="table",
        tied_output=vocabularies.is_tied,
        output_bias=True,
        pad_id=vocabularies.num_rows - 1,
        unk_id=vocabularies.unk_id,
        bos_id=vocabularies.num_rows - 1 if starts_from_zero else vocabularies.start_id,
        eos_id=vocabularies.eos_id,
    )


def _read_side(side: str, flags: dict[str, float], tensors: Tensors, width: int, report: Report) -> _Side:
    heads = int(flags.get(f"{side}/num_heads", 0))
    if heads < 1 or width % (8 * heads):
        expected = f"a number of heads, whose width is a multiple of 8; the model's is {width}"
        report.fault(FILE, f"{side}/num_heads", found=heads, expected=expected, remedy="convert the original again")
    scale = flags.get(f"{side}/scale_embeddings", 1.0)
    if scale not in (0, 1) and abs(scale / math.sqrt(width) - 1) > _SCALE_TOLERANCE:
        report.fault(FILE, f"{side}/scale_embeddings", found=scale, expected=f"0, or the square root of {width}")
    activation = int(flags.get(f"{side}/activation", 0))
    if activation not in _ACTIVATIONS:
        report.fault(FILE, f"{side}/activation", found=activation, expected=f"one of {_ACTIVATIONS}")
    hidden = tensors.get(f"{side}/layer_0/ffn/linear_0/weight")
    layers = 0
    while f"{side}/layer_{layers}/self_attention/linear_0/weight" in tensors:
        layers += 1
    if not layers or hidden is None:
        report.fault(FILE, f"{side}/layer_0", found="missing", expected="a layer with attention and feed-forward")
    return _Side(
        layers=layers,
        heads=heads,
        ffn=hidden.shape[0] if hidden is not None and hidden.shape else 0,
        is_pre_norm=bool(flags.get(f"{side}/pre_norm", 1)),
        is_scaled=bool(scale),
        activation=activation,
        has_final_norm=f"{side}/layer_norm/gamma" in tensors,
        has_embedding_norm=f"{side}/layernorm_embedding/gamma" in tensors,
    )


def _num_positions(tensors: Tensors) -> int:
    tables = [tensors.get(f"{side}/position_encodings/encodings") for side in ("encoder", "decoder")]
    lengths = [table.shape[0] for table in tables if table is not None and len(table.shape) == 2]
    return min([*lengths, 2**13]) if lengths else _COMPUTED_POSITIONS


def plan_weights(network: TransformerConfig, tensors: Tensors, vocabularies: Vocabularies) -> Plan:
    """Returns which tensor each weight of ours is."""
    plan: Plan = {}
    for side, layers in (("encoder", network.encoder_layers), ("decoder", network.decoder_layers)):
        for i in range(layers):
            ours, theirs = f"{side}.{i}", f"{side}/layer_{i}"
            plan |= _linear(f"{ours}.self_attention.qkv", tensors, f"{theirs}/self_attention/linear_0")
            plan |= _linear(f"{ours}.self_attention.output", tensors, f"{theirs}/self_attention/linear_1")
            plan |= _norm(f"{ours}.self_norm", f"{theirs}/self_attention/layer_norm")
            if side == "decoder":
                queries, others = (f"{theirs}/attention/linear_{number}" for number in (0, 1))
                plan |= _linear(f"{ours}.cross_attention.qkv", tensors, queries, others, first=network.d_model)
                plan |= _linear(f"{ours}.cross_attention.output", tensors, f"{theirs}/attention/linear_2")
                plan |= _norm(f"{ours}.cross_norm", f"{theirs}/attention/layer_norm")
            plan |= _linear(f"{ours}.feed_forward.hidden", tensors, f"{theirs}/ffn/linear_0")
            plan |= _linear(f"{ours}.feed_forward.output", tensors, f"{theirs}/ffn/linear_1")
            plan |= _norm(f"{ours}.feed_forward_norm", f"{theirs}/ffn/layer_norm")
        if network.final_norm:
            plan |= _norm(f"{side}_norm", f"{side}/layer_norm")
        if network.embedding_norm:
            plan |= _norm(f"{side}_embedding_norm", f"{side}/layernorm_embedding")
        plan[f"{side}_positions"] = _positions(network, f"{side}/position_encodings/encodings", tensors)
    return plan | _embeddings(network, tensors, vocabularies)


def _embeddings(network: TransformerConfig, tensors: Tensors, vocabularies: Vocabularies) -> Plan:
    """Returns the embeddings and the output: each with rows of zeros behind, the last of which pads."""
    source, target = (network.vocab_size - n for n in (vocabularies.num_source, vocabularies.num_target))
    tied = ["decoder/projection/weight"] if network.tied_output else []
    tied += [] if network.source_vocab_size else [vocabularies.source_embedding]
    names = tuple(tied)
    plan: Plan = {"embedding.tokens.weight": Stack((Rows("decoder/embeddings/weight"), Rows(None, target)), same=names)}
    if network.source_vocab_size:
        plan["source_embedding.tokens.weight"] = Stack((Rows(vocabularies.source_embedding), Rows(None, source)))
    if not network.tied_output:
        plan["output.weight"] = Stack((Rows("decoder/projection/weight"), Rows(None, target)))
    bias = "decoder/projection/bias"
    plan["output_bias"] = Stack((Rows(bias if bias in tensors else None), Rows(None, target)))
    return plan


def _positions(network: TransformerConfig, name: str, tensors: Tensors) -> Stack | Computed:
    if name not in tensors:
        return Computed(partial(tensor2tensor, network.max_positions, network.d_model, 1))  # it counts from 1 there
    rows = tensors[name].shape[0]
    return Stack((Rows(name, rest=rows - network.max_positions),))


def _linear(ours: str, tensors: Tensors, *names: str, first: int | None = None) -> Plan:
    """Returns a linear map of several, the first of which has that many rows; biases may be missing."""
    plan: Plan = {}
    for part in ("weight", "bias"):
        full = [f"{name}/{part}" for name in names]
        counts = [first, None] if len(names) > 1 else [None]
        present = [name if part == "weight" or name in tensors else None for name in full]
        plan[f"{ours}.{part}"] = Stack(tuple(Rows(name, count) for name, count in zip(present, counts, strict=True)))
    return plan


def _norm(ours: str, theirs: str) -> Plan:
    return {f"{ours}.weight": stack(f"{theirs}/gamma"), f"{ours}.bias": stack(f"{theirs}/beta")}
