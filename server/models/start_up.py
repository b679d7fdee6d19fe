"""Loads what the settings name: one bundle, or a folder of models, in memory from the start or on demand."""

import math
import re
from collections.abc import Sequence

from server.bundle.manifest import Manifest
from server.bundle.variants import VARIANTS
from server.models.catalogue import Catalogue
from server.models.folder_loader import FolderLoader
from server.models.loading import Share, engine_limits, growth_bytes, load_model, needed_bytes, process_memory
from server.models.model import Model, ServedModel
from server.models.on_demand import OnDemand
from server.models.pivots import pivot_faults
from server.models.proofs import Proofs
from server.runtime.cuda_device import find_cuda_device
from server.settings.settings import ON_DEMAND, Settings
from server.telemetry.metrics import Metrics

_VERSION = re.compile(r"v?[0-9]+(\.[0-9]+)*")  # a name that looks like a version, not like a model
_BUDGET_SHARE = 2  # unless the settings say how much, models have one of so many parts of the process's memory


def new_catalogue(settings: Settings, metrics: Metrics) -> tuple[Catalogue, FolderLoader | None]:
    """Returns an empty catalogue, and the loader of the folder of models, if any; on the event loop's thread."""
    if settings.models is None:
        return Catalogue(metrics.catalogue), None
    loader = FolderLoader(settings.models, settings, metrics, Proofs())
    if settings.load != ON_DEMAND:
        return Catalogue(metrics.catalogue, settings.preferred_models), loader
    return Catalogue(metrics.catalogue, settings.preferred_models, OnDemand(loader), _budget_bytes(settings)), loader


def open_models(settings: Settings, metrics: Metrics, loader: FolderLoader | None) -> list[ServedModel]:
    """Loads the models that are in memory from the start, and reads the manifests of the others. It blocks.

    Raises:
        StartupError: there is nothing to serve; lists every fault.
    """
    if loader is None:
        return [load_model(settings, metrics)]
    return [*loader.read_all()] if settings.load == ON_DEMAND else [*loader.load_all()]


def stop_models(models: list[ServedModel]) -> None:
    """Ends the engines of models that are not served."""
    for model in models:
        if isinstance(model, Model):
            model.stop()


def serve_models(catalogue: Catalogue, models: list[ServedModel]) -> None:
    """Puts models into a catalogue. It empties the list, which would keep models in memory that are replaced later."""
    while models:
        model = models.pop()
        if isinstance(model, Model):
            catalogue.put(model)
        else:
            catalogue.offer(model)


def growth_of(models: Sequence[ServedModel], settings: Settings) -> int:
    """Returns the bytes that models may take beyond what they have."""
    loaded = [needed_bytes(each.manifest, each.variant) for each in models if isinstance(each, Model)]
    return most_bytes(models, settings) - sum(loaded)


def most_bytes(models: Sequence[ServedModel], settings: Settings) -> int:
    """Returns the bytes that models may take, full caches included.

    If they are of a folder, that is with two versions of the largest model at the same time, and all that are loaded on
    demand within their budget.
    """
    share = Share(num_models=len(models))
    needed = [needed_bytes(each.manifest, each.variant) for each in models]
    total = min(sum(needed), _budget_bytes(settings)) if settings.load == ON_DEMAND else sum(needed)
    if settings.models is not None:
        total += max(needed, default=0)
    for each in models:
        if isinstance(each, Model):
            total += each.growth_bytes
        else:
            limits = engine_limits(each.manifest, each.variant, settings, share)
            total += growth_bytes(each.manifest, each.variant, limits)
    return total


def misfits(settings: Settings, served: Sequence[tuple[Manifest, str]]) -> list[str]:
    """Returns which settings do not suit the models, given with their variants. These are served all the same."""
    faults = pivot_faults(settings.pivots, [manifest for manifest, _ in served])
    budget = _budget_bytes(settings) if settings.load == ON_DEMAND else math.inf
    for manifest, variant in served:
        if settings.models is not None and _VERSION.fullmatch(manifest.name):
            where = "versions of a model are in a folder of its name, in that of --models"
            faults.append(f"--models: the model {manifest.name} looks like a version: {where}")
        if (size := needed_bytes(manifest, variant)) > budget:
            most = f"more than {budget / (1 << 20):.0f}; it will be loaded alone"
            faults.append(f"--models-memory: {manifest.name} takes {size / (1 << 20):.0f} MiB, {most}")
    sizes = sorted((needed_bytes(manifest, variant), manifest.name) for manifest, variant in served)[-2:]
    if settings.pivots and (together := sum(size for size, _ in sizes)) > budget:
        names = " and ".join(name for _, name in sizes)
        most = f"more than {budget / (1 << 20):.0f}; no text can have a route through both"
        faults.append(f"--models-memory: {names} take {together / (1 << 20):.0f} MiB together, {most}")
    return faults


def describe(models: tuple[ServedModel, ...]) -> str:
    """Returns names and versions of models, and the GPU that they are on, in words for the operator."""
    on_gpu = any(isinstance(each, Model) and VARIANTS[each.variant].is_on_device for each in models)
    return ", ".join(
        f"{each.manifest.name} {each.manifest.version} ({each.variant}, "
        + (f"lanes: {each.num_lanes})" if isinstance(each, Model) else "on demand)")
        for each in models
    ) + (f" on {find_cuda_device()}" if on_gpu else "")


def _budget_bytes(settings: Settings) -> int:
    return settings.models_memory << 20 or process_memory(settings) // _BUDGET_SHARE
