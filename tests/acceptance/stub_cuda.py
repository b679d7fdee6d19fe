"""CUDA libraries that do nothing, so that ONNX Runtime's CUDA provider loads where there is neither CUDA nor a GPU.

What the provider asks of them is read from the provider itself, so another version of it may ask for more. With these
libraries a session assigns its nodes to providers as it would on a GPU; running one gives nothing of use.
"""

import ctypes
import os
import re
import subprocess
from collections import defaultdict
from pathlib import Path

TOOLS = ("cc", "readelf")

_NEEDED = re.compile(r"\(NEEDED\).*\[(libcu\S+)\]")
_UNDEFINED = re.compile(r" UND ((?:__)?cu\w+)(?:@(\S+))?")
_DRIVER = "libcuda.so.1"  # alone has no symbol versions

# Every other function answers 0, which is success, and leaves its arguments alone.
_ANSWERS = {
    "int {}(int *value) {{ *value = 0; return 0; }}": ["cudaGetDevice"],
    "int {}(int *value) {{ *value = 1; return 0; }}": ["cudaGetDeviceCount", "cudaDeviceGetAttribute"],
    "int {}(int *value) {{ *value = 13000; return 0; }}": ["cudaDriverGetVersion", "cudaRuntimeGetVersion"],
    # The structure is longer; these zeros are there so that no session depends on what the memory held before.
    "int {}(void *properties) {{ memset(properties, 0, 512); return 0; }}": ["cudaGetDeviceProperties"],
    "int {}(size_t *free, size_t *total) {{ *free = *total = (size_t)1 << 34; return 0; }}": ["cudaMemGetInfo"],
    "int {}(void **memory, size_t bytes) {{ *memory = malloc(bytes); return *memory == NULL; }}": [
        "cudaHostAlloc",
        "cudaMalloc",
        "cudaMallocHost",
    ],
    "int {}(void **handle) {{ static char object; *handle = &object; return 0; }}": [
        "cublasCreate_v2",
        "cublasLtCreate",
        "cudaEventCreateWithFlags",
        "cudaStreamCreate",
        "cudaStreamCreateWithFlags",
    ],
    'const char *{}(void) {{ return "a stub"; }}': [
        "cublasGetStatusName",
        "cublasGetStatusString",
        "cudaGetErrorName",
        "cudaGetErrorString",
    ],
    "void *{}(void) {{ static char object; return &object; }}": ["__cudaRegisterFatBinary"],
}
_SOURCES = {function: source.format(function) for source, functions in _ANSWERS.items() for function in functions}


def load_stub_cuda(provider: Path, folder: Path) -> None:
    """Builds the libraries and loads them into this process, where the provider finds them before any others.

    Args:
        provider: `libonnxruntime_providers_cuda.so`.
        folder: To build them in.

    Raises:
        subprocess.CalledProcessError: The provider cannot be read, or a library cannot be built.
    """
    for library, functions in _wanted(provider).items():
        ctypes.CDLL(str(_build(library, functions, folder)), mode=ctypes.RTLD_GLOBAL)


def _wanted(provider: Path) -> dict[str, set[str]]:
    """Returns the functions that the provider wants, by library."""
    command = ["readelf", "--wide", "--dynamic", "--dyn-syms", str(provider)]
    environment = {**os.environ, "LC_ALL": "C"}
    text = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    wanted: dict[str, set[str]] = defaultdict(set)
    for library in _NEEDED.findall(text):
        wanted[library] = set()
    for function, library in _UNDEFINED.findall(text):
        wanted[library or _DRIVER].add(function)
    return wanted


def _build(library: str, functions: set[str], folder: Path) -> Path:
    source, versions, built = (folder / f"{library}{suffix}" for suffix in (".c", ".map", ""))
    bodies = [_SOURCES.get(function, f"int {function}(void) {{ return 0; }}") for function in sorted(functions)]
    source.write_text("\n".join(["#include <stdlib.h>", "#include <string.h>", *bodies, ""]), encoding="ascii")
    versions.write_text(f"{library} {{ global: *; }};\n", encoding="ascii")
    command = ["cc", "-shared", "-fPIC", "-w", "-o", str(built), str(source), f"-Wl,-soname,{library}"]
    if library != _DRIVER:
        command.append(f"-Wl,--version-script={versions}")
    subprocess.run(command, check=True)
    return built
