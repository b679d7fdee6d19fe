from itertools import islice

import pytest
import torch

from model.ahead import epochs_from
from model.data import Batch


def make(epoch: int) -> list[Batch]:
    return [Batch(*(torch.tensor([[epoch, number, column]]) for column in range(3))) for number in range(2)]


@pytest.mark.parametrize("num_processes", [0, 1, 3])
def test_epochs_come_in_order_whatever_the_number_of_processes(num_processes: int) -> None:
    epochs = epochs_from(5, make, num_processes)

    found = list(islice(epochs, 4))

    epochs.close()  # type: ignore[attr-defined]
    for epoch, batches in enumerate(found, 5):
        for batch, wanted in zip(batches, make(epoch), strict=True):
            for name in ("source", "target_in", "target_out"):
                assert torch.equal(getattr(batch, name), getattr(wanted, name))


def test_a_fault_in_a_process_is_told() -> None:
    def fail(epoch: int) -> list[Batch]:
        raise ValueError(f"no epoch {epoch}")

    with pytest.raises(ValueError, match="no epoch 2"):
        next(epochs_from(2, fail, 1))
