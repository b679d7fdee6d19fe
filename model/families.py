"""The families of networks: one row for each, of how it is made, learns, and translates."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from model import ctc_search
from model.config import FamilyName, TransformerConfig
from model.ctc import ctc_loss
from model.data import Batch
from model.dropout import replace_words
from model.glancing import glance
from model.loss import smoothed_cross_entropy
from model.network import Network
from model.one_pass import OnePass
from model.recipe import TrainingConfig
from model.rnn import RecurrentNetwork
from model.search import Stepwise, default_max_tokens, search
from model.transformer import Transformer


@dataclass(frozen=True, slots=True)
class Family:
    """What training and evaluation ask of a family; the functions take networks of this family alone.

    Attributes:
        network: its class.
        loss: the sum of the label-smoothed loss of a batch, in nats, for a network in training.
        translate: the best translations, ids without eos, of a batch of sources, ids with eos, for a network in
            evaluation mode and a size of the beam.
    """

    network: Callable[[TransformerConfig], Network]
    loss: Callable[[Any, Batch, TrainingConfig], Tensor]
    translate: Callable[[Any, list[list[int]], int], list[list[int]]]


def teacher_forcing(model: Stepwise, batch: Batch, training: TrainingConfig) -> Tensor:
    """Returns the loss of each token of the translations after those before it."""
    config, device = model.config, model.source_tokens.device
    target_in = replace_words(batch.target_in, training.word_dropout, config.eos_id, config.vocab_size)
    target_out = batch.target_out.flatten()
    real = (target_out != config.pad_id).nonzero().squeeze(1)
    # All that a GPU is given goes there first: later it would wait for what has been computed so far.
    source, target_in, target_out, real = (
        tensor.to(device) for tensor in (batch.source, target_in, target_out[real], real)
    )
    states = model.states(source, target_in).flatten(0, 1)[real]
    return smoothed_cross_entropy(states, model.output_weight, target_out, training.label_smoothing, model.output_bias)


def all_at_once(model: OnePass, batch: Batch, training: TrainingConfig) -> Tensor:
    """Returns the loss of the translations, whatever position writes which token; CTC's."""
    config, device = model.config, model.source_tokens.device
    num_targets = (batch.target_out != config.pad_id).sum(dim=1) - 1  # eos is not written
    source, targets, num_targets = (t.to(device) for t in (batch.source, batch.target_out[:, :-1], num_targets))
    upsampled, visible = model.upsample(source)
    if training.glancing:
        upsampled = glance(model, upsampled, visible, targets, num_targets, training.glancing)
    return ctc_loss(
        model.decode(upsampled, visible),
        model.output_weight,
        visible.sum(dim=-1).flatten(),
        targets,
        num_targets,
        blank=config.bos_id,
        smoothing=training.label_smoothing,
        bias=model.output_bias,
    )


def translate(model: Stepwise, sources: list[list[int]], beam_size: int = 1) -> list[list[int]]:
    """Translates a batch of sentences by beam search, within the default bound on their tokens."""
    limits = [default_max_tokens(len(source), model.config.max_positions) for source in sources]
    return [found[0].ids for found in search(model, sources, beam_size=beam_size, max_tokens=limits)]


FAMILIES: dict[FamilyName, Family] = {
    "transformer": Family(Transformer, teacher_forcing, translate),
    "one_pass": Family(OnePass, all_at_once, ctc_search.translate),
    "recurrent": Family(RecurrentNetwork, teacher_forcing, translate),
}
