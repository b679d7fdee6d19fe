"""Heads are chosen that agree with a lexical model of the model's own translations."""

import dataclasses
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from export.alignment import Translated, choose_heads, sure_links
from export.probe_bundle import write_manifest
from server.bundle.alignment import Head
from server.bundle.bundle import Bundle, open_bundle
from tests.runners import open_host_runner

NUM_LAYERS, NUM_HEADS = 2, 3
WORDS = range(10, 40)
BOS, EOS = 2, 3


def sentences(count: int) -> list[Translated]:
    """Returns sentences whose translation has each word plus 100, in the opposite order."""
    numbers = random.Random(0)
    sources = [numbers.sample(WORDS, numbers.randint(4, 9)) for _ in range(count)]
    return [Translated((*source, EOS), (BOS, *(word + 100 for word in reversed(source)))) for source in sources]


def attend(source: Sequence[int], target: Sequence[int]) -> NDArray[np.float32]:
    """Head 1 of layer 1 looks at the right word when it predicts, head 2 of layer 0 when it consumes; others do not."""
    weights = np.random.default_rng(len(source)).random((NUM_LAYERS, NUM_HEADS, len(target), len(source)))
    for position, token in enumerate(target[1:], start=1):
        place = source.index(token - 100)
        weights[1, 1, position - 1, place] += 5.0
        weights[0, 2, position, place] += 0.7
    return weights.astype(np.float32)


def test_tokens_that_translate_each_other_are_linked() -> None:
    translated = sentences(200)

    links = sure_links([each.source for each in translated], [each.target for each in translated])

    num_right = num_found = 0
    for each, found in zip(translated, links, strict=True):
        for row, column in np.argwhere(found):
            num_found += 1
            num_right += each.target[row] - 100 == each.source[column]
    assert num_right / num_found > 0.8
    assert num_found > 0.9 * sum(len(each.source) - 1 for each in translated)


def test_the_head_that_looks_at_the_right_words_is_chosen() -> None:
    alignment = choose_heads(attend, sentences(200))

    assert alignment.heads == (Head(1, 1, is_shifted=False),)
    assert alignment.error_rate < 0.05
    assert alignment.num_sentences == 200


def test_a_head_that_looks_back_is_known_by_the_step_that_consumes_a_word() -> None:
    def look_back(source: Sequence[int], target: Sequence[int]) -> NDArray[np.float32]:
        weights = attend(source, target)
        weights[1, 1] = 0.0
        weights[0, 2] *= 10.0
        return weights

    assert choose_heads(look_back, sentences(200)).heads[0] == Head(0, 2, is_shifted=True)


def test_words_that_were_forced_are_not_judged() -> None:
    forced = [Translated(each.source, (BOS, 7, *each.target[1:]), num_forced=1) for each in sentences(100)]

    def attend_behind(source: Sequence[int], target: Sequence[int]) -> NDArray[np.float32]:
        weights = attend(source, (BOS, *target[2:]))
        return np.concatenate([np.zeros_like(weights[:, :, :1]), weights], axis=2)

    assert choose_heads(attend_behind, forced).error_rate < 0.05


def test_every_variant_of_an_export_has_an_aligner(tiny_bundle: Bundle) -> None:
    alignment = tiny_bundle.manifest.alignment

    assert alignment is not None
    assert 1 <= len(alignment.heads) <= 4
    assert all("aligner.onnx" in variant.files for variant in tiny_bundle.manifest.variants.values())
    assert open_host_runner(tiny_bundle, "cpu-int8").sessions.aligner_caches[0] == "cross_key.0"


def test_a_bundle_without_alignment_is_served(tiny_bundle: Bundle, tmp_path: Path) -> None:
    shutil.copytree(tiny_bundle.directory, tmp_path / "old")
    write_manifest(tmp_path / "old", dataclasses.replace(tiny_bundle.manifest, alignment=None))

    assert open_host_runner(open_bundle(tmp_path / "old"), "cpu-int8").sessions.aligner_caches == []
