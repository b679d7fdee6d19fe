"""A manifest, or its seal, of which a bit was flipped."""

import shutil
from pathlib import Path

import pytest

from server.bundle.manifest import MANIFEST_FILE, SEAL_FILE, seal
from server.bundle.manifest_file import read_manifest
from server.errors import BundleError
from server.settings.settings import BUILTIN_BUNDLE


def flip(data: bytes, bit: int) -> bytes:
    flipped = bytearray(data)
    flipped[bit // 8] ^= 1 << bit % 8
    return bytes(flipped)


def test_every_flip_of_a_bit_of_the_built_in_manifest_breaks_its_seal() -> None:
    manifest, sealed = ((BUILTIN_BUNDLE / name).read_bytes() for name in (MANIFEST_FILE, SEAL_FILE))

    assert seal(manifest) == sealed
    assert not any(seal(flip(manifest, bit)) == sealed for bit in range(8 * len(manifest)))


@pytest.mark.parametrize(("name", "step"), [(MANIFEST_FILE, 101), (SEAL_FILE, 1)])
def test_a_flipped_bit_is_refused_wherever_it_is(tmp_path: Path, name: str, step: int) -> None:
    for file in (MANIFEST_FILE, SEAL_FILE):
        shutil.copy(BUILTIN_BUNDLE / file, tmp_path)
    read_manifest(tmp_path)
    whole = (tmp_path / name).read_bytes()

    for bit in range(0, 8 * len(whole), step):
        (tmp_path / name).write_bytes(flip(whole, bit))
        with pytest.raises(BundleError, match="sealed"):
            read_manifest(tmp_path)
