"""What all families of networks share: embeddings of tokens, and a projection of what a network computes to scores."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from model.config import TransformerConfig
from model.dropout import Dropout


class TokenEmbedding(nn.Module):
    """Token embedding, times sqrt(M) unless the config says otherwise (section 3.4 of arXiv:1706.03762)."""

    def __init__(self, config: TransformerConfig, vocab_size: int) -> None:
        super().__init__()
        self.scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0
        self.tokens = nn.Embedding(vocab_size, config.d_model, padding_idx=config.pad_id)
        self.dropout = Dropout(config.dropout)

    def forward(self, ids: Tensor) -> Tensor:
        """Maps int64 ids [B, T] to [B, T, M]."""
        result: Tensor = self.dropout(self.tokens(ids) * self.scale)
        return result

    def initialise(self) -> None:
        """Draws the weights; those of padding are zero."""
        nn.init.normal_(self.tokens.weight, std=self.tokens.embedding_dim**-0.5)
        with torch.no_grad():
            self.tokens.weight[self.tokens.padding_idx].zero_()


class Network(nn.Module):
    """The embeddings and the output projection, which share one matrix unless the config says otherwise.

    Args:
        config: of the network.
        embed: makes an embedding of so many tokens.
    """

    embedding: TokenEmbedding
    source_embedding: TokenEmbedding | None
    output_bias: Tensor | None

    def __init__(
        self,
        config: TransformerConfig,
        embed: Callable[[TransformerConfig, int], TokenEmbedding] = TokenEmbedding,
    ) -> None:
        super().__init__()
        self.config = config
        self.embedding = embed(config, config.vocab_size)
        size = config.source_vocab_size
        self.source_embedding = None if size is None else embed(config, size)
        if not config.tied_output:
            self.output = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.register_parameter(
            "output_bias", nn.Parameter(torch.zeros(config.vocab_size)) if config.output_bias else None
        )

    @property
    def output_weight(self) -> Tensor:
        """The output projection [V, M]."""
        return self.embedding.tokens.weight if self.config.tied_output else self.output.weight

    @property
    def source_tokens(self) -> Tensor:
        """The token embedding of the source [V, M]."""
        return (self.source_embedding or self.embedding).tokens.weight

    def logits(self, x: Tensor) -> Tensor:
        """Maps what a network's last layer returns [B, T, M] to unnormalised scores [B, T, V]."""
        return functional.linear(x, self.output_weight, self.output_bias)

    def initialise(self) -> None:
        """Draws the weights of the embeddings and the output projection."""
        for embedding in (self.embedding, self.source_embedding):
            if embedding is not None:
                embedding.initialise()
        if not self.config.tied_output:
            nn.init.normal_(self.output.weight, std=self.config.d_model**-0.5)
