"""Opening files that operators name, whatever stands in their place."""

import os
from io import BufferedReader
from pathlib import Path


def open_without_waiting(path: Path) -> BufferedReader:
    """Opens a file for reading. If it is a FIFO, this does not wait for its writer. Raises OSError."""
    return open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))
