"""Forty models and memory for ten, asked for at random: what they answer, and what callers of loaded ones notice."""

import math
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from babelserve.v1.translation_pb2 import TranslateRequest, Translation
from babelserve.v1.translation_pb2_grpc import TranslationServiceStub
from export.bundle import export_bundle
from export.subject import subject_of
from model.checkpoint import load_checkpoint
from server.models.loading import needed_bytes
from tests.acceptance.calls import open_stub
from tests.acceptance.model_swaps import put, rss_mib
from tests.acceptance.report import Check
from tests.acceptance.server_process import running_server
from tests.captions import read_captions
from tests.chaos.callers import percentile
from tests.chaos.case import Case, Options, Skipped, at_most, none
from tests.chaos.observations import metric

_NUM_MODELS, _NUM_FITTING = 40, 10
_NUM_REQUESTS = 800
_FLAGS = ("--variant", "cpu-fp32", "--lanes", "1")
_DATA = Path(__file__).parents[1] / "data"
_TIMEOUT_SECONDS = 60.0
_MOST_SLOWER = 1.2
_MOST_OVER = 1.1  # of the budget
_TOLERANCE = 1e-4  # of scores


def take_turns(options: Options) -> Iterator[Check]:
    """One caller; a server with one of the models is asked for each sentence as well, right before or after."""
    if options.is_quick:
        raise Skipped("takes minutes; tests/e2e/test_models.py has the quick part")
    chance = random.Random(options.seed)
    names = [f"m{number}" for number in range(_NUM_MODELS)]
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        dev_set = read_captions()
        bundle = export_bundle(
            subject_of(load_checkpoint(_DATA / "tiny.pt")), directory / "tiny", dev_set, version="0", max_bleu_loss=3.0
        )
        for name in names:
            put(bundle.directory, directory / "models" / name)
        budget_mib = math.ceil(_NUM_FITTING * needed_bytes(bundle.manifest, "cpu-fp32") / 2**20)
        flags = ["--models", str(directory / "models"), "--load", "on-demand", "--models-memory", str(budget_mib)]
        many = stack.enter_context(running_server([*_FLAGS, *flags]))
        one = stack.enter_context(running_server([*_FLAGS, "--bundle", str(bundle.directory)]))
        of_many, of_one = (stack.enter_context(open_stub(server.address)) for server in (many, one))
        _ask(of_many, dev_set.sources[0], names[0])  # loads what is no model's too
        before = rss_mib(many) - budget_mib / _NUM_FITTING

        num_loads = metric(many, "model_loads_total")
        faults: list[str] = []
        loaded: list[float] = []
        alone: list[float] = []
        for _ in range(_NUM_REQUESTS):
            name, source = chance.choice(names), chance.choice(dev_set.sources)
            num_before = num_loads
            (answer, seconds), (expected, seconds_alone) = _by_turns(chance, source, {of_many: name, of_one: ""})
            num_loads = metric(many, "model_loads_total")
            if num_loads == num_before:
                loaded.append(seconds)
                alone.append(seconds_alone)
            if answer.text != expected.text or abs(answer.score - expected.score) > _TOLERANCE:
                faults.append(f"{name}: another answer")
        grown = rss_mib(many) - before
        loads, evictions = (metric(many, name) for name in ("model_loads_total", "model_unloads_total"))
        num_loaded = metric(many, "models", state="loaded")

    yield none("answers that a model alone does not give", faults)
    yield Check(
        "loads, evictions, loaded at the end",
        f"{loads:.0f}, {evictions:.0f}, {num_loaded:.0f}",
        f"{_NUM_FITTING} loaded, the difference",
        num_loaded == _NUM_FITTING == loads - evictions,
    )
    yield at_most("memory of models", grown, _MOST_OVER * budget_mib, " MiB")
    p95, p95_alone = percentile(loaded, 95), percentile(alone, 95)
    yield Check(
        f"{len(loaded)} requests to loaded models: p95",
        f"{1000 * p95:.1f} ms, {1000 * p95_alone:.1f} ms of one model alone: {p95 / p95_alone:.2f}",
        f"<= {_MOST_SLOWER:g}",
        p95 <= _MOST_SLOWER * p95_alone,
    )


def _by_turns(
    chance: random.Random, source: str, models: dict[TranslationServiceStub, str]
) -> list[tuple[Translation, float]]:
    """Asks servers, any of them first: to have read the metrics page slows down whoever is asked next."""
    found = {stub: _ask(stub, source, models[stub]) for stub in chance.sample(list(models), len(models))}
    return [found[stub] for stub in models]


def _ask(stub: TranslationServiceStub, source: str, model: str = "") -> tuple[Translation, float]:
    begun = time.monotonic()
    answer = stub.Translate(
        TranslateRequest(contents=[source], target_language_code="de", model=model), timeout=_TIMEOUT_SECONDS
    )
    return answer.translations[0], time.monotonic() - begun


CASES = (Case("on-demand", "forty models, memory for ten", take_turns),)
