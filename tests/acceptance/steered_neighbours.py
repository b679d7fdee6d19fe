"""What sentences with penalties, bans or sampling cost the sentences beside them.

    python -m tests.acceptance.steered_neighbours
    python -m tests.acceptance.steered_neighbours --variant cpu-fp32 --rounds 30

A lane steps a batch of sentences whose rows are full, with and without an option for a quarter of them. The option
changes next to nothing about what they say, so that both times are of the same steps. The times are those of cores, so
that other processes hardly matter.
"""

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from prometheus_client import CollectorRegistry

from server.decoding.options import DecodingOptions, Sampling
from server.engine.engine import Engine
from tests.acceptance.report import Check, print_checks
from tests.acceptance.server_process import BUILTIN_BUNDLE
from tests.bench.rounds import turns
from tests.bench.statistics import median_ratio
from tests.bench.systems import Ids, Settings, open_engine
from tests.bench.text import DEFAULT_TEXT, read_text

_ROWS = 32
_MOST = 1.05
_OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "penalty": {"repetition_penalty": 1.0001},
    "n-grams": {"no_repeat_ngram_size": 20},
    "sampling": {"sampling": Sampling(top_k=1)},
    "end_loops, of all": {"end_loops": True},
}


def main() -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variant", default="cpu-int8", help="of the built-in model (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=20, metavar="N", help="default: %(default)s")
    arguments = parser.parse_args()
    tokenizer = (BUILTIN_BUNDLE / "tokenizer.model").read_bytes()
    sources = [ids for ids in read_text(DEFAULT_TEXT, tokenizer).source_ids if 20 <= len(ids) <= 40]
    settings = Settings(
        system="ours", path=str(BUILTIN_BUNDLE), precision=arguments.variant, workers=1, threads=1, batch=_ROWS
    )
    engine = open_engine(settings, CollectorRegistry())
    engine.start()
    seconds: dict[str, list[float]] = defaultdict(list)
    kinds = {f"{name}, beam {size}": (name, size) for name in _OPTIONS for size in (1, 4)}
    del kinds["sampling, beam 4"]
    try:
        for number, kind in turns(list(kinds), arguments.rounds):
            own = _measure(engine, sources, *kinds[kind])
            if number >= 0:
                seconds[kind].append(own)
    finally:
        engine.stop()
    checks = []
    for kind, (name, beam_size) in kinds.items():
        if name != "plain":
            ratio = median_ratio(seconds[kind], seconds[f"plain, beam {beam_size}"])
            checks.append(Check(f"{kind}: times plain", str(ratio), f"<= {_MOST}", ratio.value <= _MOST))
    return print_checks(checks)


def _measure(engine: Engine, sources: Sequence[Ids], name: str, beam_size: int) -> float:
    """Returns the seconds of a core that the sentences take, a quarter of them with an option."""
    sources = sources[: _ROWS // beam_size]
    plain = DecodingOptions(beam_size=beam_size)
    steered = DecodingOptions(beam_size=beam_size, **_OPTIONS[name])
    num_plain = 0 if name == "end_loops, of all" else len(sources) * 3 // 4
    started = time.process_time()
    futures = engine.submit(sources[num_plain:], steered, None)
    if num_plain:
        futures += engine.submit(sources[:num_plain], plain, None)
    for future in futures:
        future.result()
    return time.process_time() - started


if __name__ == "__main__":
    sys.exit(main())
