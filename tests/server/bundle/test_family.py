"""What a manifest may say of a network by its family."""

import dataclasses
import json
from typing import Any

import pytest

from server.bundle.bundle import Bundle, open_bundle
from server.bundle.family import family_faults, max_length_ratio
from server.bundle.graphs import ONE_PASS_FILE, WEIGHTS_FILE, needed_files
from server.bundle.languages import LanguagePair
from server.bundle.manifest import Manifest
from server.bundle.manifest_file import parse_manifest
from server.bundle.states import attention_states


def test_exported_bundles_have_no_faults(one_pass_bundle: Bundle, tiny_bundle: Bundle) -> None:
    assert open_bundle(one_pass_bundle.directory).manifest.family == "one_pass"
    assert open_bundle(tiny_bundle.directory).manifest.family == "transformer"
    assert [max_length_ratio(each.manifest) for each in (one_pass_bundle, tiny_bundle)] == [2.0, 0.0]


def test_a_one_pass_network_is_one_graph_and_its_weights(one_pass_bundle: Bundle) -> None:
    for name, variant in one_pass_bundle.manifest.variants.items():
        assert set(variant.files) == needed_files(name, False, (), "one_pass") == {ONE_PASS_FILE, WEIGHTS_FILE}


def test_an_older_manifest_is_of_a_transformer(tiny_bundle: Bundle) -> None:
    manifest = json.loads(tiny_bundle.manifest.to_json()) | {"revision": 11}
    del manifest["family"]

    assert parse_manifest(json.dumps(manifest).encode()) == dataclasses.replace(tiny_bundle.manifest, revision=11)


def with_prefix(manifest: Manifest) -> dict[str, Any]:
    return {"language_pairs": (LanguagePair(source="en", target="de", target_prefix=(7,)),)}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        (lambda _, __: {"family": "rnn"}, "family must be one of transformer, recurrent, one_pass, not 'rnn'"),
        (lambda _, __: {"states": attention_states(1, 2, 8)}, "family one_pass has no states"),
        (lambda _, tiny: {"alignment": tiny.alignment}, "family one_pass has no alignment"),
        (lambda _, tiny: {"confidence": tiny.confidence}, "family one_pass has no confidence"),
        (lambda own, _: with_prefix(own), "family one_pass has no target prefixes"),
        (
            lambda own, _: {"variants": {**own.variants, "cuda-fp16": own.variants["cpu-fp32"]}},
            "family one_pass has no variant cuda-fp16",
        ),
    ],
)
def test_what_such_a_network_cannot_have_is_a_fault(
    one_pass_bundle: Bundle, tiny_bundle: Bundle, changes: Any, fault: str
) -> None:
    own, tiny = one_pass_bundle.manifest, tiny_bundle.manifest
    assert family_faults(own) == []

    assert family_faults(dataclasses.replace(own, **changes(own, tiny))) == [fault]


def test_a_recurrent_network_is_for_cpus(tiny_bundle: Bundle) -> None:
    manifest = dataclasses.replace(tiny_bundle.manifest, family="recurrent", alignment=None)
    on_device = {"cuda-fp16": manifest.variants["cpu-fp32"]}
    on_host = {name: variant for name, variant in manifest.variants.items() if name not in on_device}

    assert family_faults(dataclasses.replace(manifest, variants=on_host)) == []
    assert family_faults(dataclasses.replace(manifest, variants={**on_host, **on_device})) == [
        "family recurrent has no variant cuda-fp16"
    ]


def test_a_recurrent_network_has_no_aligner(tiny_bundle: Bundle) -> None:
    manifest = dataclasses.replace(tiny_bundle.manifest, family="recurrent")

    assert "family recurrent has no alignment" in family_faults(manifest)
