"""A network that writes all words of a translation at once: CTC over the source, drawn out to twice its length.

The encoder is the Transformer's. A linear map makes two positions of each of its outputs; further layers of the same
shape, each of which sees all positions, decide on one token or a blank for each. A translation is what remains when
equal neighbours become one and the blanks are taken out (`model.ctc_search`).

Sources: "End-to-End Non-Autoregressive Neural Machine Translation with CTC" (D18-1336); "Fully Non-autoregressive
Neural Machine Translation: Tricks of the Trade" (arXiv:2012.15833).
"""

import torch
from torch import Tensor, nn

from model.config import TransformerConfig
from model.loss import chunk_rows
from model.transformer import LayeredNetwork, sinusoids

# Positions of each source token. Halved, no translation has more tokens than its source; doubled, all that follows the
# encoder takes twice the time.
UPSAMPLING = 2


class OnePass(LayeredNetwork):
    """The family of networks that write all words at once. The blank is `bos_id`, which no translation has."""

    upsampled_positions: Tensor

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config, has_cross=False)
        self.upsampling = nn.Linear(config.d_model, UPSAMPLING * config.d_model)
        table = sinusoids(UPSAMPLING * config.max_positions, config.d_model)
        self.register_buffer("upsampled_positions", table, persistent=False)

    def forward(self, source_ids: Tensor) -> Tensor:
        """Returns what each position may be.

        Args:
            source_ids: int64 [B, S], padded with `pad_id` behind each row's end-of-sentence token.

        Returns:
            Logits [B, 2S, V]; those of a row of n source tokens count up to 2n.
        """
        return self.logits(self.decode(*self.upsample(source_ids)))

    def upsample(self, source_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Returns what the layers behind the encoder read, [B, 2S, M], and bool [B, 1, 1, 2S], False at padding."""
        memory, visible = self.encode(source_ids)
        upsampled = self.upsampling(memory).unflatten(-1, (UPSAMPLING, -1)).flatten(1, 2)
        return upsampled, visible.repeat_interleave(UPSAMPLING, dim=-1)

    def decode(self, upsampled: Tensor, visible: Tensor) -> Tensor:
        """Returns what `forward` projects to logits: [B, 2S, M]."""
        x = self.decoder_embedding_norm(upsampled + self.upsampled_positions[: upsampled.shape[1]])
        for layer in self.decoder:
            x = layer(x, visible)
        states: Tensor = self.decoder_norm(x)
        return states

    def best_tokens(self, states: Tensor) -> Tensor:
        """Returns the best tokens, int64 [B, 2S], of states that `decode` returned; few logits are held at a time."""
        rows = chunk_rows(states, self.config.vocab_size)
        best = [self.logits(some).argmax(dim=-1) for some in states.flatten(0, 1).split(rows)]
        return torch.cat(best).view(states.shape[:2])
