from pathlib import Path

import torch

from export.parked import ParkedWeights
from tests.export.conftest import build_model
from tests.export.memory import resident_bytes


def test_a_network_computes_the_same_from_its_file_before_and_after_it_is_dropped(tmp_path: Path) -> None:
    model = build_model(vocab_size=20, output_bias=True)
    source, target = torch.tensor([[5, 9, 12, 3]]), torch.tensor([[2, 10]])
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with torch.inference_mode():
        expected = model(source, target)

    parked = ParkedWeights(model, tmp_path)

    assert not list(tmp_path.iterdir())  # its file has no name
    for _ in range(2):
        with torch.inference_mode():
            assert torch.equal(model(source, target), expected)
        parked.drop()
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_what_is_dropped_is_in_memory_no_more(tmp_path: Path) -> None:
    model = torch.nn.Linear(2**12, 2**12, bias=False)  # 64 MiB
    parked = ParkedWeights(model, tmp_path)
    model.weight.sum()
    before = resident_bytes()

    parked.drop()

    assert before - resident_bytes() > 2**25


def test_weights_that_two_names_have_stay_one(tmp_path: Path) -> None:
    one, other = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
    other.weight = one.weight

    ParkedWeights(torch.nn.Sequential(one, other), tmp_path)

    assert other.weight.data_ptr() == one.weight.data_ptr()
