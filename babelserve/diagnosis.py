"""Why no connection comes about: gRPC says "Socket closed" whether TLS is missing, unwanted, or wants a certificate.

One TLS handshake of our own tells them apart. It is made only when a client that was never answered has failed.
"""

import re
import socket
import ssl

from babelserve.channel import TlsOptions

_SECONDS = 2.0  # for each of connecting, shaking hands and a first byte
_HOST_AND_PORT = re.compile(r"(?:(?:dns|passthrough):/{0,3})?(\[[^]]+\]|[^:/]+):(\d{1,5})")


def explain(address: str, tls: TlsOptions | None) -> str | None:
    """Returns what is wrong with TLS between a client and a server; None if that is not it, or cannot be told.

    Args:
        address: as the client has it; only HOST:PORT can be looked into.
        tls: the client's options.
    """
    found = _HOST_AND_PORT.fullmatch(address)
    if found is None:
        return None
    host, port = found.group(1).strip("[]"), int(found.group(2))
    try:
        is_greeted = _is_greeted(host, port, _trusting(), None)
        if tls is None:
            too = "" if is_greeted else ", and wants a client certificate, too"
            return f"the server speaks TLS at this port, and the client does not{too}"
        is_greeted = _is_greeted(host, port, tls.context(), tls.server_name)
    except ssl.SSLCertVerificationError as error:
        return f"the server's certificate is not trusted: {error.verify_message}"
    except ssl.SSLError as error:
        return "the server does not speak TLS at this port" if tls and error.reason == "WRONG_VERSION_NUMBER" else None
    except (OSError, ValueError, OverflowError):  # also of a name, or a port, that can be none
        return None
    if is_greeted:
        return None
    if tls.certificate_file is None:
        return "the server wants a client certificate, and the client has none"
    return "the server does not take the client's certificate"


def _trusting() -> ssl.SSLContext:
    """Takes any certificate: the question is whether the server speaks TLS at all."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _is_greeted(host: str, port: int, context: ssl.SSLContext, server_name: str | None) -> bool:
    """Shakes hands; returns whether the server says anything then, as HTTP/2 wants.

    In TLS 1.3 a server may refuse a client's certificate after the client's part of the handshake is over: by an alert,
    or as gRPC does, by hanging up.
    """
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection((host, port), timeout=_SECONDS) as plain,
        context.wrap_socket(plain, server_hostname=server_name or host) as encrypted,
    ):
        try:
            return bool(encrypted.recv(1))
        except (ssl.SSLError, ConnectionError):
            return False
