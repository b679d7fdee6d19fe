"""The contract of the graphs: every file, tensor name and fixed size that `export` writes and `runtime` reads."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from server.bundle.states import FIXED, State
from server.bundle.variants import VARIANTS

TRANSFORMER, RECURRENT, ONE_PASS = FAMILIES = ("transformer", "recurrent", "one_pass")  # the last one takes no steps

ENCODER_FILE = "encoder.onnx"
ONE_PASS_FILE = "one_pass.onnx"  # of a network that writes all words at once: its only graph
# For variants whose caches are on the device, see `server.runtime.device_decoder`; the second one for fixed states.
COPY_ROWS_FILE, COPY_STATES_FILE = "copy_rows.onnx", "copy_states.onnx"
ALIGNER_FILE = "aligner.onnx"  # optional: what finished translations attended to
WEIGHTS_FILE = "weights.bin"  # external data of a variant's graphs
HALVES_FILE = "halves.bin"  # of the bundle: weights that variants share, see `server.bundle.variant_files`
EMBEDDING = "embedding"  # the rows of the output projection [vocab_size, d_model], which mostly embed tokens too

ENCODER_NAMES = ("source_ids", "source_lengths")
ALIGNER_INPUTS, ATTENTION_OUTPUT = ("target_ids", "slots", "source_lengths"), "attention"  # beside cross caches
ONE_PASS_NAMES = ("source_ids", "source_lengths", "top_k", "with_log_probs")  # inputs of `ONE_PASS_FILE`
ONE_PASS_OUTPUTS = ("top_ids", "top_log_probs", "blank_log_probs")
CONTROL_NAMES = ("input_ids", "past_lengths", "source_lengths", "self_total", "source_total", "top_k", "with_log_probs")
SLOT_NAMES = ("slot_rows", "row_places")  # inputs of steps whose rows share slots: see `server.runtime.slots`
SHORTLIST_NAMES = ("shortlist_weight", "shortlist_ids", "candidates")  # of steps with one: `server.runtime.columns`
CHOSEN_NAMES = ("top_ids", "top_log_probs")  # outputs of any step
LOGITS, PRODUCTS = "logits", "products"  # what a step projects to: all tokens, or a shortlist's columns

MAX_BEAM_SIZE = 16  # of any bundle: a step returns at most twice as many best tokens
UPSAMPLING = 2  # positions of each source token in a one-pass network, each of which writes a token or a blank
SLOT_ROWS = 4  # most rows that share a slot; a wider beam has several slots
COLUMNS = 1024  # of a shortlist's weight, in a block: sums of more would not stay in a processor's cache
CANDIDATES = 512  # a row's places for candidates grow by so many, so that shapes seldom change


class StepForm(NamedTuple):
    """One of the decoder-step graphs of a variant, which compute the same in different ways.

    Attributes:
        has_shortlist: it projects to a shortlist's columns instead of the vocabulary.
        shares_slots: rows share cross-attention caches, as `server.runtime.slots` says; if not, each row has its own.
    """

    has_shortlist: bool = False
    shares_slots: bool = False

    @property
    def file(self) -> str:
        """Name of the graph's file."""
        shortlist, shared = ("_shortlist" if self.has_shortlist else ""), ("_shared" if self.shares_slots else "")
        return f"decoder_step{shortlist}{shared}.onnx"

    @property
    def projected(self) -> str:
        """Name of the output with what it projects to."""
        return PRODUCTS if self.has_shortlist else LOGITS

    @property
    def input_names(self) -> list[str]:
        """Names of its inputs that are not caches."""
        slots, shortlist = (SLOT_NAMES if self.shares_slots else ()), (SHORTLIST_NAMES if self.has_shortlist else ())
        return [*CONTROL_NAMES, *slots, *shortlist]


PLAIN_STEP = StepForm()  # every variant has it


