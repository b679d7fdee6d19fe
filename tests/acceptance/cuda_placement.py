"""Where the CUDA provider puts the nodes of the graphs for a GPU, found out without one.

    python -m tests.acceptance.cuda_placement [BUNDLE]

Every node has to be on the GPU. Nodes that compute shapes from shapes are the exception: the host knows shapes, and
other nodes want them there. The graph may not copy between host and device, and a session that captures CUDA graphs
has to accept the decoder step. Nothing is run, so this says nothing of numbers. It needs onnxruntime-gpu, a C compiler
and readelf.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx
import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import Fail

from server.bundle.bundle import Bundle, open_bundle
from server.bundle.graphs import ALIGNER_FILE
from tests.acceptance.report import EXIT_NOT_RUN, EXIT_TOOL_MISSING, Check, print_checks
from tests.acceptance.stub_cuda import TOOLS, load_stub_cuda

_ROOT = Path(__file__).parents[2]
_BUILTIN = _ROOT / "server" / "builtin" / "en-de"
_VARIANT = "cuda-fp16"
_PROVIDER_LIBRARY = Path(onnxruntime.__file__).parent / "capi" / "libonnxruntime_providers_cuda.so"
_CUDA = "CUDAExecutionProvider"
_STEP = "decoder_step.onnx"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """What became of a graph.

    Attributes:
        num_nodes: Nodes that were assigned, those of subgraphs among them.
        on_host: Names of the nodes that are not on the GPU.
        of_shapes: Names of the nodes that have nothing but shapes and constants to compute with.
        copies: What copies between host and device amid the graph, and which tensor.
        refusal: Why a session that captures CUDA graphs does not take it; empty when it does.
    """

    num_nodes: int
    on_host: list[str]
    of_shapes: set[str]
    copies: list[str]
    refusal: str


def place(graph: Path, folder: Path) -> Placement:
    """Opens a graph with the CUDA provider and looks at what it made of it.

    Args:
        graph: The file.
        folder: For temporary files.
    """
    placed = folder / graph.name
    session = _open(graph, captures=False, placed=placed)
    assigned = [
        (group.ep_name, node) for group in session.get_provider_graph_assignment_info() for node in group.get_nodes()
    ]
    nodes = _nodes(onnx.load(placed, load_external_data=False).graph)
    return Placement(
        num_nodes=len(assigned),
        on_host=[node.name for provider, node in assigned if provider != _CUDA],
        of_shapes=set(_of_shapes(onnx.load(graph, load_external_data=False).graph)),
        copies=[
            f"{node.op_type} of {node.input[0].removesuffix(f'_{_CUDA}')}"
            for node in nodes
            if node.op_type.startswith("Memcpy")
        ],
        refusal=_refusal(graph),
    )


def check_graph(graph: Path, folder: Path) -> list[Check]:
    """Places a graph and judges it.

    Args:
        graph: The file, one of a variant's.
        folder: For temporary files.

    Returns:
        The lines of the table.
    """
    found = place(graph, folder)
    is_step, is_aligner = graph.name == _STEP, graph.name == ALIGNER_FILE  # the latter runs seldom: a length may travel
    return [
        Check(f"{graph.name}: nodes on the GPU", f"{found.num_nodes - len(found.on_host)} of {found.num_nodes}"),
        Check(
            f"{graph.name}: nodes on the host",
            ", ".join(found.on_host) or "none",
            "only nodes of shapes",
            found.of_shapes.issuperset(found.on_host),
        ),
        Check(
            f"{graph.name}: copies",
            ", ".join(found.copies) or "none",
            "" if is_aligner else "none",
            None if is_aligner else not found.copies,
        ),
        Check(
            f"{graph.name}: capture of CUDA graphs",
            found.refusal or "accepted",
            "accepted" if is_step else "",
            not found.refusal if is_step else None,
        ),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Checks the graphs and returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.cuda_placement", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("bundle", type=Path, nargs="?", default=_BUILTIN, help=f"with a {_VARIANT} (the built-in)")
    directory: Path = parser.parse_args(arguments).bundle
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        print(f"SKIPPED: {', '.join(missing)} not found", file=sys.stderr)
        return EXIT_TOOL_MISSING
    absent = [str(file) for file in (_PROVIDER_LIBRARY, directory / _VARIANT) if not file.exists()]
    if absent:
        print(f"not found: {', '.join(absent)}", file=sys.stderr)
        return EXIT_NOT_RUN
    onnxruntime.set_default_logger_severity(3)
    with tempfile.TemporaryDirectory() as folder:
        load_stub_cuda(_PROVIDER_LIBRARY, Path(folder))
        graphs = _unpack(open_bundle(directory), Path(folder, "variant"))
        return print_checks([check for graph in graphs for check in check_graph(graph, Path(folder))])


def _unpack(bundle: Bundle, folder: Path) -> list[Path]:
    """Writes the variant with all its weights in one file, from which a graph's path opens it; returns the graphs."""
    folder.mkdir()
    for name in bundle.manifest.variants[_VARIANT].files:
        (folder / name).write_bytes(bundle.read(f"{_VARIANT}/{name}"))
    return sorted(folder.glob("*.onnx"))


def _open(graph: Path, *, captures: bool, placed: Path | None = None) -> onnxruntime.InferenceSession:
    """Opens a graph as the server does.

    Args:
        graph: The file.
        captures: Whether to capture CUDA graphs.
        placed: Where to write the graph as the session would run it.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    if placed is not None:
        options.optimized_model_filepath = str(placed)
    providers = [(_CUDA, {"enable_cuda_graph": str(int(captures))})]
    session = onnxruntime.InferenceSession(graph, options, providers=providers)
    assert session.get_providers()[0] == _CUDA, "the CUDA provider did not load"
    return session


def _refusal(graph: Path) -> str:
    try:
        _open(graph, captures=True)
    except Fail as error:
        return str(error).rpartition(" as ")[2]  # "... cannot use the graph capture feature as requested ... as REASON"
    return ""


def _of_shapes(graph: onnx.GraphProto) -> Iterator[str]:
    """Yields the names of the nodes whose inputs are shapes, constants, or made of these."""
    known = {"", *(initializer.name for initializer in graph.initializer)}
    for node in graph.node:
        if node.op_type == "Shape" or known.issuperset(node.input):
            known.update(node.output)
            yield node.name


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Yields the nodes of a graph and of its subgraphs."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            yield from _nodes(attribute.g)


if __name__ == "__main__":
    sys.exit(main())
