"""What a bundle holds and what was measured of it, in words for people."""

from typing import Any

from server.bundle.graphs import HALVES_FILE
from server.bundle.manifest import Manifest


def described_sizes(manifest: Manifest) -> str:
    """Returns the variants and what they take on disk, and what they share, for people."""
    sizes = {name: sum(facts.bytes for facts in each.files.values()) for name, each in manifest.variants.items()}
    for each in manifest.variants.values():
        if each.halves is not None:
            sizes[HALVES_FILE] = each.halves.bytes
    return ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in sizes.items())


def described_quality(found: dict[str, Any]) -> str:
    """Returns what was measured of a variant, as `Manifest.quality` has it, for people."""
    if "bleu" in found:
        return f"BLEU {found['bleu']:.2f}, chrF {found['chrf']:.2f} on {found['sentences']} dev sentences"
    return f"{found['identical']} of {found['sentences']} as in float32, chrF between them {found['chrf_to_fp32']}"
