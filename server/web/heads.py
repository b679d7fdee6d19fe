"""Rules for the head of a request that uvicorn does not have: a balancer in front must read the same as we do."""

import re
from collections.abc import Sequence

# As Envoy has it. Half, and callers behind several proxies are refused. Twice, and each look-up takes twice as long.
_MAX_HEADERS = 100
_HOST = re.compile(rb"[\w.~!$&'()*+,;=%:\[\]-]*", re.ASCII)


def fault_of(version: str, headers: Sequence[tuple[bytes, bytes]]) -> str:
    """Returns what is wrong with a head; empty if nothing is.

    Args:
        version: of HTTP, such as "1.1".
        headers: names in lower case, and values.
    """
    if version not in ("1.0", "1.1"):
        return f"HTTP: must have version 1.0 or 1.1, not {version}"
    if len(headers) > _MAX_HEADERS:
        return f"head: must have at most {_MAX_HEADERS} headers, not {len(headers)}"
    hosts = [value for name, value in headers if name == b"host"]
    if len(hosts) > 1 or (version == "1.1" and not hosts):
        return f"Host: must come once, not {len(hosts)} times"
    if hosts and not _HOST.fullmatch(hosts[0]):
        return "Host: must be a name or an address, and perhaps a port"
    codings = [value for name, value in headers if name == b"transfer-encoding"]
    if codings and (version == "1.0" or [each.lower() for each in codings] != [b"chunked"]):
        return "Transfer-Encoding: must be chunked, once, and in HTTP 1.1"
    return ""
