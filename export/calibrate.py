"""Calibration: the magnitudes that the tensors of the float32 graphs reach on real sentences, for `export.quantize`.

The graphs themselves are run, with every tensor that matters as one more output.
"""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper

from export.graph import linear_inputs, prune
from model.data import pad
from server.bundle.graphs import ENCODER_FILE, PLAIN_STEP, cache_names, step_controls
from server.bundle.states import SELF_STATE

Array = NDArray[Any]
_BATCH = 8  # sentences: every tensor that is watched is there at once
# A step of a small network takes as long for 64 sentences as for 8, so it observes up to 64 at once. The caches of a
# batch then have at most so many values at one position.
_MOST_SENTENCES, _BATCH_VALUES = 64, 1 << 18
_MOST_TOKENS = 62  # of a mixed sentence
_ENOUGH = 200  # sentences, for their largest magnitudes to be nearly those of any


def calibrate(directory: Path, sources: list[list[int]], targets: list[list[int]]) -> dict[str, NDArray[np.float32]]:
    """Returns the largest magnitudes found.

    Args:
        directory: of a float32 variant, as `export.files` writes it.
        sources: token ids with eos.
        targets: token ids starting with bos, of the same sentences.

    Returns:
        By name a scalar for each of `linear_inputs` of both graphs; [2, H, D] for each cache tensor but states: how far
        each channel goes below zero and above.
    """
    calibration = _Calibration(directory)
    order = sorted(range(len(sources)), key=lambda i: len(targets[i]))  # a batch takes the steps of its longest
    for start in range(0, len(order), calibration.batch):
        chosen = order[start : start + calibration.batch]
        calibration.observe([sources[i] for i in chosen], [targets[i] for i in chosen])
    return calibration.ranges


def calibrate_one_pass(path: Path, sources: list[list[int]]) -> dict[str, NDArray[np.float32]]:
    """Returns the largest magnitude of each of `linear_inputs` of the graph of a one-pass network.

    Args:
        path: of the float32 graph, as `export.files.save_graphs` writes it.
        sources: token ids with eos.
    """
    graph = _Watched(path)
    ranges: dict[str, NDArray[np.float32]] = {}
    unread = {"top_k": np.array([1]), "with_log_probs": np.array([False])}  # by what is watched
    for start in range(0, len(sources), _BATCH):
        some = sources[start : start + _BATCH]
        source_ids, lengths = pad(some, 0).numpy(), np.array([len(ids) for ids in some], np.int32)
        is_real = (np.arange(source_ids.shape[1]) < lengths[:, None]).ravel()
        tensors = graph.run({"source_ids": source_ids, "source_lengths": lengths, **unread})
        for name in graph.names:
            rows = tensors[name].reshape(-1, tensors[name].shape[-1])
            largest = np.abs(rows[is_real.repeat(len(rows) // len(is_real))]).max()  # one or two rows a source token
            ranges[name] = np.maximum(ranges.get(name, largest), largest)
    return ranges


def with_mixed(
    sources: list[list[int]], targets: list[list[int]], max_tokens: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Returns some sentences, and if they are few as many more as make 200: their tokens in any order and number.

    A network reaches on nonsense about what it reaches on many real sentences; a few leave one key in a hundred beyond
    their range, which costs more than all rounding.

    Args:
        sources: token ids with eos; what they begin and end with is kept, since it may tell languages.
        targets: token ids starting with bos, of the same sentences; the two that they begin with are kept.
        max_tokens: of a sentence, at least 3, that the network has positions for.
    """
    rng = np.random.default_rng(0)
    inner = [[token for ids in sources for token in ids[1:-1]], [token for ids in targets for token in ids[2:]]]
    longest = [min(_MOST_TOKENS, max_tokens, 2 * max(map(len, side), default=0)) for side in (sources, targets)]
    sources, targets = list(sources), list(targets)
    num_real = len(sources)
    for i in range(_ENOUGH - num_real if all(inner) else 0):
        source, target = sources[i % num_real], targets[i % num_real]
        chosen = [rng.choice(ids, rng.integers(1, most - 1)).tolist() for ids, most in zip(inner, longest, strict=True)]
        sources.append([source[0], *chosen[0], source[-1]])
        targets.append([*target[:2], *chosen[1]])
    return sources, targets


class _Calibration:
    """What is found so far.

    Attributes:
        ranges: as `calibrate` returns them.
        batch: sentences to observe at once.
    """

    def __init__(self, directory: Path) -> None:
        self.ranges: dict[str, NDArray[np.float32]] = {}
        self._encoder, self._step = _Watched(directory / ENCODER_FILE), _Watched(directory / PLAIN_STEP.file)
        shapes = self._step.input_shapes
        num_layers = sum(name.startswith("cross_key.") for name in shapes)
        self._cross_names = cache_names("cross", num_layers)
        own = [name for name in shapes if name.startswith(SELF_STATE)] or cache_names("self", num_layers)
        _, num_heads, _, width = shapes["cross_key.0"]
        self.batch = max(_BATCH, min(_MOST_SENTENCES, _BATCH_VALUES // (2 * num_layers * num_heads * width)))
        # 0: of any length
        self._own = {name: [each if isinstance(each, int) else 0 for each in shapes[name][1:]] for name in own}

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
            for name, before in caches.items():
                caches[name] = after = stepped[f"new_{name}"]
                if not name.startswith(SELF_STATE):  # which stays float32
                    # A window has its last positions only, so each is noted when it is written, wherever that is.
                    is_written = (after != before).any(axis=(1, 3))  # [B, positions]
                    is_written[:, 0] |= position == 0  # even if it is all zeros
                    if (is_real := is_written & (position < target_lengths)[:, None]).any():
                        self._note_caches({name: after}, is_real)

    def _note(self, names: list[str], tensors: dict[str, Array], is_real: NDArray[np.bool_]) -> None:
        for name in names:
            self._raise(name, np.abs(tensors[name].reshape(is_real.size, -1)[is_real.ravel()]).max())

    def _note_caches(self, caches: dict[str, Array], is_real: NDArray[np.bool_]) -> None:
        for name, cache in caches.items():  # [B, H, positions, D]
            real = cache.transpose(0, 2, 1, 3)[is_real]
            self._raise(name, np.stack([-real.min(axis=0), real.max(axis=0)]))

    def _raise(self, name: str, largest: Array) -> None:
        self.ranges[name] = np.maximum(self.ranges.get(name, largest), largest)


class _Watched:
    """A graph that returns its `linear_inputs`, and of its outputs the caches that it writes.

    What only the other outputs need is left out: the projection is most of the memory. The other weights stay in their
    file, to which ONNX Runtime maps them: a message of protobuf has at most 2 GiB.
    """

    def __init__(self, path: Path) -> None:
        model = onnx.load(path, load_external_data=False)
        self.names = linear_inputs(model)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.enable_cpu_mem_arena = False  # it keeps what shapes took that do not come again
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(path.parent))
        caches = [output for output in model.graph.output if output.name.startswith(("cross_", "new_self_"))]
        del model.graph.output[:]
        model.graph.output.extend([*caches, *map(helper.make_empty_tensor_value_info, self.names)])
        prune(model.graph)
        self._session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        self.input_shapes = {each.name: each.shape for each in self._session.get_inputs()}
        self._outputs = [output.name for output in self._session.get_outputs()]

    def run(self, feeds: dict[str, Array]) -> dict[str, Array]:
        return dict(zip(self._outputs, self._session.run(self._outputs, feeds), strict=True))
