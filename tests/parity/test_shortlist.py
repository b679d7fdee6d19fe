"""A sentence with a shortlist chooses among its own candidates, whoever shares its steps; one of all tokens is none."""

import dataclasses
import gc
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest

from export.files import write_variant
from model.checkpoint import Checkpoint
from server.bundle.bundle import Bundle
from server.bundle.files import describe_file
from server.bundle.manifest import SHORTLIST_FILE
from server.bundle.shortlist import Shortlist
from server.decoding.options import DecodingOptions
from server.errors import BundleError
from server.network import StepKind
from server.runtime.runner import open_runner
from tests.parity.test_continuous_batching import Ids, Stepper, best

WIDTHS = (1, 4, 2)
VARIANTS = ("cpu-fp32", "cpu-int8")


def with_shortlist(
    checkpoint: Checkpoint,
    like: Bundle,
    sources: list[list[int]],
    shortlist: Shortlist,
    directory: Path,
    variants: Sequence[str] = VARIANTS,
) -> Bundle:
    """Returns a bundle of variants for CPUs with a shortlist, not proven."""
    model, bos = checkpoint.build_model(), checkpoint.config.bos_id
    shortlist.save(directory / SHORTLIST_FILE)
    targets = [[bos, *ids[:-1]] for ids in sources]
    written = {name: write_variant(model, directory, name, sources, targets, has_shortlist=True) for name in variants}
    manifest = dataclasses.replace(
        like.manifest, variants=written, extra_files={SHORTLIST_FILE: describe_file(directory / SHORTLIST_FILE)}
    )
    return Bundle(directory=directory, manifest=manifest)


@pytest.fixture(scope="module")
def narrow(
    tiny_checkpoint: Checkpoint, tiny_bundle: Bundle, sources: list[list[int]], tmp_path_factory: pytest.TempPathFactory
) -> Bundle:
    """With a few random candidates for each token."""
    vocab_size, random = tiny_checkpoint.config.vocab_size, np.random.default_rng(0)
    by_token = random.integers(0, vocab_size, (vocab_size, 6), dtype=np.int32)
    common = np.array([tiny_checkpoint.config.eos_id, *range(50, 90)], np.int32)
    out = tmp_path_factory.mktemp("narrow")
    return with_shortlist(tiny_checkpoint, tiny_bundle, sources[:40], Shortlist(by_token, common), out)


def num_tables() -> int:
    """How many shortlists are in memory."""
    gc.collect()
    return sum(type(each) is Shortlist for each in gc.get_objects())


def test_a_runner_holds_a_table_only_once_sentences_choose_by_it_and_all_lanes_share_it(narrow: Bundle) -> None:
    before = num_tables()

    runner = open_runner(narrow, "cpu-fp32", "cpu")
    decoders = [runner.open_decoder(StepKind.PLAIN, max_rows=1)]
    unused = num_tables()
    decoders += [runner.open_decoder(StepKind.SHORTLIST, max_rows=1) for _ in range(2)]

    assert (unused - before, num_tables() - before) == (0, 1)


def run(stepper: Stepper, sources: list[list[int]], with_shortlist: list[bool]) -> list[Ids]:
    """Translates all, in steps that they share; widths of beams alternate."""
    futures = []
    for i, (source, use_shortlist) in enumerate(zip(sources, with_shortlist, strict=True)):
        futures.append(stepper.submit(source, WIDTHS[i % 3], use_shortlist=use_shortlist))
        if i % 4 == 3:
            stepper.step(2)  # the next ones join those that run
    stepper.finish()
    return [best(future) for future in futures]


