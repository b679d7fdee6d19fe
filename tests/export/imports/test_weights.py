import subprocess
import sys
from pathlib import Path

import pytest
import torch

from export.imports.formats.safetensors import list_safetensors
from export.imports.formats.tensors import Tensors
from export.imports.report import ImportFault, Report
from export.imports.weights import (
    Computed,
    Plan,
    Rows,
    Stack,
    check_plan,
    check_size,
    expected_shapes,
    load_weights,
    stack,
)
from model.config import TransformerConfig
from model.transformer import Transformer
from tests.export.imports.writers import write_safetensors

CONFIG = TransformerConfig(
    vocab_size=12,
    d_model=16,
    num_heads=2,
    ffn_dim=8,
    encoder_layers=1,
    decoder_layers=1,
    max_positions=8,
    positions="table",
    output_bias=True,
)


@pytest.fixture
def weights() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return {name: torch.randn(tensor.shape) for name, tensor in Transformer(CONFIG).state_dict().items()}


def listed(tmp_path: Path, weights: dict[str, torch.Tensor]) -> Tensors:
    write_safetensors(tmp_path / "model.safetensors", weights)
    return list_safetensors(tmp_path / "model.safetensors")


def own_plan() -> Plan:
    return {name: stack(name) for name in expected_shapes(CONFIG)}


def load(plan: Plan, tensors: Tensors, report: Report) -> dict[str, torch.Tensor]:
    check_plan(plan, CONFIG, tensors, report)
    report.check()
    return dict(load_weights(plan, CONFIG, tensors, report))


def test_weights_are_stacked_transposed_and_filled_up(tmp_path: Path, weights: dict[str, torch.Tensor]) -> None:
    plan, expected = own_plan(), dict(weights)
    name = "encoder.0.self_attention.qkv"
    for part, tensor in zip("qkv", expected[f"{name}.weight"].chunk(3), strict=True):
        weights[part] = tensor.T.contiguous()
    for part, tensor in zip("qk", expected[f"{name}.bias"].chunk(3), strict=False):
        weights[f"b{part}"] = tensor[None]
    del weights[f"{name}.weight"], weights[f"{name}.bias"]
    plan[f"{name}.weight"] = stack("q", "k", "v", is_transposed=True)
    plan[f"{name}.bias"] = stack("bq", "bk", None, is_transposed=True)
    expected[f"{name}.bias"][32:] = 0
    weights["positions"] = torch.cat([torch.zeros(2, 16), weights.pop("encoder_positions")])
    plan["encoder_positions"] = Stack((Rows("positions", skip=2),))
    plan["decoder_positions"] = Computed(expected["decoder_positions"].clone, ("decoder_positions",))
    weights["short"] = weights.pop("embedding.tokens.weight")[:11]
    plan["embedding.tokens.weight"] = Stack((Rows("short"), Rows(None, 1)))
    expected["embedding.tokens.weight"][11] = 0

    loaded = load(plan, listed(tmp_path, weights), Report())

    assert loaded.keys() == expected.keys()
    assert all(torch.equal(loaded[name], expected[name]) for name in expected)


def test_missing_strange_and_misshapen_tensors_are_faults_before_anything_is_loaded(
    tmp_path: Path, weights: dict[str, torch.Tensor]
) -> None:
    del weights["output_bias"]
    weights["encoder.0.self_norm.bias"] = torch.ones(7)
    weights["adapter"] = torch.ones(3)
    report = Report()

    with pytest.raises(ImportFault):
        load(own_plan(), listed(tmp_path, weights), report)

    assert {fault.key: fault.found for fault in report.faults} == {
        "output_bias": "missing",
        "encoder.0.self_norm.bias": "shape [7]",
        "adapter": "a tensor of shape [3]",
    }


def test_an_unread_tensor_may_be_allowed(tmp_path: Path, weights: dict[str, torch.Tensor]) -> None:
    weights["adapter"] = torch.ones(3)

    assert "adapter" not in load(own_plan(), listed(tmp_path, weights), Report(allowed={"adapter"}))


def test_tensors_that_ought_to_be_equal_and_are_not_are_noted(tmp_path: Path, weights: dict[str, torch.Tensor]) -> None:
    weights |= {"lm_head": torch.ones(12, 16), "shared": weights["embedding.tokens.weight"].clone()}
    plan, report = own_plan(), Report()
    plan["embedding.tokens.weight"] = Stack((Rows("embedding.tokens.weight"),), same=("shared", "lm_head", "absent"))

    loaded = load(plan, listed(tmp_path, weights), report)

    assert torch.equal(loaded["embedding.tokens.weight"], weights["embedding.tokens.weight"])
    assert len(report.notes) == 1
    assert "lm_head differs from embedding.tokens.weight" in report.notes[0]


def test_a_file_that_changes_meanwhile_is_a_fault(tmp_path: Path, weights: dict[str, torch.Tensor]) -> None:
    tensors, report = listed(tmp_path, weights), Report()
    check_plan(own_plan(), CONFIG, tensors, report)
    (tmp_path / "model.safetensors").write_bytes(b"")

    with pytest.raises(ImportFault, match=r"model\.safetensors: .*changed while it was read"):
        dict(load_weights(own_plan(), CONFIG, tensors, report))


def test_a_network_without_weights_has_the_shapes_and_loads_no_compiler() -> None:
    code = """
import sys
from export.imports.weights import network_without_weights
from tests.export.imports.test_weights import CONFIG
network = network_without_weights(CONFIG)
assert all(weight.is_meta for weight in network.state_dict().values())
print("torch._dynamo" in sys.modules)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "False"
    assert expected_shapes(CONFIG) == {
        name: tuple(each.shape) for name, each in Transformer(CONFIG).state_dict().items()
    }


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), 1e30])
def test_a_weight_that_nothing_can_be_calculated_with_is_named(
    tmp_path: Path, weights: dict[str, torch.Tensor], value: float
) -> None:
    weights["encoder.0.self_attention.qkv.weight"][3, 5] = value

    with pytest.raises(
        ImportFault, match=r"^model\.safetensors: encoder\.0\.self_attention\.qkv\.weight: numbers from"
    ):
        load(own_plan(), listed(tmp_path, weights), Report())


def test_a_network_that_is_far_larger_than_its_files_is_refused(
    tmp_path: Path, weights: dict[str, torch.Tensor]
) -> None:
    tensors, report = listed(tmp_path, weights), Report()
    num_bytes = (tmp_path / "model.safetensors").stat().st_size

    check_size(2**23 + 2 * num_bytes, tensors, report)
    assert not report.faults
    check_size(2**23 + 2 * num_bytes + 1, tensors, report)

    assert f"model.safetensors: {num_bytes} bytes for a network of " in str(report.faults[0])


def test_what_is_computed_is_so_only_when_it_is_loaded(tmp_path: Path, weights: dict[str, torch.Tensor]) -> None:
    computed: list[torch.Tensor] = []

    def compute() -> torch.Tensor:
        computed.append(torch.zeros(8, 16))
        return computed[0]

    plan = own_plan()
    plan["encoder_positions"] = Computed(compute, ("encoder_positions",))
    tensors = listed(tmp_path, weights)

    check_plan(plan, CONFIG, tensors, Report())
    assert not computed

    assert not dict(load_weights(plan, CONFIG, tensors, Report()))["encoder_positions"].any()
