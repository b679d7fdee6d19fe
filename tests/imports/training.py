"""Trains a tiny model for some seconds, just so long that it ends its sentences, and stores it as the hub does."""

import itertools
import random
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer

from tests.imports.families import Family
from tests.imports.text import training_pairs

BATCH = 64
LEARNING_RATE = 4e-3


def train(family: Family, directory: Path) -> Any:
    """Trains a model of the class that the directory's config names, from random weights, in float32.

    Before that the row of <pad>, which is the start token of some families, and the bias of the output get random
    values: they are zero in a new model and need not be in a real one.
    """
    torch.manual_seed(1)
    order = random.Random(1)
    tokenizer = AutoTokenizer.from_pretrained(directory)
    config = AutoConfig.from_pretrained(directory)
    config.init_std = config.d_model**-0.5  # the hub's 0.02 suits wide models: narrow ones learn nothing for long
    model = AutoModelForSeq2SeqLM.from_config(config, dtype=torch.float32)
    for name, parameter in model.named_parameters():
        if any(part in name for part in family.absent):
            parameter.requires_grad_(False)
    randomise(model)
    examples = [
        (
            family.encode(tokenizer, pair.in_language(direction.source), direction),
            family.labels(tokenizer, pair.in_language(direction.target), direction),
        )
        for pair in training_pairs()
        for direction in family.directions
    ]
    order.shuffle(examples)
    stream = itertools.cycle(examples)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=family.steps, pct_start=0.2)
    model.train()
    for step in range(family.steps):
        loss = _loss(model, list(itertools.islice(stream, BATCH)))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        if step % 50 == 0 or step == family.steps - 1:
            print(f"{family.name}: step {step}, loss {loss.item():.3f}", flush=True)
    return model.eval()


@torch.no_grad()
def randomise(model: Any) -> None:
    """Gives the row of <pad> and the bias of the output random values, where the model has them."""
    pad = model.config.pad_token_id
    for embedding in {
        id(module): module for module in model.modules() if isinstance(module, torch.nn.Embedding)
    }.values():
        if embedding.padding_idx == pad and embedding.weight.requires_grad:
            embedding.weight[pad].normal_(std=0.1)
    if hasattr(model, "final_logits_bias"):
        model.final_logits_bias.normal_(std=0.5)


def save_weights(family: Family, model: Any, directory: Path) -> None:
    """Writes the weights under the names of the hub's files, tied ones once, in 32 or 16 bits."""
    state: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in model.state_dict().items():
        is_tied = tensor.data_ptr() in seen and name not in family.duplicated
        seen.add(tensor.data_ptr())
        if not is_tied and not any(part in name for part in family.absent):
            state[name] = tensor.detach().to(torch.float16 if family.half else torch.float32).clone()
    if family.pickled:
        torch.save(state, directory / "pytorch_model.bin")
    else:
        save_file(state, directory / "model.safetensors", metadata={"format": "pt"})


def _loss(model: Any, examples: list[tuple[list[int], list[int]]]) -> Tensor:
    config = model.config
    source = _pad([source for source, _ in examples], config.pad_token_id)
    labels = _pad([target for _, target in examples], -100)
    inputs = _pad([[config.decoder_start_token_id, *target[:-1]] for _, target in examples], config.pad_token_id)
    # The mask is ours: the start token may be <pad>, and is to be seen.
    visible = _pad([[1] * len(source) for source, _ in examples], 0)
    decoder_visible = _pad([[1] * len(target) for _, target in examples], 0)
    # Without use_cache=False FSMT leaves its causal mask out.
    logits = model(
        input_ids=source,
        attention_mask=visible,
        decoder_input_ids=inputs,
        decoder_attention_mask=decoder_visible,
        use_cache=False,
    ).logits
    return cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)


def _pad(rows: list[list[int]], value: int) -> Tensor:
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=value)
