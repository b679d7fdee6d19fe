"""Loads one bundle of the folder of models; logs and counts what becomes of it."""

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from server.allocator import collect_garbage, memory_returned
from server.bundle.manifest import Manifest
from server.bundle.manifest_file import read_manifest
from server.bundle.variants import VARIANTS
from server.engine.cores import Cores
from server.errors import BundleError, StartupError
from server.models.choosing import choose_variant
from server.models.folder import FoundBundle
from server.models.loading import Share, load_model, process_memory
from server.models.machine import usable_cores
from server.models.model import Model, ServedModel
from server.models.proof import proof_bounds
from server.models.proofs import Proofs, Task
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics

logger = logging.getLogger(__name__)

_MOST_CHARACTERS = 1000  # of the faults of a bundle, in the log; a manifest may have a million
# Until a bundle is tried again whose proof or load has failed for a reason that may pass, such as too little memory.
# Each further failure doubles it. Half of the most, and a bundle that never ends takes twice the time of a core.
_PAUSE_SECONDS, _MOST_PAUSE_SECONDS = 5.0, 300.0


class _Refusal(NamedTuple):
    """A bundle that was refused, and all its faults.

    Attributes:
        seconds: until it is tried again; infinite if the bundle itself is at fault.
        end: of these seconds, an instant of the loader's clock.
    """

    bundle: FoundBundle
    faults: list[str]
    seconds: float
    end: float


