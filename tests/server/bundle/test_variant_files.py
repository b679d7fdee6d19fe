"""A variant's files, and the weights that are made of its own and those that it shares."""

import dataclasses

import numpy as np
import pytest
from numpy.typing import DTypeLike

from server.bundle.bundle import Bundle
from server.bundle.files import FileFacts
from server.bundle.graphs import HALVES_FILE, WEIGHTS_FILE
from server.bundle.variant_files import Variant, join_weights


@pytest.fixture
def variant(tiny_bundle: Bundle) -> Variant:
    return tiny_bundle.manifest.variants["cpu-fp32"]


def test_one_hash_stands_for_all_files_in_any_order(variant: Variant) -> None:
    turned = dataclasses.replace(variant, files=dict(reversed(variant.files.items())))
    renamed = dataclasses.replace(variant, files={f"{name}x": facts for name, facts in variant.files.items()})
    changed = dataclasses.replace(variant, files={**variant.files, "encoder.onnx": FileFacts(sha256="0", bytes=1)})
    other_halves = dataclasses.replace(variant, halves=FileFacts(sha256="0", bytes=2))

    assert list(turned.files) != list(variant.files)
    assert turned.sha256 == variant.sha256
    assert len({each.sha256 for each in (variant, renamed, changed, other_halves)}) == 4


def test_a_variant_has_a_shortlist_if_it_has_a_step_for_one(variant: Variant) -> None:
    files = {**variant.files, "decoder_step_shortlist.onnx": FileFacts(sha256="0", bytes=1)}

    assert not variant.has_shortlist
    assert dataclasses.replace(variant, files=files).has_shortlist


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("num_halves", [0, 1, 2**16])
def test_halves_go_on_where_the_own_weights_end_in_their_type(dtype: DTypeLike, num_halves: int) -> None:
    own = np.array([1.1, -0.0], dtype)
    halves = np.arange(num_halves, dtype=np.uint16).view(
        np.float16
    )  # all that there are: infinite ones, and no numbers

    whole = join_weights(own.tobytes(), halves.tobytes(), dtype)

    assert whole == np.concatenate([own, halves.astype(dtype)]).tobytes()


def test_weights_that_are_shared_are_in_the_bundle_once(tiny_bundle: Bundle) -> None:
    variants = tiny_bundle.manifest.variants
    (halves,) = {variants[name].halves for name in ("cpu-fp32", "cuda-fp16")}
    assert halves is not None

    shared = np.fromfile(tiny_bundle.directory / HALVES_FILE, np.float16)

    assert halves.bytes == shared.nbytes
    for name in ("cpu-fp32", "cuda-fp16"):
        whole = np.frombuffer(tiny_bundle.read(f"{name}/{WEIGHTS_FILE}"), variants[name].dtype)
        assert np.array_equal(whole[-len(shared) :], shared.astype(variants[name].dtype))
        assert variants[name].files[WEIGHTS_FILE].bytes < whole.nbytes / 2
