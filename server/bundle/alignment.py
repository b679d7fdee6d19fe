"""What a bundle says of the alignment of its translations: which heads of cross-attention show it, and how well."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Head:
    """A head of the decoder's cross-attention.

    Attributes:
        layer: of the decoder.
        head: of the layer.
        is_shifted: whether it looks at a token's source in the step that consumes the token, not in the one that
            predicts it (Chen et al., "Accurate Word Alignment Induction from Neural Machine Translation", EMNLP 2020).
    """

    layer: int
    head: int
    is_shifted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """How translations are aligned.

    Attributes:
        heads: whose weights are averaged, at least one.
        error_rate: of the links that these heads find in the model's own translations, against those of a lexical
            model in both directions; 0 is perfect.
        num_sentences: that this was measured on.
    """

    heads: tuple[Head, ...]
    error_rate: float
    num_sentences: int

    @property
    def last_layer(self) -> int:
        """The last layer that has one of the heads."""
        return max(head.layer for head in self.heads)