class BundleLoader:
    """Its methods block, and may only be called one at a time.

    Args:
        settings: of the server.
        metrics: are told of every load.
        proofs: of bundles that come while the server serves.
        clock: seconds, monotonic.

    Attributes:
        proofs: as given.
        directory: of the bundle that is being loaded; None for none.
    """

    def __init__(
        self, settings: Settings, metrics: Metrics, proofs: Proofs, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.proofs = proofs
        self._clock = clock
        self._settings = settings
        self._metrics = metrics
        self._cores = Cores(usable_cores())
        self.directory: Path | None = None
        self._refused: dict[str, dict[str, _Refusal]] = {}  # by model and version, at the last try of each

    def read(self, bundle: FoundBundle, faults: list[str]) -> ServedModel | None:
        """Returns what the manifest says of a bundle; None if it is bad. Loads nothing."""
        opened = self._open(bundle, faults)
        if opened is None:
            return None
        manifest, variant = opened
        manifest = replace(manifest, name=bundle.name, version=bundle.version or manifest.version)
        metrics = self._metrics.of_model(bundle.name, manifest.version)
        return ServedModel(manifest=manifest, variant=variant, metrics=metrics)

    def is_good(self, bundle: FoundBundle, faults: list[str]) -> bool | Task:
        """Returns whether a bundle may be loaded, or else what must be proved first."""
        refusal = self._refusal_of(bundle)
        if refusal is not None and self._clock() < refusal.end:
            faults += refusal.faults
            return False
        if not self._needs_proof(bundle):
            return True
        found = self.proofs.found(bundle)
        if found is None:
            return self._to_prove(bundle, faults)
        if found.faults:
            self._refuse(bundle, found.faults, faults, is_sure=found.is_sure)
        if not found.is_sure:
            self.proofs.forget(bundle)
        return not found.faults

    def pause_of(self, bundle: FoundBundle) -> float:
        """Returns the seconds from a bundle's refusal until it is tried again: 0 without any, infinite for never."""
        refusal = self._refusal_of(bundle)
        return 0.0 if refusal is None else refusal.seconds

    def may_come(self, bundle: FoundBundle) -> bool:
        """Returns whether a bundle was not refused, or only once and for a reason that may pass."""
        return self.pause_of(bundle) <= _PAUSE_SECONDS

    def _to_prove(self, bundle: FoundBundle, faults: list[str]) -> bool | Task:
        """Returns what must be proved of a bundle before it is loaded; False if it is bad."""
        opened = self._open(bundle, faults)
        if opened is None:
            return False
        manifest, variant = opened
        bounds = proof_bounds(manifest, variant)
        if bounds.memory is not None:  # weights of which the manifest lies are refused before they are read
            bounds = bounds._replace(memory=min(bounds.memory, process_memory(self._settings)))
        return Task(bundle, variant, bounds)

    def load(self, bundle: FoundBundle, num_models: int, faults: list[str]) -> Model | None:
        """Returns a warm model, or None if the bundle is bad.

        Args:
            bundle: proved, unless the server starts.
            num_models: of the process, with this one.
            faults: a list that takes those of a bad bundle.
        """
        self.directory = bundle.directory
        try:
            model = self._warm(bundle, num_models, faults)
        finally:
            self.directory = None
        if model is None:
            collect_garbage()  # frees what the model held when it failed
        return model

    def faults_of(self, bundle: FoundBundle) -> list[str]:
        """Returns what was wrong at the last try of a bundle, or of what was in its place before."""
        refusal = self._refused.get(bundle.name, {}).get(bundle.version)
        return [] if refusal is None else refusal.faults

    def has_refused(self, name: str) -> bool:
        """Returns whether any bundle of a model was refused at its last try."""
        return bool(self._refused.get(name))

    def keep_refusals(self, name: str, versions: Sequence[FoundBundle]) -> None:
        """Forgets what was wrong with bundles of a model that are not there any more."""
        refused = self._refused.pop(name, {})
        kept = {each.version: refused[each.version] for each in versions if each.version in refused}
        kept = {version: refusal for version, refusal in kept.items() if refusal.bundle in versions}
        if kept:
            self._refused[name] = kept

    def forget(self, bundle: FoundBundle) -> None:
        """Forgets what is known of a bundle, good or bad, so that it is tried again now."""
        self._refused.get(bundle.name, {}).pop(bundle.version, None)
        self.proofs.forget(bundle)

    def _refusal_of(self, bundle: FoundBundle) -> _Refusal | None:
        """Returns the refusal of a bundle, if that has not changed since."""
        refusal = self._refused.get(bundle.name, {}).get(bundle.version)
        return refusal if refusal is not None and refusal.bundle == bundle else None

    def _needs_proof(self, bundle: FoundBundle) -> bool:
        """A GPU has no room for another process beside the server."""
        settings = replace(self._settings, bundle=bundle.directory)
        variant = choose_variant(settings)
        return variant not in VARIANTS or not VARIANTS[variant].is_on_device

    def _refuse(self, bundle: FoundBundle, found: list[str], faults: list[str], *, is_sure: bool = True) -> None:
        """Logs and counts a bad bundle with the faults that were found, and appends them to `faults`."""
        shown = [fault[:_MOST_CHARACTERS] for fault in found]
        error = "; ".join(shown)[:_MOST_CHARACTERS]
        facts = {"model": bundle.name, "model_version": bundle.version, "error": error}
        logger.error("a model is refused", extra={"facts": facts})
        self._note(bundle, shown, faults, is_sure=is_sure)

    def _note(self, bundle: FoundBundle, shown: list[str], faults: list[str], *, is_sure: bool) -> None:
        self._metrics.catalogue.count_load(bundle.name, is_successful=False)
        before, seconds = self._refusal_of(bundle), math.inf
        if not is_sure:
            seconds = min(2 * before.seconds, _MOST_PAUSE_SECONDS) if before is not None else _PAUSE_SECONDS
        refusal = _Refusal(bundle, shown, seconds, self._clock() + seconds)
        self._refused.setdefault(bundle.name, {})[bundle.version] = refusal
        faults += shown

    def _open(self, bundle: FoundBundle, faults: list[str]) -> tuple[Manifest, str] | None:
        """Returns the manifest of a bundle, and the variant to load; None if it is bad."""
        variant = choose_variant(replace(self._settings, bundle=bundle.directory))
        try:
            manifest = read_manifest(bundle.directory)
        except BundleError as error:  # the system's own errors may pass, such as too many open files
            self._refuse(bundle, error.faults, faults, is_sure=not isinstance(error.__cause__, OSError))
            return None
        if variant not in manifest.variants:
            self._refuse(bundle, [f"{bundle.directory}: has no variant {variant}"], faults)
            return None
        return manifest, variant

    def _warm(self, bundle: FoundBundle, num_models: int, faults: list[str]) -> Model | None:
        started = time.monotonic()
        settings = replace(self._settings, bundle=bundle.directory)
        share = Share(num_models=num_models, cores=self._cores)
        facts: dict[str, str | float] = {"model": bundle.name, "model_version": bundle.version}
        try:
            with memory_returned():
                model = load_model(settings, self._metrics, share, name=bundle.name, version=bundle.version)
        except StartupError as error:
            self._refuse(bundle, error.faults, faults, is_sure=False)
            return None
        except Exception as error:  # whatever the error is, the other models are served
            logger.exception("a model cannot be loaded", extra={"facts": facts})
            fault = f"{bundle.directory}: cannot be loaded: {type(error).__name__}"
            self._note(bundle, [fault], faults, is_sure=False)
            return None
        self._refused.get(bundle.name, {}).pop(bundle.version, None)
        seconds = time.monotonic() - started
        self._metrics.catalogue.load_seconds.observe(seconds)
        self._metrics.catalogue.count_load(bundle.name, is_successful=True)
        facts |= {"model_version": model.manifest.version, "variant": model.variant, "seconds": round(seconds, 3)}
        logger.info("a model has been loaded", extra={"facts": facts})
        return model
