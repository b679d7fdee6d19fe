"""What a manifest may say of a network by its family."""

from server.bundle.graphs import FAMILIES, ONE_PASS, RECURRENT, TRANSFORMER, UPSAMPLING
from server.bundle.manifest import Manifest
from server.bundle.variants import VARIANTS

# What a network of a family cannot have. A one-pass network takes no steps, so it keeps no states, cannot be forced to
# begin with a prefix, and has neither a shortlist nor what alignment and confidence are read from.
_LACKS = {
    TRANSFORMER: (),
    RECURRENT: ("alignment",),
    ONE_PASS: ("states", "alignment", "confidence", "target prefixes", "shortlists"),
}


def family_faults(manifest: Manifest) -> list[str]:
    """Says what is wrong with the family of a manifest, or what a network of it cannot have.

    Variants for a GPU are for Transformers alone.
    """
    family = manifest.family
    if family not in FAMILIES:
        return [f"family must be one of {', '.join(FAMILIES)}, not {family!r:.20}"]
    has = {
        "states": bool(manifest.states),
        "alignment": manifest.alignment is not None,
        "confidence": manifest.confidence is not None,
        "target prefixes": any(manifest.prefixes()[1]),
        "shortlists": any(variant.has_shortlist for variant in manifest.variants.values()),
    }
    faults = [f"family {family} has no {name}" for name in _LACKS[family] if has[name]]
    on_device = [name for name in manifest.variants if name in VARIANTS and VARIANTS[name].is_on_device]
    return faults + [f"family {family} has no variant {name}" for name in on_device if family != TRANSFORMER]


def max_length_ratio(manifest: Manifest) -> float:
    """Returns how many times its source tokens a translation may be asked to have; 0 if it obeys no length."""
    return float(UPSAMPLING) if manifest.is_one_pass else 0.0
