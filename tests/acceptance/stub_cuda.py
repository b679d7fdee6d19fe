"""CUDA libraries that do nothing, so that ONNX Runtime's CUDA provider loads where there is neither CUDA nor a GPU.

What the provider asks of them is read from the provider itself, so another version of it may ask for more. With these
libraries a session assigns its nodes to providers as it would on a GPU; running one takes the memory that it would take
there, captures and replays graphs, and computes nothing.
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
_RUNTIME = "libcudart.so.13"
_DRIVER = "libcuda.so.1"  # it and cuDNN have no symbol versions

# Every other function answers 0, which is success, and leaves its arguments alone.
_ANSWERS = {
    "int {}(int *value) {{ *value = 0; return 0; }}": ["cudaGetDevice"],
    "int {}(int *value) {{ *value = 1; return 0; }}": ["cudaGetDeviceCount", "cudaDeviceGetAttribute"],
    "int {}(int *value) {{ *value = 13000; return 0; }}": ["cudaDriverGetVersion", "cudaRuntimeGetVersion"],
    # The structure is longer; these zeros are there so that no session depends on what the memory held before. Then
    # what kernels are chosen by: warps, threads, grids, and the capability of an H100, 9.0. From there on ONNX Runtime
    # prefers cuDNN's attention unless it is told another one; cuDNN cannot plan it here, and the run fails.
    "int {}(char *properties) {{ memset(properties, 0, 512); *(size_t *)(properties + 288) = (size_t)1 << 34;"
    " int *p = (int *)(properties + 296); p[0] = 49152; p[2] = 65536; p[3] = 32; p[6] = p[7] = p[8] = 1024; p[9] = 64;"
    " p[10] = 2147483647; p[11] = p[12] = 65535; p[16] = 9; p[22] = 132; return 0; }}": ["cudaGetDeviceProperties"],
    "int {}(size_t *free, size_t *total) {{ *free = *total = (size_t)1 << 34; return 0; }}": ["cudaMemGetInfo"],
    "int {}(void **memory, size_t bytes) {{ *memory = malloc(bytes); return *memory == NULL; }}": [
        "cudaHostAlloc",
        "cudaMallocHost",
    ],
    "size_t taken, taken_amid, captures; int is_capturing; int {}(void **memory, size_t bytes)"
    " {{ taken += bytes; taken_amid += is_capturing ? bytes : 0; return !(*memory = malloc(bytes)); }}": ["cudaMalloc"],
    "extern int is_capturing; int {}(void) {{ is_capturing = 1; return 0; }}": ["cudaStreamBeginCapture"],
    "extern int is_capturing; extern size_t captures; int {}(void *stream, void **graph)"
    " {{ static char object; *graph = &object; is_capturing = 0; captures++; return 0; }}": ["cudaStreamEndCapture"],
    "int {}(void **handle) {{ static char object; *handle = &object; return 0; }}": [
        "cublasCreate_v2",
        "cublasLtCreate",
        "cudaEventCreateWithFlags",
        "cudaGraphInstantiate",
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


# cuDNN is loaded when it is first needed, by name, so that the provider does not tell what it wants.
_CUDNN = "libcudnn.so.9"
_CUDNN_NAMES = re.compile(rb"\0(cudnn[A-Z]\w+)(?=\0)")
_CUDNN_ANSWERS = {
    "cudnnGetVersion": "size_t cudnnGetVersion(void) { return 91900; }",
    "cudnnGetCudartVersion": "size_t cudnnGetCudartVersion(void) { return 13000; }",
    "cudnnGetErrorString": 'const char *cudnnGetErrorString(void) { return "a stub"; }',
    **{
        name: f"int {name}(void *h, void *r, void *a, void *b, size_t *bytes) {{ *bytes = 0; return 0; }}"
        for name in ("cudnnGetReductionIndicesSize", "cudnnGetReductionWorkspaceSize")
    },
}


def load_stub_cuda(provider: Path, folder: Path) -> ctypes.CDLL:
    """Builds the libraries and loads them into this process, where the provider finds them before any others.

    Args:
        provider: `libonnxruntime_providers_cuda.so`.
        folder: To build them in.

    Returns:
        The runtime library, with counters of type size_t: `taken`, bytes of device memory that were asked for;
        `taken_amid`, those of them amid a capture, which CUDA would refuse; `captures`.

    Raises:
        subprocess.CalledProcessError: The provider cannot be read, or a library cannot be built.
    """
    loaded = {
        library: ctypes.CDLL(str(_build(library, functions, folder)), mode=ctypes.RTLD_GLOBAL)
        for library, functions in _wanted(provider).items()
    }
    return loaded[_RUNTIME]


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
    wanted[_CUDNN] = {name.decode() for name in _CUDNN_NAMES.findall(provider.read_bytes())}
    return wanted


def _source(function: str) -> str:
    if function.startswith("cudnnCreate"):
        return f"int {function}(void **handle) {{ static char object; *handle = &object; return 0; }}"
    known = _SOURCES | _CUDNN_ANSWERS
    return known.get(function, f"int {function}(void) {{ return 0; }}")


def _build(library: str, functions: set[str], folder: Path) -> Path:
    source, versions, built = (folder / f"{library}{suffix}" for suffix in (".c", ".map", ""))
    bodies = [_source(function) for function in sorted(functions)]
    source.write_text("\n".join(["#include <stdlib.h>", "#include <string.h>", *bodies, ""]), encoding="ascii")
    versions.write_text(f"{library} {{ global: *; }};\n", encoding="ascii")
    command = ["cc", "-shared", "-fPIC", "-w", "-o", str(built), str(source), f"-Wl,-soname,{library}"]
    if library not in (_CUDNN, _DRIVER):
        command.append(f"-Wl,--version-script={versions}")
    subprocess.run(command, check=True)
    return built
