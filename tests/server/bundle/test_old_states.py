"""Manifests of revisions that named a mixer and had no table of states."""

import json
from typing import Any

import pytest

from server.bundle.bundle import Bundle
from server.bundle.manifest_file import parse_manifest
from server.bundle.states import attention_states, ssru_states
from server.errors import BundleError


def old(bundle: Bundle, **dimensions: Any) -> bytes:
    manifest = json.loads(bundle.manifest.to_json())
    manifest["revision"] = 10
    del manifest["states"]
    manifest["dimensions"].update(dimensions)
    return json.dumps(manifest).encode()


def test_a_mixer_stands_for_its_table(tiny_bundle: Bundle) -> None:
    sizes = tiny_bundle.manifest.dimensions
    attention = attention_states(sizes.decoder_layers, sizes.num_heads, sizes.head_dim)

    assert parse_manifest(old(tiny_bundle)).states == tiny_bundle.manifest.states == attention
    assert parse_manifest(old(tiny_bundle, decoder_mixer="attention")).states == attention
    found = parse_manifest(old(tiny_bundle, decoder_mixer="ssru"))
    assert found.states == ssru_states(sizes.decoder_layers, sizes.d_model)
    assert found.dimensions == sizes


@pytest.mark.parametrize("mixer", ["lstm", None, 3, ["ssru"]])
def test_another_mixer_is_refused(tiny_bundle: Bundle, mixer: Any) -> None:
    with pytest.raises(BundleError) as error:
        parse_manifest(old(tiny_bundle, decoder_mixer=mixer))

    assert error.value.faults == [f"dimensions.decoder_mixer must be one of attention, ssru, not {mixer}"]


def test_no_table_is_made_of_sizes_that_are_mistaken(tiny_bundle: Bundle) -> None:
    with pytest.raises(BundleError) as error:
        parse_manifest(old(tiny_bundle, decoder_layers=2**60))

    assert "dimensions.decoder_layers must be in 1..256" in error.value.faults[0]


@pytest.mark.parametrize("dimensions", [None, [], "wide"])
def test_dimensions_that_are_no_object_are_a_fault(tiny_bundle: Bundle, dimensions: Any) -> None:
    manifest = json.loads(old(tiny_bundle)) | {"dimensions": dimensions}

    with pytest.raises(BundleError) as error:
        parse_manifest(json.dumps(manifest).encode())

    assert error.value.faults == [f"dimensions must be an object, not {type(dimensions).__name__}"]
