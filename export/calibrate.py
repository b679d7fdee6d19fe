"""Calibration: the magnitudes that the tensors of the float32 graphs reach on real sentences, for `export.quantize`.

The graphs themselves are run, with every tensor that matters as one more output.
"""

from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from export.graph import without_weights
from export.quantize import linear_inputs
from model.data import pad
from server.bundle.graphs import SELF_STATE, cache_names, step_controls

Array = NDArray[Any]
_BATCH = 32  # sentences


def calibrate(
    encoder: onnx.ModelProto, step: onnx.ModelProto, sources: list[list[int]], targets: list[list[int]]
) -> dict[str, NDArray[np.float32]]:
    """Returns the largest magnitudes found.

    Args:
        encoder: of `export.graphs`, float32.
        step: of the same model.
        sources: token ids with eos.
        targets: token ids starting with bos, of the same sentences.

    Returns:
        By name a scalar for each of `linear_inputs` of both graphs, and [H, D] for each cache tensor but states.
    """
    calibration = _Calibration(encoder, step)
    for start in range(0, len(sources), _BATCH):
        calibration.observe(sources[start : start + _BATCH], targets[start : start + _BATCH])
    return calibration.ranges


class _Calibration:
    def __init__(self, encoder: onnx.ModelProto, step: onnx.ModelProto) -> None:
        self.ranges: dict[str, NDArray[np.float32]] = {}
        self._encoder, self._step = _Watched(encoder), _Watched(step)
        shapes = {tensor.name: tensor.type.tensor_type.shape.dim for tensor in step.graph.input}
        num_layers = sum(name.startswith("cross_key.") for name in shapes)
        self._cross_names = cache_names("cross", num_layers)
        own = [SELF_STATE] if SELF_STATE in shapes else cache_names("self", num_layers)
        self._own = {name: [length.dim_value for length in shapes[name][1:]] for name in own}  # 0: of any length

    def observe(self, sources: list[list[int]], targets: list[list[int]]) -> None:
        """Translates by force; raises `ranges`."""
        source_ids, target_ids = pad(sources, 0).numpy(), pad(targets, 0).numpy()
        source_lengths, target_lengths = (np.array([len(ids) for ids in side], np.int32) for side in (sources, targets))
        feeds: dict[str, Array] = {"source_ids": source_ids, "source_lengths": source_lengths}
        encoded = self._encoder.run(feeds)
        is_source = np.arange(source_ids.shape[1]) < source_lengths[:, None]
        self._note(self._encoder.names, encoded, is_source)
        cross = {name: encoded[name] for name in self._cross_names}
        self._note_caches(cross, is_source)
        caches = {
            name: np.zeros([len(targets), *(length or target_ids.shape[1] for length in shape)], np.float32)
            for name, shape in self._own.items()
        }
        for position in range(target_ids.shape[1]):
            past_lengths = np.full(len(targets), position, np.int32)
            controls = step_controls(target_ids[:, position], past_lengths, source_lengths)
            stepped = self._step.run({**controls, **cross, **caches})
            self._note(self._step.names, stepped, position < target_lengths)
            caches = {name: stepped[f"new_{name}"] for name in caches}
        caches.pop(SELF_STATE, None)  # which stays float32
        self._note_caches(caches, np.arange(target_ids.shape[1]) < target_lengths[:, None])

    def _note(self, names: list[str], tensors: dict[str, Array], is_real: NDArray[np.bool_]) -> None:
        for name in names:
            self._raise(name, np.abs(tensors[name].reshape(is_real.size, -1)[is_real.ravel()]).max())

    def _note_caches(self, caches: dict[str, Array], is_real: NDArray[np.bool_]) -> None:
        for name, cache in caches.items():  # [B, H, positions, D]
            self._raise(name, np.abs(cache.transpose(0, 2, 1, 3)[is_real]).max(axis=0))

    def _raise(self, name: str, largest: Array) -> None:
        self.ranges[name] = np.maximum(self.ranges.get(name, np.float32(0)), largest)


class _Watched:
    """A graph that returns its `linear_inputs` too.

    Its weights go to ONNX Runtime beside it: a message of protobuf has at most 2 GiB.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self.names = linear_inputs(model)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        watched = without_weights(model)
        outside = {stub.name for stub in watched.graph.initializer if stub.external_data}
        weights = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer if t.name in outside}
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(weight) for weight in weights.values()]
        options.add_external_initializers(list(weights), values)
        watched.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in self.names)
        self._session = onnxruntime.InferenceSession(
            watched.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        self._outputs = [output.name for output in self._session.get_outputs()]

    def run(self, feeds: dict[str, Array]) -> dict[str, Array]:
        return dict(zip(self._outputs, self._session.run(self._outputs, feeds), strict=True))
