"""A Marian model's own settings and tensors as our network's.

Source of names and rules: marian-dev, src/models/transformer.h and src/rnn/cells.h.
"""

from functools import partial
from typing import Any

from export.imports.families.marian_files import EOS, UNK
from export.imports.families.positions import tensor2tensor
from export.imports.report import Report
from export.imports.settings import ForeignSettings
from export.imports.weights import Computed, Plan, Rows, Stack, stack
from model.config import TransformerConfig

_MAX_POSITIONS = 512  # computed: sentences are split long before
_ACTIVATIONS = {"relu": "relu", "swish": "silu", "gelu": "quick_gelu"}
_HARMLESS_WORDS = """
    bert-train-type-embeddings bert-type-vocab-size dec-cell-base-depth dec-cell-high-depth dim-rnn enc-cell
    enc-cell-depth enc-type transformer-aan-activation transformer-aan-depth transformer-aan-nogate
    transformer-dim-aan transformer-guided-alignment-layer ulr-dim-emb ulr-trainable-transformation version
    bert-mask-symbol bert-sep-symbol bert-class-symbol bert-masking-fraction max-length factors-combine
    factors-dim-emb transformer-depth-scaling char-conv-filters-num char-conv-filters-widths char-highway
    char-stride original-type
"""
HARMLESS = frozenset(_HARMLESS_WORDS.split())
_OFF: dict[str, Any] = {
    "ulr": False,
    "skip": False,
    "right-left": False,
    "layer-normalization": False,
    "transformer-no-projection": False,
    "transformer-pool": False,
    "transformer-rnn-projection": False,
    "transformer-no-bias": False,
    "transformer-no-affine": False,
    "transformer-tied-layers": [],
    "lemma-dim-emb": 0,
    "lemma-dependency": "",
    "transformer-ffn-depth": 2,
    "input-types": [],
}


def read_network(settings: ForeignSettings, sizes: list[int], report: Report) -> TransformerConfig | None:
    """Returns our network; None if there are faults.

    A translation starts with the zero vector: one more row of the embedding, which is never generated, and pads too.

    Args:
        settings: what the model itself says.
        sizes: of the vocabularies of source and target.
        report: gets the faults.
    """
    settings.expect("type", "transformer", remedy="only Transformers are read")
    for key, off in _OFF.items():
        settings.expect(key, off)
    mixer = _read_mixer(settings)
    activation = settings.text("transformer-ffn-activation", "swish")
    if activation not in _ACTIVATIONS:
        settings.fault("transformer-ffn-activation", " or ".join(_ACTIVATIONS))
    norms = _read_norms(settings)
    widths = _read_sizes(settings)
    is_joint = _is_joint(settings)
    if is_joint and sizes[0] != sizes[1]:
        settings.fault("dim-vocabs", "equal sizes, as embeddings are tied")
    ties = [settings.flag(key, False) for key in ("tied-embeddings-all", "tied-embeddings")]
    if report.faults:
        return None
    rows = max(sizes) + 1
    return TransformerConfig(
        vocab_size=rows,
        source_vocab_size=None if is_joint else rows,
        max_positions=_MAX_POSITIONS,
        layer_norm_eps=1e-6,
        activation=_ACTIVATIONS[activation],  # type: ignore[arg-type]  # one of ours
        positions="table",
        scale_embedding=not _has_learned_positions(settings),
        tied_output=any(ties),
        output_bias=True,
        decoder_mixer=mixer,  # type: ignore[arg-type]  # one of ours
        pad_id=rows - 1,
        unk_id=UNK,
        bos_id=rows - 1,
        eos_id=EOS,
        **norms,
        **widths,
    )


def plan_weights(config: TransformerConfig, settings: ForeignSettings, sizes: list[int]) -> Plan:
    """Returns which tensor each weight of ours is."""
    plan: Plan = {}
    for i in range(config.encoder_layers):
        plan |= _layer(config, f"encoder.{i}", f"encoder_l{i + 1}")
    for i in range(config.decoder_layers):
        plan |= _layer(config, f"decoder.{i}", f"decoder_l{i + 1}")
    for side in ("encoder", "decoder"):
        if config.final_norm:
            plan |= _norm(f"{side}_norm", f"{side}_top")
        if config.embedding_norm:
            plan |= _norm(f"{side}_embedding_norm", f"{side}_emb", "_pre")
        plan[f"{side}_positions"] = _positions(config, settings)
    return plan | _embeddings(config, settings, sizes)


def _layer(config: TransformerConfig, ours: str, theirs: str) -> Plan:
    suffix = "_pre" if config.norm == "pre" else ""
    if ours.startswith("decoder") and config.decoder_mixer == "ssru":
        # The value has no bias of its own.
        plan: Plan = {
            f"{ours}.ssru.projection.weight": _matrix(f"{theirs}_rnn_Wf", f"{theirs}_rnn_W"),
            f"{ours}.ssru.projection.bias": _matrix(f"{theirs}_rnn_bf", None),
        }
        norm = f"{theirs}_rnn" if suffix else f"{theirs}_rnn_ffn"
        plan |= _norm(f"{ours}.self_norm", norm, suffix)
    else:
        plan = _attention(f"{ours}.self_attention", f"{theirs}_self")
        plan |= _norm(f"{ours}.self_norm", f"{theirs}_self_Wo", suffix)
    if ours.startswith("decoder"):
        plan |= _attention(f"{ours}.cross_attention", f"{theirs}_context")
        plan |= _norm(f"{ours}.cross_norm", f"{theirs}_context_Wo", suffix)
    for name, number in (("hidden", 1), ("output", 2)):
        plan[f"{ours}.feed_forward.{name}.weight"] = _matrix(f"{theirs}_ffn_W{number}")
        plan[f"{ours}.feed_forward.{name}.bias"] = _matrix(f"{theirs}_ffn_b{number}")
    return plan | _norm(f"{ours}.feed_forward_norm", f"{theirs}_ffn_ffn", suffix)


