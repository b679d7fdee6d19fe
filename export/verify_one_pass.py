"""Proof that a bundle of a one-pass network translates as its checkpoint does. See `export.verify`.

Three things are compared: what the graph returns with what the PyTorch model returns; the bits of a sentence alone with
those of the same sentence in a batch; and the engine's translations with those of the oracle (`model.ctc_search`).
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from export.id_translator import IdTranslator
from export.verify import LOGITS_ATOL, NEAR_TIE, VerificationError
from model.ctc_search import Reading, best_path, exact_length, keep_top, prefix_beam
from model.data import pad
from model.one_pass import OnePass
from server.decoding.one_pass_search import EXACT_LENGTH_TOKENS
from server.decoding.options import DecodingOptions
from server.runtime.one_pass import OnePassRunner

_BATCH = 16  # sentences


def check_positions(model: OnePass, runner: OnePassRunner, sources: list[list[int]]) -> dict[str, Any]:
    """Compares what the graph returns with what the model does, and each sentence alone with the same in a batch.

    Args:
        model: in evaluation mode.
        runner: of a float32 variant.
        sources: token ids with eos.

    Raises:
        VerificationError: log-probabilities differ by more than `LOGITS_ATOL`, or bits differ in a batch.
    """
    worst, apart = 0.0, 0
    for start in range(0, len(sources), _BATCH):
        some = sources[start : start + _BATCH]
        lengths = np.array([len(source) for source in some], np.int32)
        ids, together = runner.run(pad(some, model.config.pad_id).numpy(), lengths, EXACT_LENGTH_TOKENS)
        for row, source in enumerate(some):
            own_ids, own = runner.run(np.array([source]), lengths[row : row + 1], EXACT_LENGTH_TOKENS)
            expected = _log_probs(model, source).numpy()
            found = np.take_along_axis(expected, own_ids[0], axis=1)
            best = np.sort(expected, axis=1)[:, : -EXACT_LENGTH_TOKENS - 1 : -1]
            differences = np.abs(own[0] - found).max(), np.abs(own[0, :, 1:] - best[:, : own.shape[2] - 1]).max()
            worst = float(np.maximum(worst, max(differences)))  # keeps NaN, unlike max
            bits = ids[row, : len(expected)], together[row, : len(expected)]
            apart += not (np.array_equal(bits[0], own_ids[0]) and np.array_equal(bits[1], own[0]))
    if not worst <= LOGITS_ATOL or apart:
        raise VerificationError(
            f"log-probabilities of positions differ from the model's by {worst:.2e}, allowed {LOGITS_ATOL:.1e}; "
            f"{apart} of {len(sources)} sentences differ alone and in a batch"
        )
    return {"sentences": len(sources), "largest_difference": worst, "same_alone": len(sources) - apart}


def check_readings(
    model: OnePass, translator: IdTranslator, sources: list[list[int]], beam_size: int
) -> dict[str, Any]:
    """Compares the engine's translations with the oracle's; a beam of 1 is greedy search.

    Raises:
        VerificationError: ids differ, and it is no tie within `NEAR_TIE`.
    """

    def expected(positions: Tensor, blank: int) -> Reading:
        return best_path(positions, blank) if beam_size == 1 else prefix_beam(positions, blank, beam_size)[0]

    answers = translator(sources, DecodingOptions(beam_size=beam_size))
    found = [(list(answer.ids), answer.score) for answer in answers]
    return _compare(f"beam size {beam_size}", model, sources, found, expected, 2 * beam_size)


def check_lengths(model: OnePass, translator: IdTranslator, sources: list[list[int]]) -> dict[str, Any]:
    """Compares the engine's translations that have as many tokens as their sources, eos left out, with the oracle's.

    Raises:
        VerificationError: as `check_readings`, or one has another number of tokens.
    """
    answers = translator(sources, DecodingOptions(beam_size=1, ratio=1.0))
    found = [(list(answer.ids), answer.score) for answer in answers]
    wrong = [i for i, (source, (ids, _)) in enumerate(zip(sources, found, strict=True)) if len(source) != len(ids) + 1]
    if wrong:
        raise VerificationError(f"sentences {wrong[:10]} have another number of tokens than was asked for")

    def expected(positions: Tensor, blank: int) -> Reading:
        return exact_length(positions, blank, len(positions) // 2 - 1)

    return _compare("given lengths", model, sources, found, expected, EXACT_LENGTH_TOKENS)


def _compare(
    what: str,
    model: OnePass,
    sources: Sequence[list[int]],
    found: Sequence[tuple[list[int], float]],
    expected: Callable[[Tensor, int], Reading],
    top_k: int,
) -> dict[str, Any]:
    """Compares ids and scores with those of the oracle's search, which takes positions and the blank.

    Two translations that differ are a tie if the scores that both searches gave them are as good as equal.
    """
    failures: list[str] = []
    near_ties: list[str] = []
    for i, (source, (ids, score)) in enumerate(zip(sources, found, strict=True)):
        best_ids, best_score = _search(_log_probs(model, source), model.config.bos_id, top_k, expected)
        gap = abs(score - best_score)
        if ids != best_ids or gap > LOGITS_ATOL * len(source):
            note = f"sentence {i}: {ids} instead of {best_ids}, {gap:.1e} apart"
            (near_ties if gap <= NEAR_TIE else failures).append(note)
    if failures:
        raise VerificationError(f"{what}: differs from the oracle: " + "; ".join(failures))
    return {"sentences": len(sources), "equal": len(sources) - len(near_ties), "near_ties": near_ties}


def _search(
    positions: Tensor, blank: int, top_k: int, expected: Callable[[Tensor, int], Reading]
) -> tuple[list[int], float]:
    """Runs the oracle's search over the tokens alone that are among the best of any position: it tries each of them."""
    kept = keep_top(positions, top_k, blank)
    tokens = kept.isfinite().any(dim=0).nonzero().flatten()
    best = expected(kept[:, tokens], int((tokens == blank).nonzero()))
    return tokens[best.ids].tolist(), best.log_prob


@torch.inference_mode()
def _log_probs(model: OnePass, source: list[int]) -> Tensor:
    """Returns what the positions of one sentence may be, [2S, V]."""
    logits: Tensor = model(torch.tensor([source]))[0]
    return logits.float().log_softmax(dim=-1)
