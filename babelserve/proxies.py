"""gRPC calls through the proxy that the environment names.

An address of this machine is called without it. Where a call to another one fails, the error says what happened,
because gRPC names the proxy's address alone.
"""

import ipaddress
import os
import re
import socket
from urllib.parse import unquote

from babelserve.errors import DeadlineExceeded, TranslationError, Unavailable

_VARIABLES = ("grpc_proxy", "https_proxy", "http_proxy")  # gRPC takes the first that is set
_SCHEME = re.compile(r"(?:dns|passthrough):(?://[^/]*/|/)?|ipv[46]:")
_HOST = re.compile(r"\[([^\]]*)\](?::\d*)?|([^:]*)(?::\d*)?|(.*)")  # with brackets, without, and IPv6 without a port


def proxy_options(address: str) -> list[tuple[str, str | int]]:
    """Returns what a channel to an address needs: an address of this machine is called without a proxy."""
    return [("grpc.enable_http_proxy", 0)] if _is_local(address) else []


def with_proxy(failure: TranslationError, address: str) -> TranslationError:
    """Returns an error of the way to a server, with the variable that may have led the call to a proxy."""
    name = next((name for name in _VARIABLES if os.environ.get(name)), None)
    if name is None or not isinstance(failure, Unavailable | DeadlineExceeded) or _is_local(address):
        return failure
    return type(failure)(
        f"{failure}; {name} is set, so {address} is called through that proxy, unless no_proxy names the host",
        code=failure.code,
        request_id=failure.request_id,
        retry_after_seconds=failure.retry_after_seconds,
    )


def _is_local(address: str) -> bool:
    """Whether an address, or each of several, is this machine's own loopback."""
    if address.startswith("unix"):
        return True
    found = _SCHEME.match(address)
    return all(map(_is_loopback, unquote(address[found.end() if found else 0 :]).split(",")))


def _is_loopback(host_and_port: str) -> bool:
    found = _HOST.fullmatch(host_and_port)
    host = next(filter(None, found.groups()), "") if found else ""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        # It takes 127.1 and 0x7f000001 for an address, as gRPC does.
        numbers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)[0][4][0]
        found_address = ipaddress.ip_address(str(numbers).partition("%")[0])
    except (OSError, ValueError):  # a name
        return False
    plain = getattr(found_address, "ipv4_mapped", None) or found_address
    return bool(plain.is_loopback or plain.is_unspecified)
