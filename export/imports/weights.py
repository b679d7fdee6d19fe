"""Which of somebody's tensors become which weight of our network: checked by their shapes, then loaded one by one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from export.imports.formats.tensors import FormatError, LazyTensor, Tensors
from export.imports.report import Report
from model.config import TransformerConfig
from model.transformer import Transformer

# float16's, in which GPUs calculate. Trained networks have weights of some hundreds; from a thousand times more on the
# float32 graphs themselves overflow.
MOST = 65504.0
# Weights of int8 unpack to four times their bytes, and a few are used twice. With half of this the import refuses such
# models; with twice as much a damaged file takes twice the memory.
_MOST_UNPACKED = 8
_FREE_BYTES = 32 << 20
_DAMAGED = "download it again, all of it; else the model itself is broken"


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one of our weights.

    Attributes:
        name: of the tensor that they are; None for constant ones.
        count: how many; None for an equal share of what the others leave.
        skip, rest: rows at its beginning, and at its end, that are left out.
        fill: value of constant rows.
    """

    name: str | None
    count: int | None = None
    skip: int = 0
    rest: int = 0
    fill: float = 0.0


@dataclass(frozen=True, slots=True)
class Stack:
    """One of our weights: rows of several tensors, one after the other.

    Attributes:
        parts: from the first row on.
        is_transposed: matrices are stored [in, out], vectors [1, n].
        same: names of tensors that ought to be equal to the first part's.
    """

    parts: tuple[Rows, ...]
    is_transposed: bool = False
    same: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Computed:
    """One of our weights that is in no file, such as sinusoidal positions.

    Attributes:
        value: computes it. It may be large whatever the files hold, so that nobody does before they are checked.
        names: of tensors that it stands for.
    """

    value: Callable[[], Tensor]
    names: tuple[str, ...] = ()


Plan = dict[str, Stack | Computed]


def stack(*names: str | None, is_transposed: bool = False) -> Stack:
    """Returns equal shares of some tensors; None is zeros."""
    return Stack(tuple(Rows(name) for name in names), is_transposed)


def expected_shapes(config: TransformerConfig) -> dict[str, tuple[int, ...]]:
    """Returns the shape of each weight of a network, without making it."""
    return {name: tuple(tensor.shape) for name, tensor in network_without_weights(config).state_dict().items()}


def network_without_weights(config: TransformerConfig) -> Transformer:
    """Returns a network whose weights have shapes only."""
    with torch.device("meta"), _Unset():
        return Transformer(config)


class _Unset(TorchFunctionMode):
    """Leaves out what fills tensors: for those without data torch would load its compiler to do it, 70 MB."""

    def __torch_function__(
        self, function: Any, types: Any, arguments: tuple[Any, ...] = (), keywords: dict[str, Any] | None = None
    ) -> Any:
        keywords = keywords or {}
        if function.__name__ in ("normal_", "uniform_"):
            return arguments[0] if arguments else keywords["tensor"]
        return function(*arguments, **keywords)


def check_plan(plan: Plan, config: TransformerConfig, tensors: Tensors, report: Report) -> None:
    """Notes a fault for each tensor that is missing, has another shape, or is not read; nothing is loaded."""
    shapes = expected_shapes(config)
    for name in sorted(shapes.keys() ^ plan.keys()):
        raise AssertionError(f"{name} is in only one of the plan and the network")
    read: set[str] = set()
    for name, rule in plan.items():
        if isinstance(rule, Computed):
            read.update(rule.names)
            continue
        read.update(rule.same)
        for rows, shape in _parts(rule, shapes[name]):
            if rows.name is not None:
                read.add(rows.name)
                _check_tensor(rows.name, shape[::-1] if rule.is_transposed else shape, tensors, report)
    for name, tensor in tensors.items():
        if name not in read:
            report.unknown(tensor.file, name, f"a tensor of shape {list(tensor.shape)}")


