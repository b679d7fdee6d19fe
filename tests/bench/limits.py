"""What the machine could do at best: how fast it reads memory and multiplies matrices, and what that allows at most.

Reading is numpy's bitwise or over a buffer of int64, one SIMD instruction for 64 bytes, in threads that do not hold the
GIL: maxima and dot products take as long, so it is the memory that is timed. A buffer as large as the weights that a
step reads may stay in the last cache, as the weights may; the larger one may not. Every thread reads the whole buffer,
as every lane reads all weights, each beginning somewhere else, so that none fetches for another. ONNX Runtime reads the
weights of a matrix that exceeds the second-level cache no faster than that when it multiplies one row.

Multiplying is ONNX Runtime's own MatMulIntegerToFloat and Gemm, one session of one thread on each core. So its peak is
that of the best code we have, not the processor's on paper; another library's may differ.

The bounds are upper ones. Offline, all linear maps and attentions run at the peak, and softmax, normalisation, beams,
admission and Python cost nothing. One row alone reads each weight once per step, and nothing else.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from model.config import TransformerConfig
from tests.bench.models import Model
from tests.bench.record import Row
from tests.bench.report import print_table
from tests.bench.systems import Ids, Settings
from tests.bench.worker import Worker

Shape = tuple[int, int]  # K x N of a weight

_LARGE_BYTES = 512 * 2**20
_WIDE_SHAPES: tuple[Shape, ...] = ((2048, 512), (1024, 1024), (2048, 2048))
_ROWS = (32, 256, 1024)
_REPEATS = 9  # the best one counts: a limit is what others on the machine took nothing of
_SECONDS = 0.05  # of one repeat
_WEIGHT_BYTES = {"int8": 1, "fp32": 4}
_OUTPUT_BYTES = {"int8": 8, "fp32": 4}  # bias, and in int8 a scale


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What translating a text greedily takes. One operation is a multiplication or an addition.

    Attributes:
        encoder: operations in each linear map, per source token, eos included.
        decoder: the same per decoder step of one sentence.
        source_tokens: of the text.
        steps: one for each target token and for eos.
        attention: operations of all attentions over the whole text.
    """

    encoder: Counter[Shape]
    decoder: Counter[Shape]
    source_tokens: int
    steps: int
    attention: int

    @property
    def linear(self) -> Counter[Shape]:
        """Operations in each linear map over the whole text."""
        return Counter(
            {
                shape: self.encoder[shape] * self.source_tokens + self.decoder[shape] * self.steps
                for shape in self.encoder | self.decoder
            }
        )

    def step_bytes(self, precision: str) -> int:
        """Returns the bytes of all weights, scales and biases that one step reads."""
        weights = sum(self.decoder.values()) // 2
        outputs = sum(operations // (2 * shape[0]) for shape, operations in self.decoder.items())
        return weights * _WEIGHT_BYTES[precision] + outputs * _OUTPUT_BYTES[precision]


def work_of(config: TransformerConfig, lengths: Sequence[tuple[int, int]]) -> Work:
    """Counts the operations of a model on a text.

    Args:
        config: of the model.
        lengths: of each sentence the source tokens, eos included, and the target tokens, without.
    """
    width, hidden = config.d_model, config.ffn_dim
    layer = [(width, 3 * width), (width, width), (width, hidden), (hidden, width)]
    encoder = [*layer * config.encoder_layers, *[(width, 2 * width)] * config.decoder_layers]  # keys and values
    decoder = [*[*layer, (width, width), (width, width)] * config.decoder_layers, (width, config.vocab_size)]
    encoder_pairs = sum(source**2 for source, _ in lengths) * config.encoder_layers
    decoder_pairs = sum((target + 1) * (target + 2) // 2 + (target + 1) * source for source, target in lengths)
    return Work(
        encoder=_operations(encoder),
        decoder=_operations(decoder),
        source_tokens=sum(source for source, _ in lengths),
        steps=sum(target + 1 for _, target in lengths),
        attention=4 * width * (encoder_pairs + decoder_pairs * config.decoder_layers),
    )


def measure_limits(model: Model, settings: Settings, sources: Sequence[Ids], *, quick: bool) -> list[Row]:
    """Measures the machine and works out what it allows a model on a text; prints both.

    Args:
        model: whose shapes count.
        settings: of our engine, which says how long the translations are.
        sources: the text.
        quick: fewer and smaller shapes.
    """
    cores = len(os.sched_getaffinity(0))
    with Worker(settings) as worker:
        targets = worker.translate(sources, beam_size=1)["lengths"]
    work = work_of(model.checkpoint.config, list(zip(map(len, sources), targets, strict=True)))
    counts = sorted({1, cores})
    sizes = {
        "int8 weights of a step": work.step_bytes("int8"),
        "fp32 weights of a step": work.step_bytes("fp32"),
        "larger": _LARGE_BYTES // (8 if quick else 1),
    }
    reading = {name: {n: read_bytes_per_second(size, n) for n in counts} for name, size in sizes.items()}
    shapes = sorted({*work.linear, *_WIDE_SHAPES[: 1 if quick else None]})
    rows = _ROWS[1:2] if quick else _ROWS
    peaks = {
        precision: {
            n: {shape: max(operations_per_second(precision, shape, each, n) for each in rows) for shape in shapes}
            for n in counts
        }
        for precision in _WEIGHT_BYTES
    }
    bounds = _bounds(work, len(sources), reading, peaks)
    facts = {
        "decoder operations per target token": sum(work.decoder.values()),
        "encoder operations per source token": sum(work.encoder.values()),
        "attention operations per target token, both sides": work.attention / work.steps,
        "source tokens per target token": work.source_tokens / work.steps,
        "int8 bytes that a step reads": work.step_bytes("int8"),
        "fp32 bytes that a step reads": work.step_bytes("fp32"),
    }
    _print(counts, sizes, reading, peaks, facts, bounds)
    found = [
        *((f"reading, {name}, {n} threads", "GB/s", each[n] / 1e9) for name, each in reading.items() for n in each),
        *(
            (f"{precision} {k} x {width}, {n} threads", "billions of operations/s", speed / 1e9)
            for precision, by_count in peaks.items()
            for n, speeds in by_count.items()
            for (k, width), speed in speeds.items()
        ),
        *(("the text", name, float(value)) for name, value in facts.items()),
        *((f"at most, {n} threads", name, each[n]) for name, each in bounds.items() for n in each),
    ]
    return [
        Row(section="limits", model=model.name, setting=what, measure=name, ours=value) for what, name, value in found
    ]


def read_bytes_per_second(num_bytes: int, num_threads: int) -> float:
    """Returns the memory bandwidth of so many threads together, each of which reads a whole buffer again and again."""
    chunks = np.array_split(np.ones(num_bytes // 8, np.int64), num_threads)  # ones: pages of zeros may be one page

    def reader(first: int) -> Callable[[], object]:
        own = [*chunks[first:], *chunks[:first]]
        return lambda: [np.bitwise_or.reduce(chunk) for chunk in own]

    return _best_rate([reader(i) for i in range(num_threads)], num_bytes)


def operations_per_second(precision: str, shape: Shape, num_rows: int, num_threads: int) -> float:
    """Returns the operations of so many threads together, each with a session of its own.

    Args:
        precision: "int8" or "fp32".
        shape: of the weight.
        num_rows: of the activations.
        num_threads: at work at once.
    """
    multiplications = [linear_map(precision, shape, num_rows) for _ in range(num_threads)]
    return _best_rate(multiplications, 2 * num_rows * shape[0] * shape[1])


def linear_map(precision: str, shape: Shape, num_rows: int) -> Callable[[], NDArray[np.float32]]:
    """Returns a function that multiplies random activations by random weights, as our graphs do."""
    rng = np.random.default_rng(0)
    constants: dict[str, NDArray[np.generic]]
    if precision == "int8":
        constants = {
            "w": rng.integers(-127, 128, shape, np.int8),
            "x_scale": np.array(0.01, np.float32),
            "w_scale": np.full(shape[1], 0.01, np.float32),
            "x_zero": np.array(128, np.uint8),
            "bias": np.ones(shape[1], np.float32),
        }
        inputs = ["x", "w", "x_scale", "w_scale", "x_zero", "", "bias"]
        node = helper.make_node("MatMulIntegerToFloat", inputs, ["y"], domain="com.microsoft")
        x: NDArray[np.generic] = rng.integers(0, 256, (num_rows, shape[0]), np.uint8)
    else:
        constants = {"w": rng.random(shape, np.float32), "bias": np.ones(shape[1], np.float32)}
        node = helper.make_node("Gemm", ["x", "w", "bias"], ["y"])
        x = rng.random((num_rows, shape[0]), np.float32)
    graph = helper.make_graph(
        [node],
        "linear",
        [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (num_rows, shape[1]))],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])

    def multiply() -> NDArray[np.float32]:
        y: NDArray[np.float32] = session.run(None, {"x": x})[0]
        return y

    return multiply


def _operations(shapes: Sequence[Shape]) -> Counter[Shape]:
    operations: Counter[Shape] = Counter()
    for rows, columns in shapes:
        operations[rows, columns] += 2 * rows * columns
    return operations


def _seconds(work: Work, speeds: dict[Shape, float]) -> float:
    """Returns how long the text takes if each linear map has its own speed, and attention the highest of all."""
    linear = sum(operations / speeds[shape] for shape, operations in work.linear.items())
    return linear + work.attention / max(speeds.values())


def _bounds(
    work: Work,
    num_sentences: int,
    reading: dict[str, dict[int, float]],
    peaks: dict[str, dict[int, dict[Shape, float]]],
) -> dict[str, dict[int, float]]:
    """Returns what the machine allows at most, by number of threads."""
    bounds: dict[str, dict[int, float]] = {}
    for precision, by_count in peaks.items():
        tokens = work.steps - num_sentences
        bounds[f"{precision} offline, tokens/s, at the best shape's peak"] = {
            n: tokens / _seconds(work, dict.fromkeys(work.linear, max(speeds.values())))
            for n, speeds in by_count.items()
        }
        bounds[f"{precision} offline, tokens/s, at its own shapes' peaks"] = {
            n: tokens / _seconds(work, speeds) for n, speeds in by_count.items()
        }
        bounds[f"{precision}, one row alone, steps/s"] = {
            n: speed / work.step_bytes(precision) for n, speed in reading[f"{precision} weights of a step"].items()
        }
    return bounds


def _best_rate(functions: Sequence[Callable[[], object]], amount: float) -> float:
    """Returns the most that threads got done per second together, if each call of one's function does `amount`."""
    functions[0]()  # warms up
    started = time.perf_counter()
    functions[0]()
    calls = max(1, round(_SECONDS / (time.perf_counter() - started)))

    def call(function: Callable[[], object]) -> None:
        for _ in range(calls):
            function()

    best = 0.0
    with ThreadPoolExecutor(len(functions)) as pool:
        for _ in range(_REPEATS):
            started = time.perf_counter()
            list(pool.map(call, functions))
            best = max(best, len(functions) * calls * amount / (time.perf_counter() - started))
    return best


def _print(
    counts: Sequence[int],
    sizes: dict[str, int],
    reading: dict[str, dict[int, float]],
    peaks: dict[str, dict[int, dict[Shape, float]]],
    facts: dict[str, float],
    bounds: dict[str, dict[int, float]],
) -> None:
    threads = [f"{n} thread{'s' * (n > 1)}" for n in counts]
    rows = [
        [what, f"{sizes[what] / 1e6:.1f}", *(speed / 1e9 for speed in each.values())] for what, each in reading.items()
    ]
    print_table("Reading memory, GB/s", ["buffer", "MB", *threads], rows)
    columns = [(precision, n) for precision in peaks for n in counts]
    rows = [
        [f"{shape[0]} x {shape[1]}", *(peaks[precision][n][shape] / 1e9 for precision, n in columns)]
        for shape in peaks["int8"][counts[0]]
    ]
    header = [f"{precision}, {label}" for precision in peaks for label in threads]
    print_table("Multiplying matrices, billions of operations/s", ["weight", *header], rows)
    print_table("What the text takes", ["what", "number"], [[what, float(n)] for what, n in facts.items()])
    print_table("At most", ["bound", *threads], [[what, *each.values()] for what, each in bounds.items()])