def alone(stepper: Stepper, sources: list[list[int]], with_shortlist: list[bool]) -> list[Ids]:
    found = []
    for i, (source, use_shortlist) in enumerate(zip(sources, with_shortlist, strict=True)):
        future = stepper.submit(source, WIDTHS[i % 3], use_shortlist=use_shortlist)
        stepper.finish()
        found.append(best(future))
    return found


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_sentence_has_its_own_candidates_whoever_shares_its_steps(
    narrow: Bundle, sources: list[list[int]], variant: str
) -> None:
    few, flags = sources[:24], [True] * 24
    shortlist = Shortlist.load(narrow.read(SHORTLIST_FILE), narrow.manifest.dimensions.vocab_size)

    together = run(Stepper(narrow, variant, max_rows=16), few, flags)

    assert together == alone(Stepper(narrow, variant), few, flags)
    for source, ids in zip(few, together, strict=True):
        assert set(ids) <= set(shortlist.candidates(tuple(source)).tolist())
    free = run(Stepper(narrow, variant, max_rows=16), few, [False] * 24)
    assert free != together  # the shortlist is too short for this model, and that shows


def test_sentences_with_and_without_a_shortlist_do_not_mix(narrow: Bundle, sources: list[list[int]]) -> None:
    few, flags = sources[:12], [i % 3 == 0 for i in range(12)]

    together = run(Stepper(narrow, "cpu-fp32", max_rows=16), few, flags)

    assert together == alone(Stepper(narrow, "cpu-fp32"), few, flags)


@pytest.fixture(scope="module")
def whole(
    tiny_checkpoint: Checkpoint, tiny_bundle: Bundle, sources: list[list[int]], tmp_path_factory: pytest.TempPathFactory
) -> Bundle:
    """With all tokens for each token."""
    vocab_size, out = tiny_checkpoint.config.vocab_size, tmp_path_factory.mktemp("whole")
    everything = Shortlist(np.zeros((vocab_size, 1), np.int32), np.arange(vocab_size, dtype=np.int32))
    return with_shortlist(tiny_checkpoint, tiny_bundle, sources[:40], everything, out)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_shortlist_of_all_tokens_changes_nothing(whole: Bundle, sources: list[list[int]], variant: str) -> None:
    few = sources[:12]

    with_all = run(Stepper(whole, variant), few, [True] * 12)

    assert with_all == run(Stepper(whole, variant), few, [False] * 12)


def test_scores_of_a_shortlisted_sentence_are_log_probabilities(narrow: Bundle, sources: list[list[int]]) -> None:
    stepper = Stepper(narrow, "cpu-fp32")
    options = DecodingOptions(beam_size=4, num_hypotheses=4, use_shortlist=True)

    (future,) = stepper.engine.submit([sources[0]], options)
    stepper.futures.append(future)
    stepper.finish()

    scores = [hypothesis.score for hypothesis in future.result().hypotheses]
    assert all(-20 < score < 0 for score in scores)
    assert scores == sorted(scores, reverse=True)


def test_a_bundle_without_a_shortlist_has_no_graph_for_one(tiny_bundle: Bundle) -> None:
    assert not tiny_bundle.manifest.extra_files
    assert not any("shortlist" in file for v in tiny_bundle.manifest.variants.values() for file in v.files)


@pytest.mark.parametrize(
    ("common", "fault"),
    [
        ([0, 1, 2, 3, *range(11)], "has 11 common tokens, it needs 32"),
        (range(4, 40), "the end of a sentence, 3, is none of the common tokens"),
    ],
)
def test_a_list_whose_common_tokens_do_not_do_is_refused(
    tiny_checkpoint: Checkpoint,
    tiny_bundle: Bundle,
    sources: list[list[int]],
    tmp_path: Path,
    common: Iterable[int],
    fault: str,
) -> None:
    by_token = np.zeros((tiny_checkpoint.config.vocab_size, 1), np.int32)
    short = Shortlist(by_token, np.array([*common], np.int32))
    bundle = with_shortlist(tiny_checkpoint, tiny_bundle, sources[:10], short, tmp_path, ["cpu-fp32"])

    with pytest.raises(BundleError, match=fault):
        open_runner(bundle, "cpu-fp32", "cpu")
