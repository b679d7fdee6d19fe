"""The contract of the graphs: every file, tensor name and fixed size that `export` writes and `runtime` reads."""

import itertools
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from server.bundle.variants import VARIANTS

ENCODER_FILE = "encoder.onnx"
# For variants whose caches are on the device, see `server.runtime.device_decoder`; the second one for states only.
COPY_ROWS_FILE, COPY_STATES_FILE = "copy_rows.onnx", "copy_states.onnx"
ALIGNER_FILE = "aligner.onnx"  # optional: what finished translations attended to
WEIGHTS_FILE = "weights.bin"  # external data of a variant's graphs
HALVES_FILE = "halves.bin"  # of the bundle: weights that variants share, see `server.bundle.variant_files`
EMBEDDING = "embedding"  # the rows of the output projection [vocab_size, d_model], which mostly embed tokens too

ENCODER_NAMES = ("source_ids", "source_lengths")
ALIGNER_INPUTS, ATTENTION_OUTPUT = ("target_ids", "slots", "source_lengths"), "attention"  # beside cross caches
CONTROL_NAMES = ("input_ids", "past_lengths", "source_lengths", "self_total", "source_total", "top_k", "with_log_probs")
SLOT_NAMES = ("slot_rows", "row_places")  # inputs of steps whose rows share slots: see `server.runtime.slots`
SHORTLIST_NAMES = ("shortlist_weight", "shortlist_ids", "candidates")  # of steps with one: `server.runtime.columns`
CHOSEN_NAMES = ("top_ids", "top_log_probs")  # outputs of any step
LOGITS, PRODUCTS = "logits", "products"  # what a step projects to: all tokens, or a shortlist's columns

ATTENTION, SSRU = MIXERS = ("attention", "ssru")  # what brings earlier target tokens to a position of the decoder
SELF_STATE = "self_state"  # of a decoder with SSRUs, in place of self-attention caches
STATE_PLACES = 2  # of a row's states: those after position p are at p modulo 2, so that a step can be taken again

MAX_BEAM_SIZE = 16  # of any bundle: a step returns at most twice as many best tokens
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


def needed_files(variant: str, has_shortlist: bool, decoder_mixer: str = ATTENTION) -> set[str]:
    """Returns the names of the files that a variant consists of."""
    files = {ENCODER_FILE, WEIGHTS_FILE, *(form.file for form in step_forms(variant, has_shortlist))}
    if VARIANTS[variant].is_on_device:
        files |= {COPY_ROWS_FILE, COPY_STATES_FILE} if decoder_mixer == SSRU else {COPY_ROWS_FILE}
    return files


class DecoderSizes(Protocol):
    """What the shapes of a decoder's caches follow from; a manifest's dimensions and the model's config have it."""

    @property
    def d_model(self) -> int:
        """Width of the decoder."""

    @property
    def num_heads(self) -> int:
        """Heads of the decoder."""

    @property
    def head_dim(self) -> int:
        """Width of one of them."""

    @property
    def decoder_layers(self) -> int:
        """Layers of the decoder."""

    @property
    def decoder_mixer(self) -> str:
        """One of `MIXERS`."""


class SelfCaches(NamedTuple):
    """What a step keeps of each row's own tokens: keys and values, or with SSRUs the states of all layers.

    Attributes:
        names: of the tensors, [rows, `parts`, `positions`, `width`], that a step reads; it writes `new_`...
        parts: heads; of states `STATE_PLACES`.
        positions: None for as many as the longest row has tokens; of states the decoder's layers.
        width: of a head; of states d_model.
        dtype: the variant's; of states float32 in any variant, since they are sums over all tokens so far.
    """

    names: list[str]
    parts: int
    positions: int | None
    width: int
    dtype: str

    def shape(self, num_rows: int, positions: int) -> tuple[int, int, int, int]:
        """Returns the shape of each tensor for rows of so many tokens."""
        return num_rows, self.parts, positions if self.positions is None else self.positions, self.width


def self_caches(sizes: DecoderSizes, dtype: str) -> SelfCaches:
    """Returns what steps of a variant keep whose caches have that type."""
    if sizes.decoder_mixer == SSRU:
        return SelfCaches([SELF_STATE], STATE_PLACES, sizes.decoder_layers, sizes.d_model, "float32")
    return SelfCaches(cache_names("self", sizes.decoder_layers), sizes.num_heads, None, sizes.head_dim, dtype)


def cache_names(kind: str, num_layers: int) -> list[str]:
    """Returns the names of a graph's cache tensors, key and value of each decoder layer in turn.

    Args:
        kind: "self" or "cross" for what a step reads; "new_self" for what it has written, and "new_cross" for what it
            hands back as it was.
        num_layers: of the decoder.
    """
    return [f"{kind}_{part}.{layer}" for layer in range(num_layers) for part in ("key", "value")]


def all_cache_names(sizes: DecoderSizes) -> list[str]:
    """Returns the names of the caches that a step reads: those of the rows' own tokens, then cross-attention's."""
    return [*self_caches(sizes, "").names, *cache_names("cross", sizes.decoder_layers)]


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
