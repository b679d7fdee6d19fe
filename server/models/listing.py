"""`--list`: lists the models that would be served, and the memory that they would take."""

import dataclasses
from collections.abc import Iterator, Sequence

from server.bundle.bundle import open_bundle
from server.bundle.codes import few_of
from server.bundle.manifest import Manifest
from server.errors import BundleError
from server.models.choosing import choose_variant
from server.models.folder import FoundBundle, find_models, nothing_in
from server.models.loading import Share, engine_limits, growth_bytes, needed_bytes
from server.models.pivots import pivoted_pairs
from server.models.start_up import misfits
from server.settings.settings import Settings

_FEW = 6  # directions that a line names


def list_models(settings: Settings) -> Iterator[str]:
    """Reads and verifies the bundles without loading them. Yields a line for each, a line for each pivot, and a sum.

    Raises:
        StartupError: at the end, if a bundle would be refused, or no model served; lists every fault.
    """
    faults: list[str] = []
    total = 0
    served: list[tuple[Manifest, str]] = []
    found = _found(settings, faults)
    for versions in found.values():
        for bundle in versions:
            try:
                manifest, variant = _opened(bundle, settings)
            except BundleError as error:
                faults += error.faults
                continue
            share = Share(num_models=len(found))
            most = growth_bytes(manifest, variant, engine_limits(manifest, variant, settings, share))
            idle = needed_bytes(manifest, variant)
            total += idle
            name, version = bundle.name or manifest.name, bundle.version or manifest.version
            served.append((dataclasses.replace(manifest, name=name), variant))
            memory = f"{_mib(idle)} MiB, full caches up to {_mib(most)} MiB"
            yield f"{name} {version} ({variant}): {_languages(manifest)}; {memory}"
            break
    if not served:
        raise BundleError(faults or [nothing_in(settings.models or settings.bundle)])
    pivot_of = pivoted_pairs(settings.pivots, [manifest for manifest, _ in served])
    for pivot in dict.fromkeys(pivot_of.values()):
        yield f"over {pivot}: {_directions([pair for pair, own in pivot_of.items() if own == pivot])}"
    yield from (f"warning: {fault}" for fault in misfits(settings, served))
    yield f"{len(served)} served, about {_mib(total)} MiB when all their steps are loaded"
    if faults:
        raise BundleError(faults)


def _found(settings: Settings, faults: list[str]) -> dict[str, list[FoundBundle]]:
    if settings.models is None:
        return {"": [FoundBundle("", "", settings.bundle, ())]}
    found, names = find_models(settings.models)
    faults += names
    return found


def _opened(bundle: FoundBundle, settings: Settings) -> tuple[Manifest, str]:
    settings = dataclasses.replace(settings, bundle=bundle.directory)
    variant = choose_variant(settings)
    return open_bundle(bundle.directory, variant).manifest, variant


def _languages(manifest: Manifest) -> str:
    if manifest.languages is not None:
        return f"{len(manifest.source_codes)} languages into {len(manifest.target_codes)}"
    return _directions([(pair.source, pair.target) for pair in manifest.language_pairs])


def _directions(pairs: Sequence[tuple[str, str]]) -> str:
    return few_of([f"{source}-{target}" for source, target in pairs], _FEW)


def _mib(num_bytes: int) -> str:
    return f"{num_bytes / (1 << 20):.0f}"
