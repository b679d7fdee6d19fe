"""Whether sampled translations are drawn as they should, and depend on their seeds alone.

    python -m tests.acceptance.sampling
    python -m tests.acceptance.sampling --sentences 100 --seeds 100

The first token of each sentence is drawn with many seeds. How often it is one of the likeliest tokens, or another one,
is compared with what the PyTorch model says, by a chi-square test over all sentences. Then each sentence is translated
with the same seed alone, and in a full batch beside sentences with other options.
"""

import argparse
import contextlib
import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry

from export.restore import read_checkpoint
from server.decoding.options import DecodingOptions, Sampling
from server.engine.engine import Engine
from tests.acceptance.report import Check, print_checks
from tests.acceptance.server_process import BUILTIN_BUNDLE
from tests.bench.systems import Ids, Settings, open_engine
from tests.bench.text import DEFAULT_TEXT, read_text

_WAYS = {
    "all tokens": Sampling(),
    "temperature 0.7": Sampling(temperature=0.7),
    "temperature 1.5": Sampling(temperature=1.5),
    "top_k 10": Sampling(top_k=10),
    "top_p 0.9": Sampling(top_p=0.9),
    "top_k 20, temperature 1.3, top_p 0.8": Sampling(top_k=20, temperature=1.3, top_p=0.8),
}
_RANKS = (0, 1, 2, 4, 8, 16, 64, 512)  # likeliest tokens, where a group of them begins
_MOST_SIGMA = 4.0  # of a chi-square from its mean: a run in 10,000 has more by chance


def main() -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=300, metavar="N", help="default: %(default)s")
    parser.add_argument("--seeds", type=int, default=64, metavar="N", help="of each sentence (default: %(default)s)")
    arguments = parser.parse_args()
    checkpoint = read_checkpoint(BUILTIN_BUNDLE)
    sources = read_text(DEFAULT_TEXT, checkpoint.tokenizer).source_ids[: arguments.sentences]
    model = checkpoint.build_model().eval()
    with torch.inference_mode():
        bos = torch.tensor([[checkpoint.config.bos_id]])
        first = np.array([model(torch.tensor([source]), bos)[0, 0].double().numpy() for source in sources])
    settings = Settings(system="ours", path=str(BUILTIN_BUNDLE), precision="cpu-fp32", batch=32)
    engine = open_engine(settings, CollectorRegistry())
    engine.start()
    with contextlib.ExitStack() as stack:
        stack.callback(engine.stop)
        checks = [
            _distribution(name, sampling, engine, sources, first, arguments.seeds, checkpoint.config.eos_id)
            for name, sampling in _WAYS.items()
        ]
        checks += [check for name, sampling in _WAYS.items() for check in _seeds(name, sampling, engine, sources)]
    return print_checks(checks)


def _distribution(
    name: str,
    sampling: Sampling,
    engine: Engine,
    sources: Sequence[Ids],
    logits: NDArray[np.float64],
    num_seeds: int,
    eos_id: int,
) -> Check:
    order = np.argsort(-logits, axis=1)
    shares = np.take_along_axis(_shares(logits, sampling), order, axis=1)
    expected = num_seeds * np.add.reduceat(shares, _RANKS, axis=1).sum(axis=0)
    ranks = np.argsort(order, axis=1)
    found = np.zeros(len(_RANKS))
    for seed in range(num_seeds):
        options = DecodingOptions(beam_size=1, sampling=replace(sampling, seed=seed), max_output_tokens=2)
        for number, future in enumerate(engine.submit(sources, options)):
            (ids,) = (each.ids for each in future.result().hypotheses)
            rank = ranks[number, ids[0] if ids else eos_id]
            found[np.searchsorted(_RANKS, rank, side="right") - 1] += 1
    is_possible = expected > 0
    # The numbers of draws vary less than a multinomial's, since the shares differ between sentences.
    distance = ((found - expected)[is_possible] ** 2 / expected[is_possible]).sum()
    freedom = is_possible.sum() - 1
    sigma = float((distance - freedom) / np.sqrt(2 * max(1, freedom)))
    is_right = sigma <= _MOST_SIGMA and not found[~is_possible].any()
    measured = f"chi-square {distance:.1f} with {freedom} degrees of freedom, {int(found.sum())} draws"
    return Check(f"{name}: first tokens", measured, f"<= {_MOST_SIGMA:g} sigma", bool(is_right))


def _shares(logits: NDArray[np.float64], sampling: Sampling) -> NDArray[np.float64]:
    """Returns how likely each token is to be drawn, [n, V], in the plainest way."""
    if sampling.top_k:
        least = np.sort(logits, axis=1)[:, -sampling.top_k, np.newaxis]
        logits = np.where(logits >= least, logits, -np.inf)
    scaled = logits / sampling.temperature
    shares = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    order = np.argsort(-shares, axis=1)
    ordered = np.take_along_axis(shares, order, axis=1)
    ordered[ordered.cumsum(axis=1) - ordered >= sampling.top_p] = 0.0
    np.put_along_axis(shares, order, ordered, axis=1)
    normalised: NDArray[np.float64] = shares / shares.sum(axis=1, keepdims=True)
    return normalised


def _seeds(name: str, sampling: Sampling, engine: Engine, sources: Sequence[Ids]) -> list[Check]:
    own = DecodingOptions(beam_size=1, sampling=replace(sampling, seed=7))
    others = [DecodingOptions(beam_size=4, repetition_penalty=1.2), replace(own, sampling=Sampling(seed=8))]
    alone = [engine.submit([source], own)[0].result().hypotheses for source in sources]
    beside = []
    for source in sources:
        (future,) = engine.submit([source], own)
        beside.append((future, [engine.submit([source], each)[0] for each in others]))
    num_same = sum(
        future.result().hypotheses[0].ids == best.ids for (best,), (future, _) in zip(alone, beside, strict=True)
    )
    num_other = sum(
        other.result().hypotheses[0].ids != best.ids for (best,), (_, (_, other)) in zip(alone, beside, strict=True)
    )
    return [
        Check(
            f"{name}: same seed, alone and beside others",
            f"{num_same} of {len(sources)} the same",
            "all",
            num_same == len(sources),
        ),
        Check("  another seed", f"{num_other} of {len(sources)} differ", "some", num_other > 0),
    ]


if __name__ == "__main__":
    sys.exit(main())
