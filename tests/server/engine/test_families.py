"""The table of families."""

from server.bundle.graphs import FAMILIES as NAMES
from server.bundle.manifest import Manifest
from server.engine.families import FAMILIES
from tests.fakes import engine_limits


def test_every_family_that_a_manifest_may_name_has_a_row() -> None:
    assert tuple(FAMILIES) == NAMES


def test_a_network_that_takes_steps_has_the_limits_that_are_set(manifest: Manifest) -> None:
    limits = engine_limits()

    assert FAMILIES["transformer"].limits(limits, manifest) is limits
    assert FAMILIES["one_pass"].limits(limits, manifest).lane.max_encode_tokens <= limits.lane.max_encode_tokens
