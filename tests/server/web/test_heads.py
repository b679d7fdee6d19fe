import pytest

from server.web.heads import fault_of

HOST = (b"host", b"localhost:8080")
CHUNKED = (b"transfer-encoding", b"Chunked")


@pytest.mark.parametrize(
    ("version", "headers"),
    [
        ("1.1", [HOST]),
        ("1.1", [(b"host", b"")]),
        ("1.1", [(b"host", b"[2001:db8::1]:80"), CHUNKED]),
        ("1.0", []),
        ("1.1", [HOST, *[(b"x", b"y")] * 99]),
    ],
)
def test_heads_that_all_read_alike(version: str, headers: list[tuple[bytes, bytes]]) -> None:
    assert fault_of(version, headers) == ""


@pytest.mark.parametrize(
    ("version", "headers", "words"),
    [
        ("0.9", [], "version 1.0 or 1.1, not 0.9"),
        ("2.0", [HOST], "version 1.0 or 1.1, not 2.0"),
        ("1.1", [HOST, *[(b"x", b"y")] * 100], "at most 100 headers, not 101"),
        ("1.1", [], "Host: must come once, not 0 times"),
        ("1.0", [HOST, HOST], "Host: must come once, not 2 times"),
        ("1.1", [(b"host", b"a b")], "Host: must be a name"),
        ("1.1", [(b"host", b"a/b")], "Host: must be a name"),
        ("1.1", [HOST, CHUNKED, CHUNKED], "Transfer-Encoding: must be chunked, once"),
        ("1.1", [HOST, (b"transfer-encoding", b"gzip, chunked")], "Transfer-Encoding: must be chunked, once"),
        ("1.0", [CHUNKED], "in HTTP 1.1"),
    ],
)
def test_heads_that_others_may_read_otherwise(version: str, headers: list[tuple[bytes, bytes]], words: str) -> None:
    assert words in fault_of(version, headers)
