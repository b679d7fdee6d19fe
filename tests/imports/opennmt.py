"""The tiny model of OpenNMT-py, as its checkpoints are; needs no OpenNMT-py.

`opennmt/` has weights in 16 bits, without the tables of positions, which take 640 kB each side and are computed.
"""

import json
import shutil
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

DIRECTORY = Path(__file__).with_name("opennmt")
EXPECTED = DIRECTORY / "expected.json.gz"
SPECIAL = ["<unk>", "<blank>", "<s>", "</s>"]
_NUM_POSITIONS = 5000


def read_checkpoint() -> dict[str, Any]:
    """Returns what `torch.save` wrote for OpenNMT-py 3, but for the optimizer's state."""
    with np.load(DIRECTORY / "weights.npz") as arrays:
        weights = {name: torch.from_numpy(arrays[name]).float() for name in arrays.files}
    options = json.loads((DIRECTORY / "options.json").read_text(encoding="utf-8"))
    table = positions(options["hidden_size"])
    for side in ("encoder", "decoder"):
        weights[f"{side}.embeddings.make_embedding.pe.pe"] = table.clone()
    generator = {name.removeprefix("generator."): weights.pop(name) for name in list(weights) if "generator" in name}
    vocabularies = json.loads((DIRECTORY / "vocabularies.json").read_text(encoding="utf-8"))
    return {
        "model": weights,
        "generator": generator,
        "vocab": {**vocabularies, "data_task": "seq2seq", "decoder_start_token": "<s>"},
        "opt": Namespace(**options),
        "optim": {"training_step": 400, "optimizer": {"state": {}, "param_groups": [{"lr": 0.1}]}},
    }


def write_directory(directory: Path, checkpoint: dict[str, Any] | None = None) -> Path:
    """Writes a checkpoint, or the model's own, with its SentencePiece model, into a directory that it makes."""
    directory.mkdir()
    torch.save(checkpoint or read_checkpoint(), directory / "model_step_400.pt")
    shutil.copy(DIRECTORY / "sentencepiece.model", directory)
    return directory


def positions(width: int) -> Tensor:
    """Returns float32 [5000, 1, width]: sines and cosines in turn; source: onmt/modules/embeddings.py."""
    position = torch.arange(_NUM_POSITIONS)[:, None].float()
    frequencies = torch.exp(torch.arange(0, width, 2, dtype=torch.float) * -(np.log(10000.0) / width))
    table = torch.zeros(_NUM_POSITIONS, width)
    table[:, 0::2], table[:, 1::2] = torch.sin(position * frequencies), torch.cos(position * frequencies)
    return table[:, None]