def _embeddings(config: TransformerConfig, settings: ForeignSettings, sizes: list[int]) -> Plan:
    zeros = [config.vocab_size - size for size in sizes]
    is_joint = _is_joint(settings)
    plan: Plan = {
        "embedding.tokens.weight": Stack((Rows("Wemb" if is_joint else "decoder_Wemb"), Rows(None, zeros[1])))
    }
    if not is_joint:
        plan["source_embedding.tokens.weight"] = Stack((Rows("encoder_Wemb"), Rows(None, zeros[0])))
    if not config.tied_output:
        # Stored [M, V]: its columns are tokens. The rows behind them are taken as they come, since they are suppressed.
        plan["output.weight"] = Stack((Rows("decoder_ff_logit_out_W"), Rows(None, zeros[1])), is_transposed=True)
    bias = "decoder_ff_logit_out_b"
    has_bias = not settings.flag("output-omit-bias", False)
    plan["output_bias"] = Stack((Rows(bias if has_bias else None), Rows(None, zeros[1])))
    return plan


def _positions(config: TransformerConfig, settings: ForeignSettings) -> Stack | Computed:
    if _has_learned_positions(settings):
        return stack("Wpos")
    return Computed(partial(tensor2tensor, config.max_positions, config.d_model))


def _attention(ours: str, theirs: str) -> Plan:
    return {
        f"{ours}.qkv.weight": _matrix(*(f"{theirs}_W{part}" for part in "qkv")),
        f"{ours}.qkv.bias": _matrix(*(f"{theirs}_b{part}" for part in "qkv")),
        f"{ours}.output.weight": _matrix(f"{theirs}_Wo"),
        f"{ours}.output.bias": _matrix(f"{theirs}_bo"),
    }


def _norm(ours: str, theirs: str, suffix: str = "") -> Plan:
    return {
        f"{ours}.weight": stack(f"{theirs}_ln_scale{suffix}"),
        f"{ours}.bias": stack(f"{theirs}_ln_bias{suffix}"),
    }


def _matrix(*names: str | None) -> Stack:
    """Returns matrices, which Marian stores [in, out]."""
    return stack(*names, is_transposed=True)


def _read_mixer(settings: ForeignSettings) -> str:
    mixer, cell = settings.text("transformer-decoder-autoreg", "self-attention"), settings.text("dec-cell", "gru")
    if mixer == "self-attention":
        return "attention"
    if (mixer, cell) != ("rnn", "ssru"):
        settings.fault("transformer-decoder-autoreg", "self-attention, or rnn with dec-cell ssru")
    return "ssru"


def _read_norms(settings: ForeignSettings) -> dict[str, Any]:
    before, after, top, embedded = (
        settings.text(f"transformer-{key}").replace("d", "")  # dropout
        for key in ("preprocess", "postprocess", "postprocess-top", "postprocess-emb")
    )
    if (before, after) not in (("", "an"), ("n", "a")) or top not in ("", "n") or embedded not in ("", "n"):
        settings.fault("transformer-postprocess", "norms after sub-layers (an), or before (n) and none after (a)")
    return {"norm": "pre" if before else "post", "final_norm": bool(top), "embedding_norm": bool(embedded)}


def _read_sizes(settings: ForeignSettings) -> dict[str, Any]:
    width = settings.whole("dim-emb", least=8, most=2**14)
    heads = settings.whole("transformer-heads", 8, least=1, most=2**8)
    if width % (8 * heads):
        settings.fault("transformer-heads", f"a width that is a multiple of 8; dim-emb is {width}")
    ffn = settings.whole("transformer-dim-ffn", 2048, least=1, most=2**16)
    settings.expect("transformer-decoder-ffn-depth", 0, 2)
    return {
        "d_model": width,
        "num_heads": heads,
        "encoder_ffn_dim": ffn,
        "ffn_dim": settings.whole("transformer-decoder-dim-ffn", 0, most=2**16) or ffn,
        "encoder_layers": settings.whole("enc-depth", 6, least=1, most=2**8),
        "decoder_layers": settings.whole("dec-depth", 6, least=1, most=2**8),
    }


def _is_joint(settings: ForeignSettings) -> bool:
    tied = [settings.flag(key, False) for key in ("tied-embeddings-all", "tied-embeddings-src")]
    return any(tied)


def _has_learned_positions(settings: ForeignSettings) -> bool:
    old = settings.flag("transformer-train-position-embeddings", False)
    return settings.flag("transformer-train-positions", old)
