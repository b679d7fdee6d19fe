"""Proof that a bundle translates as its checkpoint does, with the very engine that serves.

Every check returns what it measured, for the manifest, and raises `VerificationError` with all of its failures. The
tolerances:
- fp32 logits of each step within 1e-4 of the teacher-forced torch logits, or 1e-5 of the largest (float32 rounding of
  another order of sums);
- fp32 greedy and beam ids equal the oracle's; a difference is allowed, and listed, only where the torch model's
  log-probabilities of both are within 1e-4 (`tie_gap`);
- int8, fp16 and shortlisted translations of the dev set within 0.5 BLEU (or what the caller allows) of fp32's;
- an int8 sentence alone gives the ids that it gives in a batch (>= 99 %).
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sacrebleu
import torch
from numpy.typing import NDArray

from export.examples import Example
from export.id_translator import IdTranslator
from export.states import states_of
from model.data import pad
from model.search import SearchRules, Stepwise, default_max_tokens, search
from server.bundle.graphs import cache_names
from server.bundle.languages import Ids
from server.bundle.manifest import SearchDefaults
from server.bundle.states import empty_states
from server.bundle.tokenizer import Tokenizer
from server.decoding.options import DecodingOptions
from server.decoding.result import Hypothesis
from server.runtime.runner import HostRunner

LOGITS_ATOL = 1e-4
LOGITS_RTOL = 1e-5  # of the largest logit, where that allows more: other people's models have logits of 30 and more
NEAR_TIE = 1e-4  # difference of log-probabilities below which two answers are equally good
MIN_SAME_ALONE = 0.99
_ORACLE_BYTES = 1 << 23  # of logits at a time; the search holds ten times that


class VerificationError(Exception):
    """The bundle is not what the checkpoint is; `str()` lists every failure."""


def check_step_logits(
    model: Stepwise,
    runner: HostRunner,
    sources: list[list[int]],
    targets: list[list[int]],
    let_go: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Feeds the targets token by token and compares each step's logits with teacher forcing, position by position.

    Args:
        model: in evaluation mode.
        runner: of a float32 variant.
        sources: token ids with eos.
        targets: token ids starting with bos, of the same sentences.
        let_go: frees the memory of the model's weights until they are read again.
    """
    config = model.config
    source_ids, target_ids = pad(sources, config.pad_id), pad(targets, config.pad_id)
    with torch.inference_mode():
        states = model.states(source_ids, target_ids)  # all logits at once would be more than the weights
    let_go()  # of the network but the projection
    lengths = np.array([len(source) for source in sources], np.int32)
    cross = runner.encode(source_ids.numpy(), lengths)
    caches = empty_states(states_of(config), len(sources), target_ids.shape[1], "float32")
    feeds: dict[str, NDArray[Any]] = dict(zip(cache_names("cross", config.cross_layers), cross, strict=True))
    worst = 0.0
    for position in range(target_ids.shape[1]):
        past = np.full(len(sources), position, np.int32)
        logits, *written = runner.step_logits(target_ids[:, position].numpy(), past, lengths, {**feeds, **caches})
        caches = dict(zip(caches, written, strict=True))
        with torch.inference_mode():
            expected = model.logits(states[:, position]).numpy()
        inside = np.array([position < len(target) for target in targets])
        with np.errstate(invalid="ignore"):  # suppressed tokens: both are -inf
            differences = np.where(logits == expected, 0, logits - expected)
        worst = float(np.maximum(worst, np.abs(differences)[inside].max()))  # keeps NaN, unlike max
    largest = float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0))
    allowed = max(LOGITS_ATOL, LOGITS_RTOL * largest)
    if not worst <= allowed:
        raise VerificationError(f"step logits differ from teacher forcing by {worst:.2e}, allowed {allowed:.1e}")
    return {"sentences": len(sources), "positions": target_ids.shape[1], "largest_difference": worst}


