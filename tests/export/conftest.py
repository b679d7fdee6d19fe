"""Graphs on ONNX Runtime without a bundle, and bundles of one variant made of any model."""

import copy
import dataclasses
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from numpy.typing import NDArray

from export.calibrate import calibrate
from export.files import save_graphs
from export.graphs import encoder_graph, step_graph
from export.states import states_of
from model.config import TransformerConfig
from model.transformer import Transformer
from server.bundle.bundle import Bundle
from server.bundle.graphs import ENCODER_FILE, PLAIN_STEP, cache_names, step_controls, step_forms
from server.bundle.states import empty_states
from server.runtime.processor import has_int8_dot_product

Array = NDArray[Any]
SUPPRESSED = 0
SHAPES: dict[str, dict[str, Any]] = {
    "post": {"vocab_size": 256},
    "post-odd": {"vocab_size": 300, "positions": "learned"},
    "pre": {"vocab_size": 129, "norm": "pre", "encoder_layers": 1, "decoder_layers": 3},
    "pre-learned": {"vocab_size": 20, "norm": "pre", "positions": "learned", "num_heads": 1},
    # As HF Marian is: swish, a bias with a suppressed token, which the decoder starts with, tables of positions.
    "marian": {"vocab_size": 130, "bos_id": 0, "activation": "silu", "output_bias": True, "positions": "table"},
    "two-vocabularies": {"vocab_size": 70, "source_vocab_size": 90, "tied_output": False, "activation": "quick_gelu"},
    "untied-bias": {"vocab_size": 40, "tied_output": False, "output_bias": True, "layer_norm_eps": 1e-2},
    # As mBART is: a norm behind the embedding, exact GELU, no scale.
    "mbart": {
        "vocab_size": 50,
        "norm": "pre",
        "embedding_norm": True,
        "activation": "gelu",
        "scale_embedding": False,
        "positions": "table",
    },
    # As Marian's small students are.
    "ssru": {"vocab_size": 60, "decoder_mixer": "ssru", "decoder_layers": 2},
    "ssru-pre": {"vocab_size": 55, "decoder_mixer": "ssru", "norm": "pre", "head_width": 24, "decoder_layers": 1},
    "retention": {"vocab_size": 60, "decoder_mixer": "retention", "decoder_layers": 2},
    "retention-pre": {"vocab_size": 55, "decoder_mixer": "retention", "norm": "pre", "head_width": 24},
    # A window that rows outgrow within the tests' few tokens; of one position, too.
    "window": {"vocab_size": 60, "self_window": 3},
    "window-1": {"vocab_size": 45, "self_window": 1, "norm": "pre", "head_width": 24},
    "sides": {
        "vocab_size": 64,
        "norm": "pre",
        "encoder_norm": "post",
        "encoder_num_heads": 1,
        "encoder_ffn_dim": 24,
        "head_width": 24,
        "final_norm": True,
    },
}


def build_model(vocab_size: int, **changes: Any) -> Transformer:
    """Returns a random model whose biases and norms are random too."""
    torch.manual_seed(0)
    sizes = {"d_model": 32, "num_heads": 2, "encoder_layers": 2, "decoder_layers": 2, "ffn_dim": 48}
    model = Transformer(TransformerConfig(vocab_size=vocab_size, max_positions=24, **{**sizes, **changes})).eval()
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter, mean=float(name.endswith("norm.weight")), std=0.2)
    with torch.no_grad():
        model.embedding.tokens.weight[model.config.pad_id] = model.embedding.tokens.weight[1:].mean(0)  # not zero
        if model.output_bias is not None:
            model.output_bias[SUPPRESSED] = -torch.inf
        for _, table in model.named_buffers():
            if not table[0].any():  # a table of positions that the weights have to bring
                torch.nn.init.normal_(table)
    return model


