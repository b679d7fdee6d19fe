"""What a bundle holds and what was measured of it, in words for people."""

from typing import Any

from server.bundle.manifest import Manifest


def described_sizes(manifest: Manifest) -> str:
    """Returns the variants and what they take on disk, for people."""
    megabytes = {name: sum(f.bytes for f in each.files.values()) / 1e6 for name, each in manifest.variants.items()}
    return ", ".join(f"{name} {size:.1f} MB" for name, size in megabytes.items())


def described_quality(found: dict[str, Any]) -> str:
    """Returns what was measured of a variant, as `Manifest.quality` has it, for people."""
    if "bleu" in found:
        return f"BLEU {found['bleu']:.2f}, chrF {found['chrf']:.2f} on {found['sentences']} dev sentences"
    return f"{found['identical']} of {found['sentences']} as in float32, chrF between them {found['chrf_to_fp32']}"
