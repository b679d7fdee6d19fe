"""An NVIDIA driver that does nothing but say what it is: `libcuda.so.1`, and `libnvidia-ml.so.1` for its management.

A process that is started with `environment` finds them in place of real ones. What they say can be told by variables,
so that a test has a driver that is too old, or a MIG instance.
"""

import os
import subprocess
from pathlib import Path

UUID = "00010203-0405-0607-0809-0a0b0c0d0e0f"
TOTAL_BYTES, FREE_BYTES = 16 << 30, 15 << 30

_BEGIN = """
#include <stdlib.h>
#include <string.h>
static int told(const char *name, int otherwise) { const char *t = getenv(name); return t ? atoi(t) : otherwise; }
"""
_DRIVER = f"""{_BEGIN}
int cuInit(unsigned flags) {{ return told("STUB_INIT", 0); }}
int cuDriverGetVersion(int *version) {{ *version = told("STUB_CUDA", 13000); return 0; }}
int cuDeviceGet(int *device, int ordinal) {{ *device = 7; return ordinal; }}
int cuDeviceGetName(char *name, int size, int device) {{ strncpy(name, "Stub GPU", size); return device != 7; }}
int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {{
    for (int i = 0; i < 16; i++) uuid[i] = i;
    return device != 7;
}}
int cuDeviceGetAttribute(int *value, int attribute, int device) {{
    int capability = told("STUB_CAPABILITY", 90);
    *value = attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10 : -1;
    return device != 7;
}}
int cuDeviceTotalMem_v2(size_t *bytes, int device) {{ *bytes = {TOTAL_BYTES}u; return device != 7; }}
int cuTensorMapEncodeTiled(void) {{ return 0; }} /* ONNX Runtime's provider does not load without */
int cuGetErrorName(int error, const char **name) {{ *name = "CUDA_ERROR_OF_THE_STUB"; return 0; }}
"""
_MANAGEMENT = f"""{_BEGIN}
int nvmlInitWithFlags(unsigned flags) {{ return told("STUB_NVML", 0); }}
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {{
    const char *kind = getenv("STUB_KIND");
    *device = (void *)7;
    return strncmp(uuid, kind ? kind : "GPU", 3) || strcmp(uuid + 4, "{UUID}") ? 6 : 0;
}}
int nvmlSystemGetDriverVersion(char *version, unsigned size) {{ strncpy(version, "580.00", size); return 0; }}
int nvmlDeviceGetMemoryInfo(void *device, size_t *memory) {{
    memory[0] = {TOTAL_BYTES}u;
    memory[1] = getenv("STUB_FREE_MIB") ? (size_t)told("STUB_FREE_MIB", 0) << 20 : {FREE_BYTES}u;
    return device != (void *)7;
}}
const char *nvmlErrorString(int error) {{ return "a stub's error"; }}
"""


def build_stub_driver(folder: Path) -> None:
    """Builds the libraries in a folder, with the C compiler.

    Raises:
        subprocess.CalledProcessError: One cannot be built.
    """
    for library, source in {"libcuda.so.1": _DRIVER, "libnvidia-ml.so.1": _MANAGEMENT}.items():
        (folder / f"{library}.c").write_text(source, encoding="ascii")
        command = ["cc", "-shared", "-fPIC", "-w", f"-Wl,-soname,{library}", "-o", str(folder / library)]
        subprocess.run([*command, str(folder / f"{library}.c")], check=True)


def environment(folder: Path, **told: str) -> dict[str, str]:
    """Returns the environment of a process that has the driver of a folder.

    Args:
        folder: Where it was built.
        told: Of `STUB_INIT` and `STUB_NVML` (results), `STUB_CUDA`, `STUB_CAPABILITY` (90 for 9.0), `STUB_KIND` (GPU or
            MIG), `STUB_FREE_MIB`; and other variables.
    """
    others = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    return {**others, "LD_LIBRARY_PATH": str(folder), **told}
