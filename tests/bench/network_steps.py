"""How long a step of a network takes at each position of the translation, in this process and without a server."""

import time

import numpy as np

from server.bundle.bundle import Bundle
from server.network import StepInputs, StepKind
from server.runtime.runner import open_runner

ROWS = 32
_SOURCE_TOKENS = 20
_REPEATS = 3
_EVERY = 25  # positions; the time of one is the mean of the steps up to it


def step_times(bundle: Bundle, variant: str, most_tokens: int = 250) -> dict[int, float]:
    """Measures the steps of 32 rows, on one thread.

    Args:
        bundle: opened by `open_bundle`.
        variant: one of the manifest's, for CPUs.
        most_tokens: steps that are taken; fewer if the model's translations cannot be as long.

    Returns:
        Microseconds of a step by its position, for every 25th one: means over the 25 steps that end there, of the
        least of three runs. Empty for a network that takes one step for all positions.
    """
    manifest = bundle.manifest
    if manifest.is_one_pass:
        return {}
    runner = open_runner(bundle, variant, "cpu")
    chance = np.random.default_rng(0)
    source_ids = chance.integers(10, manifest.dimensions.vocab_size, (ROWS, _SOURCE_TOKENS))
    lengths = np.full(ROWS, _SOURCE_TOKENS, np.int32)
    num_steps = min(most_tokens, manifest.limits.max_target_tokens) // _EVERY * _EVERY
    seconds = np.full(num_steps, np.inf)
    for _ in range(_REPEATS):
        decoder = runner.open_decoder(StepKind.PLAIN, ROWS)
        decoder.reserve(0, 1, _SOURCE_TOKENS)
        decoder.admit(0, runner.encode(source_ids, lengths), [tuple(ids) for ids in source_ids.tolist()])
        ids = np.full(ROWS, manifest.special_ids.bos)
        for past in range(num_steps):
            inputs = StepInputs(ids, np.full(ROWS, past, np.int32), lengths, 1, with_log_probs=False)
            started = time.perf_counter()
            decoder.reserve(ROWS, past + 1, _SOURCE_TOKENS)
            top_ids, _ = decoder.step(inputs)
            seconds[past] = min(seconds[past], time.perf_counter() - started)
            ids = top_ids[:, 0].copy()
    means = seconds.reshape(-1, _EVERY).mean(axis=1) * 1e6
    return {_EVERY * (index + 1): float(mean) for index, mean in enumerate(means)}
