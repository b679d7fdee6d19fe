"""What copies of rows leave behind, exactly: of caches in self-attention or states, and of cross-attention."""

import numpy as np
from numpy.typing import NDArray

from server.network import RowMoves, StepInputs, StepKind
from server.runtime.runner import DeviceRunner
from tests.gpu.parts import Context
from tests.gpu.subjects import Subject

_MOST_ROWS = 6
_STEPS = 3


def check_moves(
    context: Context,
    subject: Subject,
    runner: DeviceRunner,
    source_ids: NDArray[np.int64],
    source_lengths: NDArray[np.int32],
) -> None:
    """Lets rows take some steps, copies rows, and compares all memory with what it should be.

    Row 1 becomes another sentence's, so that all is copied; row 5 becomes one more beam of row 3's sentence, with
    positions in common, of which the sentence's own part is there already.

    Args:
        context: of the part.
        subject: that the runner has.
        runner: of cuda-fp16.
        source_ids: int64 [5, S].
        source_lengths: int32 [5].
    """
    num_rows = len(source_ids)
    decoder = runner.open_decoder(StepKind.PLAIN, _MOST_ROWS)
    decoder.admit(0, runner.encode(source_ids, source_lengths), subject.sources[:num_rows])
    for position in range(_STEPS):
        tokens, past = np.arange(10, 10 + num_rows), np.full(num_rows, position, np.int32)
        decoder.step(StepInputs(tokens, past, source_lengths, 1))
    states = {state.name: state for state in decoder._states}
    expected = {name: cache.numpy().copy() for name, cache in decoder._caches.items()}
    moves = RowMoves(to=[1, 5], from_=[0, 3], common=[0, _STEPS - 1])

    decoder.move(moves, _STEPS)

    for name, cache in expected.items():
        own = states.get(name)
        filled = own.tensor_shape(1, _STEPS)[2] if own else source_ids.shape[1]
        for to, from_, common in zip(moves.to, moves.from_, moves.common, strict=True):
            if own or not common:
                cache[to, :, :filled] = cache[from_, :, :filled]
    found = {name: cache.numpy() for name, cache in decoder._caches.items()}
    wrong = [name for name, cache in expected.items() if not np.array_equal(found[name], cache)]
    has_values = all(np.abs(found[name][0].astype(np.float32)).max() > 0 for name in found)
    title = f"{subject.name}: caches that are not what copies should leave"
    context.check(title, ", ".join(wrong) or "none", not wrong and has_values, f"none of {len(found)}, and none empty")
