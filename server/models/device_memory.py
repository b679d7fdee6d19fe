"""The memory of a GPU: what a model takes of it, all at the start, and whether that fits.

A captured step replays on the addresses of its capture. So there are caches for `--max-rows` rows of the longest
sentences from the start, and each graph has its weights. The largest runs are made to find what runs need beside that
(`DeviceRunner.open_decoder`). CUDA's own context comes on top, and cannot be bounded.
"""

import logging
import math
from dataclasses import dataclass

import numpy as np

from server.bundle.manifest import Manifest
from server.errors import SettingsError
from server.runtime.cuda_device import CudaDevice
from server.settings.settings import Settings

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMemory:
    """What is known before a model is loaded, in bytes.

    Attributes:
        caches: of all rows.
        copies: room in which rows are copied: the largest cache twice.
        weights: the file, and the token embedding again if encoder and step share it.
        arena: what encoder and step may take with their weights; 0 for no bound.
    """

    caches: int
    copies: int
    weights: int
    arena: int = 0


def plan_device_memory(
    manifest: Manifest, variant: str, settings: Settings, device: CudaDevice, num_models: int
) -> DeviceMemory:
    """Returns what a model will take.

    Args:
        manifest: of the model.
        variant: a variant for the GPU.
        settings: `max_rows` and `device_memory_mib` are read.
        device: the GPU.
        num_models: how many models share what the settings allow.

    Raises:
        SettingsError: the model does not fit into what is free, or allowed. The error names the parts, and what to
            change.
    """
    # Imported only here, because onnxruntime may be missing. The caller has made sure that it is not.
    from server.runtime.sizes import cache_shapes  # noqa: PLC0415

    sizes, facts = manifest.dimensions, manifest.variants[variant]
    shapes = cache_shapes(manifest.states, sizes, manifest.limits, facts.dtype, settings.max_rows).values()
    cache_bytes = [math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in shapes]
    # Encoder and step both load the embedding, but the file has it once, unless the source has its own vocabulary.
    shared = sizes.vocab_size if sizes.source_vocab_size is None else 0
    caches, copies = sum(cache_bytes), 2 * max(cache_bytes)
    weights = facts.weights_bytes + shared * sizes.d_model * np.dtype(facts.dtype).itemsize
    needed, part = caches + copies + weights, (settings.device_memory_mib << 20) // num_models
    needs = (
        f"{needed >> 20} MiB at the least, {caches >> 20} for caches of --max-rows {settings.max_rows},"
        f" {copies >> 20} to copy of them, {weights >> 20} for weights"
    )
    if part and part < needed:
        whose = f"{settings.device_memory_mib}" + (f" for {num_models} models" if num_models > 1 else "")
        raise SettingsError([f"--device-memory-mib: {whose} is not enough: {manifest.name} takes {needs}"])
    free = device.memory[1] if device.memory is not None else math.inf
    if free < needed:
        raise SettingsError([f"device cuda: {manifest.name} takes {needs}: that is more than is free of {device}"])
    if free < part:
        raise SettingsError([f"--device-memory-mib: {part >> 20} is more than is free of {device}"])
    logger.info("device memory", extra={"facts": {"model": manifest.name, "device": str(device), "takes": needs}})
    arena = part - caches - copies if part else 0
    return DeviceMemory(caches=caches, copies=copies, weights=weights, arena=arena)
