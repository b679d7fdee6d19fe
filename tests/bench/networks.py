"""What networks that learned from the same text are worth, each served as it is deployed.

    python -m tests.bench.networks ssru=runs/ssru-bundle ctc=runs/ctc-bundle --domain captions=captions.tsv \
        --domain news=news.tsv

For each bundle it starts a server and measures, one network after the other: BLEU and chrF of its answers with 95 %
intervals (bootstrap over sentences), by domain and by the length of the source; target tokens a second while many
requests wait; the median time of a sentence alone; p95 of Poisson arrivals at 80 % of what it can do; peak memory. Then
it measures steps without a server. How fast a network learned stands in its manifest. The figures are kept in
`--output`, so that the table can grow: a network whose figures are there with the same variant and beam size is not
measured again. Nothing else should run beside it.

`--pictures` draws quality against speed, quality by length, and the time of steps by their position. `make networks`
trains the networks first (`tests.bench.train_networks`).
"""

import argparse
import json
import re
import statistics
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import sacrebleu
import torch
from tabulate import tabulate

from babelserve.v1 import translation_pb2 as pb
from babelserve.v1.translation_pb2_grpc import TranslationServiceStub
from model.config import TransformerConfig
from model.data import read_corpus
from model.families import FAMILIES
from model.recipe import CorpusConfig
from server.bundle.bundle import open_bundle
from server.bundle.manifest import Manifest
from tests.acceptance.calls import open_stub
from tests.bench.callers import Callers
from tests.bench.machine import describe_machine, versions
from tests.bench.network_pictures import draw
from tests.bench.network_steps import step_times
from tests.bench.servers import our_server
from tests.bench.statistics import percentiles
from tests.bench.systems import Settings

Pairs = list[tuple[str, str]]

LENGTHS = ((1, 5), (6, 20), (21, 40), (41, 10**6))  # words of the source
_TOKENS = 1000  # of a long translation, whose states are counted
_BATCH, _CALLERS = 32, 4  # sentences of a request, and requests at a time
_LOAD = 0.8  # of what a network can do
_RESAMPLES = 1000
_DOUBLED = re.compile(r"\b(\w+) \1\b")


