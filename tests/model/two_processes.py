"""One of two processes that train together; `test_processes` starts both and reads what they report."""

import json
import sys
from pathlib import Path

import torch
import torch.distributed

from model.recipe_file import load_recipe
from model.train import prepare
from model.training_loop import Trainer


class ReportingTrainer(Trainer):
    """Notes each loss; the second process is asked to stop at its third update."""

    losses: list[float]

    def update(self, batches):  # type: ignore[no-untyped-def]
        """See `Trainer.update`."""
        self.stop_requested = torch.distributed.get_rank() == 1 and self.step == 2
        loss, tokens = super().update(batches)
        self.losses.append(loss)
        return loss, tokens


def main(recipe: Path, data: Path, out: Path, rank: int) -> None:
    """Trains until the stop request and prints the losses and the sum of all weights as JSON."""
    torch.set_num_threads(1)
    meeting = f"file://{out / 'meeting'}"
    torch.distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    trainer = prepare(load_recipe(recipe), data, out)
    reporting = ReportingTrainer(trainer.recipe, trainer.corpora, trainer.dev, trainer.tokenizer_bytes, out)
    reporting.losses = []
    reporting.run()
    weights = {name: weight.double().sum().item() for name, weight in reporting.model.state_dict().items()}
    print(json.dumps({"step": reporting.step, "losses": reporting.losses, "weights": weights}))  # noqa: T201
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
