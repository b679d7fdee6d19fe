from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.reader import Reader, open_reader


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    reader = open_reader(tmp_path)
    yield reader
    for name in list(reader.servers):
        reader.stop(name)
