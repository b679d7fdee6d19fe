"""The variants that a bundle may have, a row each: what device and precision, and what goes with them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantKind:
    """One precision for one device, as every bundle may have it.

    Attributes:
        device: "cpu" or "cuda", as ONNX Runtime calls its memory too.
        dtype: of the caches and the token embedding, as numpy names it.
        is_exact: a sentence's ids are the same on every processor, and whatever its neighbours.
        max_cache_mib: default of the setting: in cpu-int8 2,048, in cpu-fp32 2,730 and in cuda-fp16 65,536 source
            tokens of Transformer-base fit.
        max_encode_tokens: default of the setting.
    """

    device: str
    dtype: str
    is_exact: bool
    max_cache_mib: int
    max_encode_tokens: int

    @property
    def is_on_device(self) -> bool:
        """Whether its caches stay in the memory of its device; if not, they are the host's."""
        return self.device != "cpu"


DEVICES = ("cpu", "cuda")
VARIANTS = {
    "cpu-fp32": VariantKind(device="cpu", dtype="float32", is_exact=True, max_cache_mib=128, max_encode_tokens=256),
    "cpu-int8": VariantKind(device="cpu", dtype="int8", is_exact=False, max_cache_mib=24, max_encode_tokens=256),
    "cuda-fp16": VariantKind(
        device="cuda", dtype="float16", is_exact=False, max_cache_mib=1536, max_encode_tokens=4096
    ),
}
