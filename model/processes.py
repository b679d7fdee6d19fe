"""The processes that train one model together, started by `torchrun`; one alone is the first of one."""

import contextlib
import os
from collections.abc import Iterator

import torch
import torch.distributed
from torch import Tensor


def rank() -> int:
    """Returns this process's number, from 0."""
    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0


def world_size() -> int:
    """Returns how many processes there are."""
    return torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1


@contextlib.contextmanager
def joined() -> Iterator[None]:
    """Joins the others while the context lasts, if `torchrun` started this process."""
    if "WORLD_SIZE" in os.environ:
        torch.distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield
    finally:
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()


def wait_for_all() -> None:
    """Returns when every process has come here."""
    if world_size() > 1:
        torch.distributed.barrier()


def sum_over_processes(tensors: list[Tensor]) -> None:
    """Replaces each tensor by its sum over all processes, in one exchange."""
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    torch.distributed.all_reduce(flat)
    for tensor, part in zip(tensors, flat.split([t.numel() for t in tensors]), strict=True):
        tensor.copy_(part.view_as(tensor))
