"""Whatever comes as a form or as a name, no front answers that the server is at fault."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.server.web.client import call
from tests.server.web.conftest import Site

NAMES = st.sampled_from(
    ["file", "filename", "source", "target", "source_lang", "target_lang", "targetLanguageCode", "q"]
)
VALUES = st.one_of(st.sampled_from([b"en", b"DE", b"de", b"auto", b"zz", b""]), st.binary(max_size=40))
FILE_NAMES = st.one_of(
    st.none(), st.sampled_from([b"a.txt", b"a.docx", b"", b"..", b"a.pdf"]), st.binary(max_size=20).filter(bool)
)
PARTS = st.lists(st.tuples(NAMES, FILE_NAMES, VALUES), max_size=5)
KINDS = st.sampled_from(["multipart/form-data; boundary=b", "multipart/form-data", "application/json", ""])


def body(parts: list[tuple[str, bytes | None, bytes]], end: bytes) -> bytes:
    written = b""
    for name, file_name, value in parts:
        named = b"" if file_name is None else b'; filename="' + file_name + b'"'
        written += b'--b\r\nContent-Disposition: form-data; name="' + name.encode() + b'"' + named
        written += b"\r\n\r\n" + value + b"\r\n"
    return written + end


# Starlette leaves the file of a form that breaks off to Python's collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("path", ["/v1/documents", "/translate_file", "/v2/document"])
async def test_no_form_makes_a_server_at_fault(site: Site, path: str) -> None:
    await ask_with_all(site, path)


async def ask_with_all(site: Site, path: str) -> None:
    bodies = st.builds(body, PARTS, st.sampled_from([b"--b--\r\n", b"--b", b""]))
    asked: list[tuple[bytes, str]] = []

    @settings(max_examples=60, database=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
    @given(st.one_of(bodies, st.binary(max_size=100)), KINDS)
    def collect(data: bytes, kind: str) -> None:
        asked.append((data, kind))

    collect()
    for data, kind in asked:
        answer = await call(site.port, "POST", path, data, {"content-type": kind})
        assert answer.status < 500, (data, kind, answer)


@pytest.mark.parametrize("path", ["/v1/documents/{}", "/v1/documents/{}/file", "/download_file/{}", "/v2/document/{}"])
@pytest.mark.parametrize(
    "name", ["%00", "%ff", "a" * 5000, "%F0%9F%98%80", "-1", "00000000-0000-0000-0000-000000000000"]
)
async def test_no_name_makes_a_server_at_fault(site: Site, path: str, name: str) -> None:
    assert 400 <= (await site.call("GET", path.format(name))).status < 500
