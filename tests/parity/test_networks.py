"""Networks that depart from the paper, as others' have: the same ids from the oracle, the graphs and the engine."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from export.files import write_variant
from export.manifest import dimensions_of, special_ids_of
from export.states import states_of
from model.search import Stepwise, search
from server.bundle.bundle import Bundle
from server.bundle.files import describe_file
from server.bundle.manifest import SHORTLIST_FILE, Limits
from server.bundle.shortlist import Shortlist
from server.network import StepInputs
from server.runtime.device_decoder import DeviceDecoder
from server.runtime.host_decoder import HostDecoder
from server.runtime.processor import has_int8_dot_product
from tests.export.conftest import SHAPES, SUPPRESSED, build_model
from tests.parity.test_continuous_batching import Ids, Stepper, best

VARIANTS = ("cpu-fp32", "cpu-int8", "cuda-fp16")
WIDTHS = (1, 4, 2)
MAX_TOKENS = 18


@dataclasses.dataclass(frozen=True)
class Network:
    """A random model, sources for it, and a bundle of it with a shortlist of all tokens; nothing is proven.

    Its `answers` are what `run` has found: several tests compare with the same.
    """

    model: Stepwise
    bundle: Bundle
    sources: list[list[int]]
    answers: dict[tuple[str, bool], list[Ids]] = dataclasses.field(default_factory=dict)

    def run(self, variant: str, use_shortlist: bool = False) -> list[Ids]:
        """Translates all, in steps that they share, unless it has done so before."""
        key = variant, use_shortlist
        if key not in self.answers:
            self.answers[key] = self.run_anew(variant, use_shortlist)
        return self.answers[key]

    def run_anew(self, variant: str, use_shortlist: bool = False) -> list[Ids]:
        """Translates all, in steps that they share."""
        stepper = Stepper(self.bundle, variant)
        futures = []
        for i, source in enumerate(self.sources):
            width = WIDTHS[i % 3]
            futures.append(stepper.submit(source, width, use_shortlist=use_shortlist, max_output_tokens=MAX_TOKENS))
            stepper.step(i % 3)  # the next ones join those that run
        stepper.finish()
        return [best(future) for future in futures]

    def alone(self, variant: str) -> list[Ids]:
        """Translates one after the other."""
        stepper, found = Stepper(self.bundle, variant), []
        for i, source in enumerate(self.sources):
            future = stepper.submit(source, WIDTHS[i % 3], max_output_tokens=MAX_TOKENS)
            stepper.finish()
            found.append(best(future))
        return found


def bundled(model: Stepwise, like: Bundle, directory: Path, variants: Sequence[str], num_sources: int = 24) -> Network:
    """Returns a network with random sources, and a bundle of its variants, made in an empty directory."""
    config = model.config
    random, size = np.random.default_rng(1), config.source_vocab_size or config.vocab_size
    sources = [[*random.integers(4, size, random.integers(1, 11)).tolist(), config.eos_id] for _ in range(num_sources)]
    targets = [[config.bos_id, *random.integers(4, config.vocab_size, 9).tolist()] for _ in sources]
    everything = np.arange(config.vocab_size, dtype=np.int32)
    Shortlist(np.zeros((size, 1), np.int32), everything).save(directory / SHORTLIST_FILE)
    written = {
        name: write_variant(model, directory, name, sources, targets, has_shortlist=name != "cuda-fp16")
        for name in variants
    }
    manifest = dataclasses.replace(
        like.manifest,
        variants=written,
        dimensions=dimensions_of(config),
        states=states_of(config),
        special_ids=special_ids_of(config),
        limits=Limits(max_source_tokens=12, max_target_tokens=20, max_beam_size=5),
        extra_files={SHORTLIST_FILE: describe_file(directory / SHORTLIST_FILE)},
    )
    return Network(model, Bundle(directory=directory, manifest=manifest), sources)


@pytest.fixture(scope="module", params=[name for name in SHAPES if name not in ("post", "pre-learned")])
def network(request: pytest.FixtureRequest, tiny_bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Network:
    model = build_model(**{**SHAPES[request.param], "d_model": 48, "num_heads": 2})
    with torch.no_grad():
        for name, weight in model.named_parameters():  # the source must outweigh what is the same for all
            if any(part in name for part in ("attention", "feed_forward", "ssru", "retention")):
                weight.mul_(10.0 if "cross_attention.output" in name else 2.5)
            if name.endswith("bias"):
                weight.mul_(0.2)
        model.output_weight[model.config.eos_id] = model.output_weight[4:16].sum(0) / 2  # some sentences end
    return bundled(model, tiny_bundle, tmp_path_factory.mktemp(request.param), VARIANTS)


def test_single_precision_gives_the_ids_of_the_oracle(network: Network) -> None:
    found = network.run("cpu-fp32")

    for i, (source, ids) in enumerate(zip(network.sources, found, strict=True)):
        (expected,) = search(network.model, [source], beam_size=WIDTHS[i % 3], max_tokens=MAX_TOKENS)
        assert list(ids) == expected[0].ids
        assert network.model.output_bias is None or SUPPRESSED not in ids
    assert len(set(found)) > 4  # the sources matter


@pytest.mark.parametrize("variant", ["cpu-fp32", "cpu-int8"])
def test_a_shortlist_of_all_tokens_changes_nothing(network: Network, variant: str) -> None:
    with_all, without = network.run(variant, use_shortlist=True), network.run(variant)

    saturates = variant == "cpu-int8" and not has_int8_dot_product()  # see docs/explanations/int8.md
    assert sum(one != other for one, other in zip(with_all, without, strict=True)) <= (2 if saturates else 0)


def test_int8_keeps_rows_apart(network: Network) -> None:
    assert network.run("cpu-int8") == network.alone("cpu-int8")


@pytest.mark.parametrize("variant", ["cpu-fp32", "cuda-fp16"])
def test_a_step_may_be_taken_again(network: Network, variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one is that had no memory, and as CUDA does for a capture."""
    expected = network.run(variant)
    for decoder in (HostDecoder, DeviceDecoder):
        monkeypatch.setattr(decoder, "step", twice(decoder.step))

    assert network.run_anew(variant) == expected


def twice(step: Any) -> Any:
    def steps(self: Any, inputs: StepInputs) -> Any:
        step(self, inputs)
        return step(self, inputs)

    return steps


def test_half_precision_is_close_to_the_oracle(network: Network) -> None:
    found, expected = network.run("cuda-fp16"), network.run("cpu-fp32")

    firsts = [a[:1] == b[:1] for a, b in zip(found, expected, strict=True)]
    assert sum(firsts) > 0.8 * len(firsts)
