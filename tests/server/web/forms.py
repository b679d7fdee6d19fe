"""Forms of parts, as browsers and other clients send files."""

from collections.abc import Mapping

from tests.server.web.client import Answer
from tests.server.web.conftest import Site

_BOUNDARY = "a-boundary"


def form(fields: Mapping[str, str], name: str | None, data: bytes) -> tuple[bytes, dict[str, str]]:
    """Returns a body and its headers. The file has the name `name`; None for no file, "" for a part without a name."""
    parts = [f'name="{key}"\r\n\r\n{value}'.encode() for key, value in fields.items()]
    if name is not None:
        named = f'; filename="{name}"' if name else ""
        parts.append(f'name="file"{named}\r\n\r\n'.encode() + data)
    start = f"--{_BOUNDARY}\r\nContent-Disposition: form-data; ".encode()
    body = b"".join(start + part + b"\r\n" for part in parts) + f"--{_BOUNDARY}--\r\n".encode()
    return body, {"content-type": f"multipart/form-data; boundary={_BOUNDARY}"}


async def upload(
    site: Site, path: str, fields: Mapping[str, str], name: str | None, data: bytes, **headers: str
) -> Answer:
    body, own = form(fields, name, data)
    return await site.call("POST", path, body, **own, **headers)