def step_forms(variant: str, has_shortlist: bool) -> list[StepForm]:
    """Returns the steps that a variant has; shortlists and slots are for caches in host memory."""
    if VARIANTS[variant].is_on_device:
        return [PLAIN_STEP]
    shortlists = (False, True) if has_shortlist else (False,)
    return [StepForm(*form) for form in itertools.product(shortlists, (False, True))]


def needed_files(variant: str, has_shortlist: bool, states: Sequence[State], family: str = TRANSFORMER) -> set[str]:
    """Returns the names of the files that a variant consists of; `states` and `family` are the manifest's."""
    if family == ONE_PASS:
        return {ONE_PASS_FILE, WEIGHTS_FILE}
    files = {ENCODER_FILE, WEIGHTS_FILE, *(form.file for form in step_forms(variant, has_shortlist))}
    if VARIANTS[variant].is_on_device:
        files |= {COPY_ROWS_FILE, COPY_STATES_FILE} if has_fixed(states) else {COPY_ROWS_FILE}
    return files


def has_fixed(states: Sequence[State]) -> bool:
    """Whether rows have states that are not as wide as a head of attention, so that a graph of its own copies them."""
    return any(state.kind == FIXED for state in states)


def cache_names(kind: str, num_layers: int) -> list[str]:
    """Returns the names of a graph's cache tensors, key and value of each decoder layer in turn.

    Args:
        kind: "cross" for what a step reads, and "new_cross" for what it hands back as it was.
        num_layers: of the decoder.
    """
    return [f"{kind}_{part}.{layer}" for layer in range(num_layers) for part in ("key", "value")]


def cache_outputs(states: Sequence[State], num_layers: int) -> dict[str, list[str]]:
    """Returns by name of each cache that a step reads the outputs that are bound to the same memory.

    The states come first, and then the caches of cross-attention, which a step hands back as they were.
    """
    cross = {name: [f"new_{name}"] for name in cache_names("cross", num_layers)}
    return {state.name: state.outputs for state in states} | cross


def aligner_caches(last_layer: int) -> list[str]:
    """Returns the names of the caches that `ALIGNER_FILE` reads, if its last head is in this layer of the decoder."""
    return cache_names("cross", last_layer + 1)[:-1]  # of the last layer the keys alone


def copy_rows_names(num_tensors: int) -> tuple[list[str], list[str]]:
    """Returns the names of the inputs and outputs of `COPY_ROWS_FILE` and `COPY_STATES_FILE`."""
    tensors = range(num_tensors)
    sources_and_caches = [f"{kind}.{i}" for kind in ("source", "cache") for i in tensors]
    return ["from", "to", *sources_and_caches], [f"new_cache.{i}" for i in tensors]


def step_controls(
    input_ids: NDArray[np.int64],
    past_lengths: NDArray[np.int32],
    source_lengths: NDArray[np.int32],
    top_k: int = 1,
    with_log_probs: bool = False,
    slot_rows: NDArray[np.int64] | None = None,
) -> dict[str, NDArray[np.generic]]:
    """Returns a step's inputs that are not caches, `CONTROL_NAMES` and perhaps `SLOT_NAMES`, in arrays of their own.

    All but `slot_rows` are what `StepInputs` says; these are `SlotTable.rows`, or None if each row has its own slot.
    """
    controls: dict[str, NDArray[np.generic]] = {
        "input_ids": input_ids.copy(),
        "past_lengths": past_lengths.copy(),
        "source_lengths": source_lengths.copy(),
        "self_total": past_lengths.max(keepdims=True) + np.int32(1),
        "source_total": source_lengths.max(keepdims=True),
        "top_k": np.array([top_k], np.int64),
        "with_log_probs": np.array([with_log_probs]),
    }
    if slot_rows is not None:
        row_places = np.empty(len(input_ids), np.int64)
        row_places[slot_rows.ravel()] = np.arange(slot_rows.size)
        controls["source_lengths"] = source_lengths[slot_rows[:, 0]]
        controls |= {"slot_rows": slot_rows.copy(), "row_places": row_places}
    return controls
