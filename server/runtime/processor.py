"""What the processor says of itself."""

from pathlib import Path

_DOT_PRODUCT_FLAGS = {"avx_vnni", "avx512_vnni", "amx_int8", "asimddp", "i8mm"}
_CPU_INFO = Path("/proc/cpuinfo")


def has_int8_dot_product(cpu_info: Path = _CPU_INFO) -> bool:
    """Whether the processor says so (x86: AVX-VNNI, AVX-512 VNNI, AMX; Arm: dotprod, i8mm); False if unknown."""
    try:
        return not _DOT_PRODUCT_FLAGS.isdisjoint(cpu_info.read_text(encoding="ascii", errors="replace").split())
    except OSError:
        return False
