"""What a model is: the shape of its network, checked once, every fault named."""

import json
from dataclasses import dataclass
from typing import Literal, get_args

Norm = Literal["post", "pre"]
Activation = Literal["relu", "silu", "gelu", "quick_gelu"]
Positions = Literal["sinusoidal", "learned", "table"]
Mixer = Literal["attention", "ssru", "retention"]
FamilyName = Literal["transformer", "one_pass", "recurrent"]
AttentionScore = Literal["none", "dot", "general", "additive"]

# No network has as much. Far larger numbers would keep a program at work for ever before the memory is full.
_MAX_SIZE = 1 << 20  # of vocabularies, widths, heads and positions
_MAX_LAYERS = 1 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class StackConfig:
    """Shape of the encoder's layers, or of the decoder's.

    Attributes:
        num_heads, head_dim: attention heads, and width D of each.
        ffn_dim: width of the hidden layer of the position-wise feed-forward network.
        is_pre_norm: normalise before each sub-layer, not after the residual sum.
        has_final_norm: normalise what the last layer returns.
    """

    num_heads: int
    head_dim: int
    ffn_dim: int
    is_pre_norm: bool
    has_final_norm: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerConfig:
    """Shape of a Transformer ("Attention Is All You Need", arXiv:1706.03762), and of what others have made of it.

    Attributes:
        family: "transformer"; "one_pass": all words at once (see `model.one_pass`); or "recurrent" (see `model.rnn`). A
            recurrent network ignores `encoder_num_heads`, `ffn_dim`, `encoder_ffn_dim`, `inner_dropout`, `norm`,
            `encoder_norm`, `final_norm`, `embedding_norm`, `layer_norm_eps`, `activation` and `positions`.
        vocab_size: entries of the joint vocabulary, or of the target's if there is a `source_vocab_size`.
        source_vocab_size: entries of the source's vocabulary, whose embedding is then one of its own.
        d_model: width M of every layer's input and output.
        num_heads: of the decoder, and of the encoder unless `encoder_num_heads` says otherwise; 1 if recurrent.
        encoder_num_heads: of the encoder; by default `num_heads`.
        head_width: of each head, a multiple of 8; by default d_model / heads. A recurrent network's states have it.
        encoder_layers: of the encoder.
        decoder_layers: of the decoder, into which serving time goes; shaped as the encoder's in a one-pass network.
        ffn_dim: width of the hidden layer of the position-wise feed-forward network.
        encoder_ffn_dim: the same in the encoder; by default `ffn_dim`.
        dropout: probability in [0, 1) on embeddings and on what a sub-layer adds to the residual sum.
        inner_dropout: probability in [0, 1) on attention weights and hidden activations; by default `dropout`.
        max_positions: longest sequence in tokens, source or target, that the position tables cover. A translation in
            one pass may have twice as many.
        norm: "post" normalises after the residual sum (the paper), "pre" before each sub-layer.
        encoder_norm: the same in the encoder; by default `norm`.
        final_norm: normalise what the last layer returns, on both sides; by default on those that are pre-norm.
        embedding_norm: normalise the sum of embedding and position.
        layer_norm_eps: added to each variance.
        activation: within the feed-forward network; "quick_gelu" is x * sigmoid(1.702 x).
        scale_embedding: multiply embeddings by sqrt(M).
        tied_output: the output projection is the target's embedding.
        output_bias: the output projection has a bias; -inf there suppresses a token.
        positions: "sinusoidal" (the paper), "learned", or "table": one for each side, stored with the weights.
        decoder_mixer: what brings earlier target tokens to a position: "attention", "ssru" (see `model.ssru`), or
            "retention" (see `model.retention`).
        attention_score: how a recurrent network scores source positions: "dot" by the product of its state with theirs,
            "general" with theirs after a matrix, "additive" by a small network; "none" is a network without attention.
        self_window: last target tokens that a position of the decoder attends to, itself included; 0 for all.
        pad_id: fills sources, none of which has it.
        unk_id: stands for what the vocabulary does not have.
        bos_id: what the decoder starts with; the blank of a one-pass network, whose translations have no beginning.
        eos_id: ends sources and translations.
    """

    family: FamilyName = "transformer"
    vocab_size: int
    source_vocab_size: int | None = None
    d_model: int = 512
    num_heads: int = 8
    encoder_num_heads: int | None = None
    head_width: int | None = None
    encoder_layers: int = 6
    decoder_layers: int = 6
    ffn_dim: int = 2048
    encoder_ffn_dim: int | None = None
    dropout: float = 0.1
    inner_dropout: float | None = None
    max_positions: int = 512
    norm: Norm = "post"
    encoder_norm: Norm | None = None
    final_norm: bool | None = None
    embedding_norm: bool = False
    layer_norm_eps: float = 1e-5
    activation: Activation = "relu"
    scale_embedding: bool = True
    tied_output: bool = True
    output_bias: bool = False
    positions: Positions = "sinusoidal"
    decoder_mixer: Mixer = "attention"
    attention_score: AttentionScore = "none"
    self_window: int = 0
    pad_id: int = 0
    unk_id: int = 1
    bos_id: int = 2
    eos_id: int = 3

    def __post_init__(self) -> None:
        faults = self._size_faults() or [*self._head_faults(), *self._id_faults()]
        for name, probability in (("dropout", self.dropout), ("inner_dropout", self.inner_dropout)):
            if probability is not None and not 0 <= probability < 1:
                faults.append(f"{name} must be in [0, 1), not {probability}")
        kind = self.decoder_mixer if self.family == "transformer" else self.family
        most = self.max_positions if kind == "attention" else 0
        if type(self.self_window) is not int or not 0 <= self.self_window <= most:
            faults.append(f"self_window must be in 0..{most} with {kind}, not {self.self_window}")
        if not 0 < self.layer_norm_eps <= 1:
            faults.append(f"layer_norm_eps must be over 0 and at most 1, not {self.layer_norm_eps}")
        faults += self._family_faults()
        kinds = {
            "family": FamilyName,
            "norm": Norm,
            "activation": Activation,
            "positions": Positions,
            "decoder_mixer": Mixer,
            "attention_score": AttentionScore,
        }
        choices = {name: get_args(kind) for name, kind in kinds.items()}
        choices["encoder_norm"] = (*choices["norm"], None)
        faults += [f"{n} must be one of {c}, not {v!r}" for n, c in choices.items() if (v := getattr(self, n)) not in c]
        if faults:
            raise ValueError("; ".join(faults))

    @property
    def activation_dropout(self) -> float:
        """Probability of dropout within a sub-layer."""
        return self.dropout if self.inner_dropout is None else self.inner_dropout

    @property
    def head_dim(self) -> int:
        """Width D of one attention head of the decoder."""
        return self.decoder.head_dim

    @property
    def cross_layers(self) -> int:
        """Layers of the decoder that read the source: of a recurrent one, attention once, behind all of them."""
        return 1 if self.family == "recurrent" else self.decoder_layers

    @property
    def encoder(self) -> StackConfig:
        """Shape of the encoder's layers."""
        return self._stack(
            self.encoder_num_heads or self.num_heads,
            self.encoder_ffn_dim or self.ffn_dim,
            self.encoder_norm or self.norm,
        )

    @property
    def decoder(self) -> StackConfig:
        """Shape of the decoder's layers."""
        return self._stack(self.num_heads, self.ffn_dim, self.norm)

    def _stack(self, num_heads: int, ffn_dim: int, norm: str) -> StackConfig:
        is_pre_norm = norm == "pre"
        return StackConfig(
            num_heads=num_heads,
            head_dim=self.head_width or self.d_model // num_heads,
            ffn_dim=ffn_dim,
            is_pre_norm=is_pre_norm,
            has_final_norm=is_pre_norm if self.final_norm is None else self.final_norm,
        )

    def _size_faults(self) -> list[str]:
        sizes = ("vocab_size", "d_model", "num_heads", "encoder_layers", "decoder_layers", "ffn_dim", "max_positions")
        optional = ("source_vocab_size", "encoder_num_heads", "head_width", "encoder_ffn_dim")
        given = [name for name in (*sizes, *optional) if getattr(self, name) is not None]
        most = {name: _MAX_LAYERS if name.endswith("layers") else _MAX_SIZE for name in given}
        return [
            f"{name} must be in 1..{most[name]}, not {getattr(self, name)}"
            for name in given
            if type(getattr(self, name)) is not int or not 1 <= getattr(self, name) <= most[name]
        ]

    def _head_faults(self) -> list[str]:
        if self.head_width is not None:
            return [f"head_width must be a multiple of 8, not {self.head_width}"] if self.head_width % 8 else []
        heads = {"num_heads": self.num_heads, "encoder_num_heads": self.encoder_num_heads}
        return [
            f"d_model / {name} must be a multiple of 8, not {self.d_model} / {number}"
            for name, number in heads.items()
            if number and self.d_model % (8 * number)
        ]

    def _family_faults(self) -> list[str]:
        """Says which fields are of another family."""
        fixed: dict[str, object] = {} if self.family == "transformer" else {"decoder_mixer": "attention"}
        fixed |= {"num_heads": 1} if self.family == "recurrent" else {"attention_score": "none"}
        return [
            f'{name} must be {json.dumps(value)} where family is "{self.family}", not {json.dumps(given)}'
            for name, value in fixed.items()
            if (given := getattr(self, name)) != value
        ]

    def _id_faults(self) -> list[str]:
        limits = [("vocab_size", name) for name in ("pad_id", "unk_id", "bos_id", "eos_id")]
        if self.source_vocab_size is not None:
            limits += [("source_vocab_size", name) for name in ("pad_id", "eos_id")]
        return [
            f"{name} must be in 0..{getattr(self, limit) - 1}, below {limit}, not {getattr(self, name)}"
            for limit, name in limits
            if type(getattr(self, name)) is not int or not 0 <= getattr(self, name) < getattr(self, limit)
        ]