def check_ids(
    model: Stepwise,
    translator: IdTranslator,
    sources: list[list[int]],
    beam_size: int,
    max_target_tokens: int,
    *,
    prefixes: Sequence[Ids] = (),
    search_defaults: SearchDefaults | None = None,
) -> dict[str, Any]:
    """Compares the engine's fp32 translations of real sentences with the oracle's.

    Args:
        model: in evaluation mode.
        translator: of a float32 variant.
        sources: token ids with eos.
        beam_size: 1 is greedy search.
        max_target_tokens: as the bundle limits it.
        prefixes: what each translation is forced to begin with; none if left out.
        search_defaults: the model's own length penalty and rules.
    """
    defaults = search_defaults or SearchDefaults()
    rules = SearchRules(early_stopping=defaults.early_stopping, forced_eos=defaults.forced_eos)
    options = DecodingOptions(beam_size=beam_size, length_penalty=defaults.length_penalty)
    prefixes = prefixes or [()] * len(sources)
    answers = translator(sources, options, prefixes)
    translator.let_go()
    failures: list[str] = []
    near_ties: list[str] = []
    most = max(1, min(32, _ORACLE_BYTES // (4 * model.config.vocab_size * beam_size)))
    for start in range(0, len(sources), most):
        chunk, forced = sources[start : start + most], prefixes[start : start + most]
        limits = [
            min(default_max_tokens(len(source), max_target_tokens) + len(prefix), max_target_tokens)
            for source, prefix in zip(chunk, forced, strict=True)
        ]
        oracle = search(
            model,
            chunk,
            beam_size=beam_size,
            length_penalty=defaults.length_penalty,
            max_tokens=limits,
            forced_prefixes=forced,
            rules=rules,
            placeholder_ids=translator.placeholder_ids,
        )
        for i, (source, limit, expected) in enumerate(zip(chunk, limits, oracle, strict=True), start=start):
            answer, prefix = answers[i], prefixes[i]
            if list(answer.ids) == expected[0].ids:
                continue
            both = ([*prefix, *answer.ids], [*prefix, *expected[0].ids])
            gap = tie_gap(model, source, *both, limit, is_greedy=beam_size == 1)
            note = f"sentence {i}: {list(answer.ids)} instead of {expected[0].ids}, {gap:.1e} apart"
            (near_ties if gap <= NEAR_TIE else failures).append(note)
    if failures:
        raise VerificationError(f"beam size {beam_size}: ids differ from the oracle's: " + "; ".join(failures))
    return {"sentences": len(sources), "equal": len(sources) - len(near_ties), "near_ties": near_ties}


def tie_gap(
    model: Stepwise, source: list[int], ids: list[int], other: list[int], max_tokens: int, is_greedy: bool
) -> float:
    """Returns by how much the torch model prefers one translation: 0 for a tie.

    For greedy search it is the difference of the two tokens' log-probabilities at the first step that differs; for a
    beam, whose steps no answer tells, that of the whole translations.
    """
    mine, others = (token_log_probs(model, source, each, max_tokens) for each in (ids, other))
    if is_greedy:
        config = model.config
        pairs = zip([*ids, config.eos_id], [*other, config.eos_id], strict=False)
        step = next(i for i, (token, other_token) in enumerate(pairs) if token != other_token)
        return abs(mine[step] - others[step])
    return abs(sum(mine) - sum(others))


def token_log_probs(model: Stepwise, source: list[int], ids: list[int], max_tokens: int) -> list[float]:
    """Returns the torch model's log-probability of each token (of eos too, unless `max_tokens` cut it off)."""
    config = model.config
    target = [config.bos_id, *ids, config.eos_id][: max_tokens + 1]
    with torch.inference_mode():
        logits = model(torch.tensor([source]), torch.tensor([target[:-1]]))
    chosen: list[float] = logits.log_softmax(-1)[0, torch.arange(len(target) - 1), torch.tensor(target[1:])].tolist()
    return chosen


def check_rows_apart(
    translator: IdTranslator, sources: list[list[int]], prefixes: Sequence[Ids] = ()
) -> dict[str, Any]:
    """Counts the sentences that give the same ids alone and in a batch of all."""
    options = DecodingOptions(beam_size=1)
    together = translator(sources, options, prefixes)
    alone = translator.one_by_one(sources, options, prefixes)
    same = sum(a.ids == b.ids for a, b in zip(together, alone, strict=True))
    if same < MIN_SAME_ALONE * len(sources):
        raise VerificationError(f"only {same} of {len(sources)} sentences give the same ids alone and in a batch")
    return {"sentences": len(sources), "same_alone": same}


def measure_quality(
    translator: IdTranslator, tokenizer: Tokenizer, examples: Sequence[Example], options: DecodingOptions
) -> tuple[dict[str, Any], list[Hypothesis]]:
    """Translates sentences with references; returns sacreBLEU (13a, cased) and chrF, and the translations."""
    references = [each.reference for each in examples]
    started = time.monotonic()
    best = translator.of_examples(examples, options)
    hypotheses = [tokenizer.decode(each.ids) for each in best]
    seconds = time.monotonic() - started
    bleu, chrf = sacrebleu.metrics.BLEU(), sacrebleu.metrics.CHRF()
    scores = {
        "sentences": len(examples),
        "bleu": round(bleu.corpus_score(hypotheses, [references]).score, 2),
        "bleu_signature": str(bleu.get_signature()),
        "chrf": round(chrf.corpus_score(hypotheses, [references]).score, 2),
        "chrf_signature": str(chrf.get_signature()),
        "seconds": round(seconds, 1),
    }
    return scores, best


def check_quality(quality: dict[str, dict[str, Any]], max_bleu_loss: float) -> None:
    """Compares the BLEU of each variant, with its shortlist too, on the dev set with that of cpu-fp32."""
    losses = {name: quality["cpu-fp32"]["bleu"] - scores["bleu"] for name, scores in quality.items()}
    failures = [
        f"{name} loses {loss:.2f} BLEU to cpu-fp32 on the dev set, allowed {max_bleu_loss}"
        for name, loss in losses.items()
        if loss > max_bleu_loss
    ]
    if failures:
        remedy = "calibrate with sentences of the kind that the model will translate (--dev), or raise --max-bleu-loss"
        raise VerificationError(f"{'; '.join(failures)}: {remedy}")