def main() -> None:
    """Compares the bundles that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.networks", description=__doc__.partition("\n")[0])
    add_arguments(parser)
    arguments = parser.parse_args()
    compare(arguments, read_domains(arguments))


def read_domains(arguments: argparse.Namespace) -> dict[str, Pairs]:
    """Returns the test text of each domain. Raises OSError or ValueError if a file cannot be read."""
    return {name: read_corpus(CorpusConfig(tsv=path), Path()).pairs for name, path in arguments.domain}


def compare(arguments: argparse.Namespace, domains: dict[str, Pairs]) -> None:
    """Measures the bundles that are not in the output yet, and prints the tables."""
    document: dict[str, Any] = {"machine": describe_machine(), "versions": versions(), "networks": {}}
    if arguments.output.exists():
        document = json.loads(arguments.output.read_text(encoding="utf-8"))
    for name, path in arguments.bundles:
        if not is_measured(document["networks"].get(name), arguments.variant, arguments.beam_size):
            document["networks"][name] = measure(Path(path), domains, arguments)
            arguments.output.parent.mkdir(parents=True, exist_ok=True)
            arguments.output.write_text(f"{json.dumps(document, indent=1)}\n", encoding="utf-8")
    print("\n\n".join(tables(document["networks"])))
    if arguments.pictures:
        draw(document["networks"], arguments.pictures)


def is_measured(found: dict[str, Any] | None, variant: str, beam_size: int) -> bool:
    """Whether the figures of a network, None without any, are of this variant and this size of the beam."""
    return found is not None and (found["variant"], found["beam_size"]) == (variant, beam_size)


def measure(path: Path, domains: dict[str, Pairs], arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns all figures of a bundle."""
    manifest = open_bundle(path, arguments.variant).manifest
    settings = Settings(system="ours", path=str(path), precision=arguments.variant, workers=arguments.lanes, batch=0)
    lines = [source for pairs in domains.values() for source, _ in pairs]
    found: dict[str, Any] = {
        "variant": arguments.variant,
        "beam_size": arguments.beam_size,
        "million weights": _num_weights(manifest) / 1e6,
        "state KB of a row": _state_bytes(manifest, arguments.variant) / 1000,
        "training tokens/s": _training_speed(manifest.training),
    }
    with our_server(settings) as server, open_stub(server.address) as stub:
        _answers(stub, lines[: _BATCH * _CALLERS], arguments.beam_size)  # warms up
        started = time.perf_counter()
        answers = _answers(stub, lines, arguments.beam_size)
        found["tokens/s"] = sum(answer.target_tokens for answer in answers) / (time.perf_counter() - started)
        found["alone ms"] = _alone(stub, lines[:: max(1, len(lines) // arguments.alone)], arguments.beam_size)
        callers = Callers(server, lines, arguments.beam_size)
        capacity = callers.closed(arguments.seconds)
        found["sentences/s"] = capacity
        found["p95 ms at 80 % load"] = callers.open(_LOAD * capacity, arguments.seconds)["p95 ms"][0]
        callers.close()
    found["peak MB"] = server.peak_bytes / 1e6
    found["step us by position"] = step_times(open_bundle(path, arguments.variant), arguments.variant)
    texts = iter([answer.text for answer in answers])
    found["domains"] = {name: score(pairs, [next(texts) for _ in pairs]) for name, pairs in domains.items()}
    return found


def score(pairs: Pairs, answers: Sequence[str]) -> dict[str, Any]:
    """Returns BLEU and chrF, each with its interval, of all sentences and by length; and the share of doubled words."""
    doubled = [
        bool(_DOUBLED.search(text)) and not _DOUBLED.search(reference)
        for text, (_, reference) in zip(answers, pairs, strict=True)
    ]
    of_length = {
        _range(low, high): [i for i, (source, _) in enumerate(pairs) if low <= len(source.split()) <= high]
        for low, high in LENGTHS
    }
    chosen = {"all": list(range(len(pairs))), **of_length}
    return {
        "doubled %": 100 * statistics.fmean(doubled),
        "scores": {name: _scores(pairs, answers, places) for name, places in chosen.items() if places},
    }


def tables(networks: dict[str, Any]) -> Iterator[str]:
    """Yields the tables in Markdown: what networks cost, how good they are, and how good by length."""
    costs = ("million weights", "tokens/s", "sentences/s", "alone ms", "p95 ms at 80 % load", "peak MB")
    rows = [
        [name, *(found[cost] for cost in (*costs, "state KB of a row")), f"{found['training tokens/s']:,.0f}"]
        for name, found in networks.items()
    ]
    yield _table(["network", *costs, f"state KB, {_TOKENS} tokens", "training tokens/s"], rows)
    domains = list(dict.fromkeys(domain for found in networks.values() for domain in found["domains"]))
    headers = [f"{domain}, {metric}" for domain in domains for metric in ("BLEU", "chrF", "doubled words %")]
    rows = []
    for name, found in networks.items():
        cells: list[Any] = [name]
        for each in (found["domains"][domain] for domain in domains):
            cells += [*_shown(each["scores"]["all"]), each["doubled %"]]
        rows.append(cells)
    yield _table(["network", *headers], rows)
    for domain in domains:
        lengths = next(iter(networks.values()))["domains"][domain]["scores"]
        headers = [f"{length} words ({scores['sentences']})" for length, scores in lengths.items() if length != "all"]
        rows = [
            [name, *(", ".join(_shown(each)) for length, each in found.items() if length != "all")]
            for name, found in ((name, found["domains"][domain]["scores"]) for name, found in networks.items())
        ]
        yield _table([f"{domain}: BLEU, chrF", *headers], rows)


def _answers(stub: TranslationServiceStub, lines: Sequence[str], beam_size: int) -> list[pb.Translation]:
    """Returns the answers to all lines, while a few requests are under way at any time."""
    options = pb.DecodingOptions(beam_size=beam_size)

    def ask(start: int) -> list[pb.Translation]:
        some = lines[start : start + _BATCH]
        request = pb.TranslateRequest(contents=some, target_language_code="de", decoding=options)
        return list(stub.Translate(request, timeout=600).translations)

    with ThreadPoolExecutor(_CALLERS) as pool:
        return [answer for answers in pool.map(ask, range(0, len(lines), _BATCH)) for answer in answers]


def _alone(stub: TranslationServiceStub, lines: Sequence[str], beam_size: int) -> float:
    """Returns the median of the milliseconds that each line takes by itself."""
    seconds = []
    for line in lines:
        started = time.perf_counter()
        _answers(stub, [line], beam_size)
        seconds.append(time.perf_counter() - started)
    return 1000 * percentiles(seconds)["p50"]


def _scores(pairs: Pairs, answers: Sequence[str], places: list[int]) -> dict[str, Any]:
    texts, references = [answers[i] for i in places], [pairs[i][1] for i in places]
    found: dict[str, Any] = {"sentences": len(places)}
    for name, metric in (("bleu", sacrebleu.metrics.BLEU()), ("chrf", sacrebleu.metrics.CHRF())):
        found[name] = [metric.corpus_score(texts, [references]).score, _interval(metric, texts, references)]
    return found


def _interval(metric: Any, texts: list[str], references: list[str]) -> float:
    """Returns half of the width of the 95 % interval, by drawing as many sentences anew."""
    counts = np.array(metric._extract_corpus_statistics(texts, [references]))  # of each sentence
    draws = np.random.default_rng(0).integers(0, len(counts), (_RESAMPLES, len(counts)))
    drawn = [metric._compute_score_from_stats(counts[draw].sum(axis=0).tolist()).score for draw in draws]
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(high - low) / 2


def _shown(scores: dict[str, Any]) -> list[str]:
    return [f"{value:.1f} ± {interval:.1f}" for value, interval in (scores["bleu"], scores["chrf"])]


def _range(low: int, high: int) -> str:
    return f"{low}-{high}" if high < LENGTHS[-1][1] else f"over {low - 1}"


def _num_weights(manifest: Manifest) -> int:
    config = TransformerConfig(**manifest.training["recipe"]["model"])
    with torch.device("meta"):  # the network without its numbers
        return sum(weight.numel() for weight in FAMILIES[config.family].network(config).parameters())


def _state_bytes(manifest: Manifest, variant: str) -> int:
    return sum(state.num_bytes(manifest.variants[variant].dtype, _TOKENS) for state in manifest.states)


def _training_speed(facts: dict[str, Any]) -> float:
    """Returns the target tokens a second; 0 if the training was of a version that did not count them."""
    tokens, seconds = facts.get("target_tokens", 0), facts["training_seconds"]
    return float(tokens / max(1, seconds))


def _table(headers: list[str], rows: list[list[Any]]) -> str:
    return str(tabulate(rows, headers, tablefmt="github", floatfmt=",.1f"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds what says which bundles are compared, and how."""
    parser.add_argument(
        "bundles", nargs="*", type=_named, metavar="NAME=BUNDLE", help="networks, by the name that the table gives them"
    )
    parser.add_argument(
        "--domain",
        action="append",
        default=[],
        type=_named,
        metavar="NAME=FILE",
        help="test text, lines of SOURCE TAB TARGET; several times for several domains",
    )
    parser.add_argument("--variant", default="cpu-int8", help="of each bundle (default: %(default)s)")
    parser.add_argument("--beam-size", type=int, default=1, help="of every search (default: %(default)s)")
    parser.add_argument("--lanes", type=int, default=2, help="of each server (default: %(default)s)")
    parser.add_argument("--alone", type=int, default=100, help="sentences that are sent alone (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=20, help="of each load (default: %(default)g)")
    parser.add_argument("--output", type=Path, default=Path("build/bench/networks.json"), help="default: %(default)s")
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="draws the figures there")


def _named(text: str) -> tuple[str, str]:
    name, is_there, path = text.partition("=")
    if not (name and is_there and path):
        raise argparse.ArgumentTypeError(f"must be NAME=PATH, not {text!r}")
    return name, path


if __name__ == "__main__":
    main()
