"""Files of text that a command line names."""

from pathlib import Path

_MAX_BYTES = 64 << 20


def read_lines(flag: str, path: Path) -> list[str]:
    """Returns the lines of a file, empty ones too, without blanks at their ends. Only line feeds separate lines.

    Args:
        flag: what names the file, for messages.
        path: of the file, which may be a pipe.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no UTF-8, or too large.
    """
    with path.open("rb") as file:
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise ValueError(f"{flag} {path} has more than {_MAX_BYTES} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{flag} {path} is no UTF-8: {error}") from error
    return [line.strip() for line in text.removesuffix("\n").split("\n")]