def check_size(num_parameters: int, tensors: Tensors, report: Report) -> None:
    """Notes a fault if a network takes far more memory than its files have bytes, whatever makes it so.

    Regions of a file may overlap, and numbers that are packed may unpack to a thousand times as many.

    Args:
        num_parameters: of the network.
        tensors: of its files.
        report: gets the fault.
    """
    paths = {tensor.path for tensor in tensors.values()}
    held, needed = sum(path.stat().st_size for path in paths), 4 * num_parameters
    if needed > _MOST_UNPACKED * held + _FREE_BYTES:
        file = ", ".join(sorted(path.name for path in paths)) or "weights"
        found = f"{held} bytes for a network of {needed} bytes in float32"
        report.fault(file, found=found, expected=f"at least {needed // _MOST_UNPACKED}", remedy=_DAMAGED)


def load_weights(
    plan: Plan, config: TransformerConfig, tensors: Tensors, report: Report
) -> Iterator[tuple[str, Tensor]]:
    """Loads each weight of ours in turn, as float32, after `check_plan` has found no fault."""
    for name, shape in expected_shapes(config).items():
        rule = plan[name]
        try:
            yield name, rule.value() if isinstance(rule, Computed) else _load(rule, shape, tensors, report)
        except FormatError as error:
            file = next((tensors[each.name].file for each in getattr(rule, "parts", ()) if each.name), name)
            report.fault(file, name, found=error)
            report.check()


def _load(rule: Stack, shape: tuple[int, ...], tensors: Tensors, report: Report) -> Tensor:
    weight = torch.empty(shape)
    begin = 0
    for rows, part in _parts(rule, shape):
        count = part[0] - rows.skip - rows.rest
        if rows.name is None:
            weight[begin : begin + count] = rows.fill
        else:
            tensor = _finite(rows.name, tensors[rows.name], report)
            tensor = (
                tensor.reshape(part[::-1]).permute(*reversed(range(len(part))))
                if rule.is_transposed
                else tensor.reshape(part)
            )
            _check_same(rule, rows.name, tensor, tensors, report)
            weight[begin : begin + count] = tensor[rows.skip : rows.skip + count]
        begin += count
    return weight


def _finite(name: str, tensor: LazyTensor, report: Report) -> Tensor:
    """Loads a tensor as float32, of numbers that a network can calculate with."""
    numbers = tensor.load().float()
    if numbers.numel():
        found = [number.item() for number in numbers.aminmax()]
        if not all(-MOST <= number <= MOST for number in found):  # NaN is not, either
            said = f"numbers from {found[0]:g} to {found[1]:g}"
            report.fault(tensor.file, name, found=said, expected=f"none beyond {MOST:g}", remedy=_DAMAGED)
            report.check()
    return numbers


def _check_same(rule: Stack, name: str, tensor: Tensor, tensors: Tensors, report: Report) -> None:
    if name != rule.parts[0].name:
        return
    for other in rule.same:
        if other in tensors and tensors[other].shape == tensors[name].shape:
            if torch.equal(tensors[other].load().float(), tensor):
                continue
        elif other not in tensors:
            continue
        report.note(f"{tensors[other].file}: {other} differs from {name}, which the model ties it to: {name} is used")


def _parts(rule: Stack, shape: tuple[int, ...]) -> Iterator[tuple[Rows, tuple[int, ...]]]:
    """Yields each part and the shape that its tensor must have, as ours are: [out, in]."""
    fixed = sum(rows.count or 0 for rows in rule.parts)
    num_open = sum(rows.count is None for rows in rule.parts)
    for rows in rule.parts:
        count = (shape[0] - fixed) // num_open if rows.count is None else rows.count
        yield rows, (rows.skip + count + rows.rest, *shape[1:])


def _check_tensor(name: str, shape: tuple[int, ...], tensors: Tensors, report: Report) -> None:
    tensor = tensors.get(name)
    if tensor is None:
        file = next(iter(tensors.values())).file if tensors else "weights"
        report.fault(file, name, found="missing", expected=f"a tensor of shape {list(shape)}")
        return
    # A vector may be stored as a matrix of one row.
    found, wanted = (tuple(length for length in each if length != 1) for each in (tensor.shape, shape))
    if found != wanted:
        report.fault(tensor.file, name, found=f"shape {list(tensor.shape)}", expected=f"{list(shape)}")
