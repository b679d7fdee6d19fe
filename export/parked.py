"""A network's weights in a file, from which they come into memory when they are read, and go again."""

import mmap
import tempfile
from pathlib import Path

import numpy as np
import torch

_ALIGNMENT = 64


class ParkedWeights:
    """Moves the weights of a network to a file without a name, which ends with the network.

    Args:
        model: on the CPU; it computes what it did.
        directory: on whose disk there is room for them.
    """

    def __init__(self, model: torch.nn.Module, directory: Path) -> None:
        tensors = {tensor.data_ptr(): tensor for tensor in (*model.parameters(), *model.buffers())}
        places = []
        with tempfile.TemporaryFile(dir=directory) as file:
            for tensor in tensors.values():
                file.write(b"\0" * (-file.tell() % _ALIGNMENT))
                places.append(file.tell())
                file.write(tensor.detach().contiguous().numpy().data)
            file.flush()
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        for place, tensor in zip(places, tensors.values(), strict=True):
            data = np.frombuffer(self._map, tensor.detach().numpy().dtype, tensor.numel(), place)
            tensor.data = torch.from_numpy(data).reshape(tensor.shape)

    def drop(self) -> None:
        """Lets go of the memory; what is read next comes from the file."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)
