import dataclasses

import pytest

from server.bundle.bundle import Bundle
from server.bundle.manifest_file import parse_manifest
from server.errors import BundleError


def test_a_confidence_beyond_all_numbers_is_refused(tiny_bundle: Bundle) -> None:
    assert tiny_bundle.manifest.confidence is not None
    known = dataclasses.replace(tiny_bundle.manifest.confidence, mean=1.25)
    document = dataclasses.replace(tiny_bundle.manifest, confidence=known).to_json()

    with pytest.raises(BundleError, match=r"confidence\.mean must be a finite number"):
        parse_manifest(document.replace('"mean": 1.25', '"mean": 1e999').encode())
