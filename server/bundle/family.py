"""What a manifest may say of a network by its family."""

from server.bundle.graphs import FAMILIES, TRANSFORMER, UPSAMPLING
from server.bundle.manifest import Manifest
from server.bundle.variants import VARIANTS


def family_faults(manifest: Manifest) -> list[str]:
    """Says what is wrong with the family of a manifest, or what a network of it cannot have.

    A one-pass network takes no steps, so it keeps no states, cannot be forced to begin with a prefix, and has neither
    a shortlist nor what alignment and confidence are read from. It runs on CPUs, as a recurrent one does.
    """
    if manifest.family not in FAMILIES:
        return [f"family must be one of {', '.join(FAMILIES)}, not {manifest.family!r:.20}"]
    family, faults = manifest.family, []
    if family != TRANSFORMER:
        on_device = [name for name in manifest.variants if name in VARIANTS and VARIANTS[name].is_on_device]
        faults = [f"family {family} has no variant {name}" for name in on_device]
    if not manifest.is_one_pass:
        return faults
    _, target_prefixes = manifest.prefixes()
    has = {
        "states": bool(manifest.states),
        "alignment": manifest.alignment is not None,
        "confidence": manifest.confidence is not None,
        "target prefixes": any(target_prefixes),
        "shortlists": any(variant.has_shortlist for variant in manifest.variants.values()),
    }
    return [f"family one_pass has no {name}" for name, is_there in has.items() if is_there] + faults


def max_length_ratio(manifest: Manifest) -> float:
    """Returns how many times its source tokens a translation may be asked to have; 0 if it obeys no length."""
    return float(UPSAMPLING) if manifest.is_one_pass else 0.0