def open_graph(graph: onnx.ModelProto) -> onnxruntime.InferenceSession:
    """Loads a graph as the server does."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    if not has_int8_dot_product():
        options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(
        graph.SerializeToString(), options, ["CPUExecutionProvider"], disabled_optimizers=["SkipLayerNormFusion"]
    )


def calibrated(
    encoder: onnx.ModelProto, step: onnx.ModelProto, sources: list[list[int]], targets: list[list[int]]
) -> dict[str, NDArray[np.float32]]:
    """Returns what `calibrate` finds with float32 graphs, which stay as they are."""
    graphs = {ENCODER_FILE: copy.deepcopy(encoder), PLAIN_STEP.file: copy.deepcopy(step)}
    with tempfile.TemporaryDirectory() as directory:
        save_graphs(Path(directory), graphs.items())
        return calibrate(Path(directory), sources, targets)


class Stepper:
    """The decoder step of a graph over caches of its own, row by row where a test wants that.

    The caches are of the type of `cross`, the encoder's output.
    """

    def __init__(self, graph: onnx.ModelProto, model: Transformer, cross: list[Array], capacity: int) -> None:
        config = model.config
        self.session = open_graph(graph)
        self.self_caches = empty_states(states_of(config), len(cross[0]), capacity, cross[0].dtype.name)
        self.cross = dict(zip(cache_names("cross", config.decoder_layers), cross, strict=True))

    def __call__(
        self,
        ids: list[int],
        past: list[int],
        lengths: list[int],
        rows: list[int],
        k: int = 1,
        with_log_probs: bool = True,
        **shortlist: Array,
    ) -> dict[str, Array]:
        """Feeds a token to each of `rows`; returns all outputs by name."""
        names = [output.name for output in self.session.get_outputs()]
        past_lengths, source_lengths = np.array(past, np.int32), np.array(lengths, np.int32)
        controls = step_controls(np.array(ids, np.int64), past_lengths, source_lengths, k, with_log_probs)
        caches = {name: tensor[rows] for name, tensor in {**self.self_caches, **self.cross}.items()}
        outputs = dict(zip(names, self.session.run(names, {**controls, **caches, **shortlist}), strict=True))
        for name in self.self_caches:
            self.self_caches[name][rows] = outputs[f"new_{name}"]
        return outputs


def run_encoder(graph: onnx.ModelProto, source_ids: Array, lengths: list[int]) -> list[Array]:
    """Returns the cross-attention caches in the order of `cache_names`."""
    session = open_graph(graph)
    names = [output.name for output in session.get_outputs()]
    outputs = session.run(names, {"source_ids": source_ids, "source_lengths": np.array(lengths, np.int32)})
    by_name = dict(zip(names, outputs, strict=True))
    return [by_name[name] for name in cache_names("cross", len(names) // 2)]


def write_fp32(model: Transformer, like: Bundle, directory: Path, step: onnx.ModelProto | None = None) -> Bundle:
    """Returns a bundle of `model` as cpu-fp32, with the manifest of another one of its shape; its files are held.

    `step` stands in for the model's plain step graph.
    """
    (directory / "cpu-fp32").mkdir(parents=True)
    graphs = {ENCODER_FILE: encoder_graph(model)}
    graphs |= {form.file: step_graph(model, form=form) for form in step_forms("cpu-fp32", has_shortlist=False)}
    if step is not None:
        graphs[PLAIN_STEP.file] = step
    offset = save_graphs(directory / "cpu-fp32", graphs.items())
    variant = dataclasses.replace(like.manifest.variants["cpu-fp32"], embedding_offset=offset)
    manifest = dataclasses.replace(like.manifest, variants={"cpu-fp32": variant}, alignment=None)
    contents = {f"cpu-fp32/{path.name}": path.read_bytes() for path in (directory / "cpu-fp32").iterdir()}
    return Bundle(directory=directory, manifest=manifest, contents=contents)


@pytest.fixture(params=SHAPES)
def model(request: pytest.FixtureRequest) -> Transformer:
    """Random models of several shapes: pre- and post-norm, both kinds of positions, vocabularies of odd sizes."""
    return build_model(**SHAPES[request.param])
