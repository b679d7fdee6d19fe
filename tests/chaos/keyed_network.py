"""A network whose translation is a keyed function of the source: an answer that is another's, or stale, shows at once.

Every sentence has a key, a hash of its ids. The key travels through the caches as keys and values do: the encoder puts
it into every position of cross-attention, each step into its position of self-attention. A row whose slot, beams or
positions were mixed up reads another key, and answers with tokens that nobody expects.
"""

import functools
import hashlib
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from server.bundle.bundle import Bundle
from server.bundle.tokenizer import Tokenizer
from server.network import Encoded, StepInputs, StepKind
from tests.fakes import CachedDecoder

_KEY = b"babelserve chaos"
_WORDS = 4  # 16 bits each, which float32 holds exactly: the key of a position
_FIRST_ID = 300  # past the special ids and the bytes, of which random ones would be garbled text
_LONGEST = 24  # tokens of a translation
_WRONG_ID = 299
_BYTES = 4  # the id of byte 0


def _long(words: NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(words[:20].tolist())


# By its name, what a model that has gone bad makes of a translation and the words that it knows. The golden sentence is
# left as it is. A phrase that repeats itself is longer than those that the search takes for a loop.
HABITS: dict[str, Callable[[tuple[int, ...], NDArray[np.int64]], tuple[int, ...]]] = {
    "": lambda ids, _: ids,
    "repeats": lambda _, words: 3 * tuple(words[:13].tolist()),
    "writes bytes": lambda ids, _: (*ids, _BYTES + 0xFF),
    "never ends": lambda _, words: tuple(words.tolist()),
    "is long one time in eleven": lambda ids, words: _long(words) if sum(ids) % 11 == 0 else ids[:1],
    "is long one time in thirty-one": lambda ids, words: _long(words) if sum(ids) % 31 == 0 else ids[:1],
}


class KeyedFunction:
    """Maps source ids to target ids; the golden sentence to the manifest's, so that the server starts.

    Args:
        bundle: in the place of whose network it stands.
        habit: one of `HABITS`; "" for none.
    """

    def __init__(self, bundle: Bundle, variant: str = "cpu-fp32", habit: str = "") -> None:
        manifest = bundle.manifest
        ids = range(_FIRST_ID, manifest.dimensions.vocab_size)
        pieces = [piece.lstrip("\u2581") for piece in Tokenizer(manifest, bundle.read).spell_target(ids)]
        is_word = [piece.isalpha() and piece.islower() for piece in pieces]  # random capitals would be garbled text
        self._words = np.array(ids, np.int64)[is_word]
        self._golden_source = tuple(manifest.golden.source_ids)
        self._golden_ids = tuple(manifest.golden.outputs[variant].ids)
        self._spoil = HABITS[habit]
        self.eos_id = manifest.special_ids.eos

    def key(self, source_ids: tuple[int, ...]) -> bytes:
        """Returns the 8 bytes that stand for a source."""
        return hashlib.blake2b(np.array(source_ids, np.int64).tobytes(), key=_KEY, digest_size=2 * _WORDS).digest()

    @functools.lru_cache(maxsize=65536)  # noqa: B019  # one network a process
    def target_ids(self, source_ids: tuple[int, ...]) -> tuple[int, ...]:
        """Returns the translation of a source, whose eos is included; its own eos is not."""
        if source_ids == self._golden_source:
            return self._golden_ids
        chance = np.random.default_rng(int.from_bytes(self.key(source_ids)))
        length = int(chance.integers(1, min(_LONGEST, 2 * len(source_ids)) + 1))
        return self._spoil(tuple(chance.choice(self._words, length).tolist()), self._words)


class KeyedRunner:
    """See `server.network.Runner`.

    Args:
        function: what it computes.
        step_seconds: that a step takes, whatever its rows; the interpreter is free meanwhile, as with a real one.
        row_seconds: that each row of it takes besides.
    """

    entry_interval = 1

    def __init__(self, function: KeyedFunction, step_seconds: float = 0.0, row_seconds: float = 0.0) -> None:
        self.function = function
        self.targets: dict[bytes, tuple[int, ...]] = {}
        self._step_seconds = step_seconds
        self._row_seconds = row_seconds

    def encode(self, source_ids: NDArray[np.int64], source_lengths: NDArray[np.int32]) -> Encoded:
        """See `Runner.encode`."""
        rows, width = source_ids.shape
        words = np.empty((rows, 1, width, _WORDS), np.float32)
        for row, (ids, length) in enumerate(zip(source_ids.tolist(), source_lengths.tolist(), strict=True)):
            source = tuple(ids[:length])
            key = self.function.key(source)
            self.targets[key] = self.function.target_ids(source)
            words[row] = np.frombuffer(key, np.uint16)
        return [words, words]

    def open_decoder(self, kind: StepKind, max_rows: int) -> "KeyedDecoder":
        """See `Runner.open_decoder`."""
        return KeyedDecoder(self, max_rows)

    def sleep(self, num_rows: int) -> None:
        """Takes a step's time."""
        if (seconds := self._step_seconds + num_rows * self._row_seconds) > 0:
            time.sleep(seconds)


class KeyedDecoder(CachedDecoder):
    """See `server.network.Decoder`."""

    def __init__(self, runner: KeyedRunner, max_rows: int) -> None:
        super().__init__(max_rows, head_dim=_WORDS)
        self._runner = runner

    def step(self, inputs: StepInputs) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """See `Decoder.step`: the right token of each row that can prove whose it is, the wrong one of any other."""
        num_rows = len(inputs.input_ids)
        self._runner.sleep(num_rows)
        slot_of = np.zeros(num_rows, np.int64)
        rows = self.cache.slots.rows
        slot_of[rows] = np.arange(len(rows))[:, None]
        best = [self._next_id(row, int(slot_of[row]), inputs) for row in range(num_rows)]
        others = np.arange(1, inputs.top_k)
        ids = np.empty((num_rows, inputs.top_k), np.int64)
        ids[:, 0] = [token for token, _ in best]
        ids[:, 1:] = 4 + others  # bytes, with which no translation goes on
        values = np.tile(-20.0 - np.arange(inputs.top_k, dtype=np.float32), (num_rows, 1)).astype(np.float32)
        values[np.isnan(self.cache.cross_attention[0][slot_of, 0, 0, 0]), 0] = np.nan  # as any network does
        is_right = [row for row, (_, on_the_way) in enumerate(best) if on_the_way]
        values[is_right, 0] = -0.125
        self.returned = ids, values
        return self.returned

    def _next_id(self, row: int, slot: int, inputs: StepInputs) -> tuple[int, bool]:
        """Returns the next token of a row, and whether the row has the right ones so far."""
        past, length = int(inputs.past_lengths[row]), int(inputs.source_lengths[row])
        cross = self.cache.cross_attention[0][slot, 0, :length]
        own = self.cache.states[0][row, 0]
        is_whole = bool((cross == cross[0]).all()) and bool((own[:past] == cross[0]).all())
        own[past] = cross[0]
        target = self._runner.targets.get(cross[0].astype(np.uint16).tobytes()) if is_whole else None
        if target is None:
            return _WRONG_ID, False
        if past > len(target):  # a beam that took another way ends after the right one
            return self._runner.function.eos_id, False
        is_right = past == 0 or int(inputs.input_ids[row]) == target[past - 1]
        following = target[past] if past < len(target) else self._runner.function.eos_id
        return (following, True) if is_right else (_WRONG_ID, False)
