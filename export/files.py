"""A variant's graphs and weights, as the files of a bundle."""

import hashlib
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np
import onnx
from numpy.typing import DTypeLike, NDArray
from onnx import TensorProto

from export.calibrate import calibrate, calibrate_one_pass, with_mixed
from export.graph import OPSETS
from export.graphs import copy_rows_graph, copy_states_graph, encoder_graph, step_graph
from export.one_pass import one_pass_graph
from export.quantize import quantize_graph
from export.states import states_of
from model.network import Network
from model.one_pass import OnePass
from model.search import Stepwise
from model.transformer import Transformer
from server.bundle.files import describe_file
from server.bundle.graphs import (
    COPY_ROWS_FILE,
    COPY_STATES_FILE,
    EMBEDDING,
    ENCODER_FILE,
    ONE_PASS_FILE,
    WEIGHTS_FILE,
    has_fixed,
    step_forms,
)
from server.bundle.variant_files import Variant
from server.bundle.variants import VARIANTS

logger = logging.getLogger(__name__)

EXACT = "cpu-fp32"  # what the others are measured by
FOR_CPUS = (EXACT, "cpu-int8")  # what commands write unless they are told otherwise, with a GPU or without
# In values, so that a weight is at the same place in float32 and in float16: see `export.halves`.
_ALIGNMENT = 32
_INLINE = 64  # smaller tensors stay in the graphs: shape inference sees them


def check_variants(model: Network, variants: Collection[str]) -> None:
    """Raises ValueError unless the variants are some that can be written of a network."""
    known = [name for name in VARIANTS if isinstance(model, Transformer) or not VARIANTS[name].is_on_device]
    if not variants or not set(variants) <= set(known):
        given = ", ".join(variants) or "none"
        raise ValueError(
            f"variants must be some of {', '.join(known)} for the family {model.config.family}, not {given}"
        )


def write_variant(
    model: Network,
    bundle: Path,
    name: str,
    sources: list[list[int]],
    targets: list[list[int]],
    *,
    has_shortlist: bool = False,
    let_go: Callable[[], None] | None = None,
) -> Variant:
    """Writes one variant's graphs and weights.

    Args:
        model: in evaluation mode.
        bundle: the directory to make the variant's own one in.
        name: one of `server.bundle.variants.VARIANTS`; cpu-int8 needs cpu-fp32 there, with which it is calibrated.
        sources: token ids with eos, to calibrate int8 with.
        targets: token ids starting with bos, of the same sentences.
        has_shortlist: write the steps with a shortlist too.
        let_go: frees the memory of the model's weights until they are read again; called when a graph has them.
    """
    cache_dtype = VARIANTS[name].dtype
    dtype = np.dtype("float32" if cache_dtype == "int8" else cache_dtype)
    builders = _builders(model, name, dtype, has_shortlist)
    ranges = None
    if cache_dtype == "int8":
        mixed = with_mixed(sources, targets, model.config.max_positions)
        ranges = (
            calibrate_one_pass(bundle / EXACT / ONE_PASS_FILE, mixed[0])
            if isinstance(model, OnePass)
            else calibrate(bundle / EXACT, *mixed)
        )
    directory = bundle / name
    directory.mkdir()
    embedding_offset = save_graphs(directory, _build(builders, ranges, let_go), dtype)
    files = {path.name: describe_file(path) for path in sorted(directory.iterdir())}
    logger.info("%s: %.1f MB", name, sum(facts.bytes for facts in files.values()) / 1e6)
    return Variant(dtype=cache_dtype, embedding_offset=embedding_offset, opsets=OPSETS, files=files)


def _builders(
    model: Network, name: str, dtype: DTypeLike, has_shortlist: bool
) -> dict[str, Callable[[], onnx.ModelProto]]:
    """Returns what builds each of a variant's graphs."""
    if isinstance(model, OnePass):
        return {ONE_PASS_FILE: partial(one_pass_graph, model, dtype)}
    assert isinstance(model, Stepwise), "there is no other family"
    builders: dict[str, Callable[[], onnx.ModelProto]] = {ENCODER_FILE: partial(encoder_graph, model, dtype)}
    builders |= {form.file: partial(step_graph, model, dtype, form) for form in step_forms(name, has_shortlist)}
    if VARIANTS[name].is_on_device:
        builders[COPY_ROWS_FILE] = partial(copy_rows_graph, model.config, dtype)
        if has_fixed(states_of(model.config)):
            builders[COPY_STATES_FILE] = partial(copy_states_graph, model.config)
    return builders


def _build(
    builders: Mapping[str, Callable[[], onnx.ModelProto]],
    ranges: Mapping[str, NDArray[np.float32]] | None,
    let_go: Callable[[], None] | None,
) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Yields one graph after the other, with int8 if there are ranges, and keeps none."""
    for file, build in builders.items():
        yield file, _build_one(build, ranges, let_go)


def _build_one(
    build: Callable[[], onnx.ModelProto],
    ranges: Mapping[str, NDArray[np.float32]] | None,
    let_go: Callable[[], None] | None,
) -> onnx.ModelProto:
    graph = build()
    if let_go is not None:
        let_go()
    return graph if ranges is None else quantize_graph(graph, ranges)


def save_graphs(directory: Path, graphs: Iterable[tuple[str, onnx.ModelProto]], dtype: DTypeLike = np.float32) -> int:
    """Writes the graphs with their weights in one `WEIGHTS_FILE`, in which equal tensors are stored once.

    Args:
        directory: to write to.
        graphs: files and what goes into them, one after the other, so that no two need be in memory.
        dtype: of most weights, or what they were quantised from.

    Returns:
        Where in it the token embedding begins, in bytes.
    """
    itemsize = np.dtype(dtype).itemsize
    places: dict[str, int] = {}
    embedding_offset = -1
    with (directory / WEIGHTS_FILE).open("wb") as weights:
        for file, model in graphs:
            found = _move_weights(model, weights, places, itemsize)
            embedding_offset = embedding_offset if found is None else found
            onnx.save(model, directory / file)
            onnx.checker.check_model(directory / file)
            del model  # before the next one is made
    return embedding_offset


def _move_weights(model: onnx.ModelProto, weights: IO[bytes], places: dict[str, int], itemsize: int) -> int | None:
    """Moves a graph's weights to a file and returns where the token embedding is in it, if the graph has one.

    A function of its own, since whoever holds one tensor of a graph holds the memory of all.
    """
    embedding_offset = None
    for tensor in model.graph.initializer:
        data = tensor.raw_data
        if len(data) < _INLINE * itemsize:
            continue
        key = hashlib.sha256(data).hexdigest()
        if key not in places:
            weights.write(b"\0" * (-weights.tell() % (_ALIGNMENT * itemsize)))
            places[key] = weights.tell()
            weights.write(data)
        if tensor.name == EMBEDDING:
            embedding_offset = places[key]
        facts = {"location": WEIGHTS_FILE, "offset": str(places[key]), "length": str(len(data))}
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.extend(onnx.StringStringEntryProto(key=k, value=v) for k, v in facts.items())
    return embedding_offset
