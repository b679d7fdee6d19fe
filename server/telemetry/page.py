"""The metrics page over HTTP, on threads of its own: it is there when the event loop is busy.

prometheus_client makes the page. Its own server gives each connection a thread for as long as the peer likes; here
connections are few, and the oldest gives way to a new one, so that peers who send or read nothing keep no scraper out.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app

MAX_CONNECTIONS = 16
IDLE_SECONDS = 5.0  # without a byte from, or to, the peer
_PAUSE_SECONDS = 0.1  # before the next attempt to accept, when there are no file descriptors


class _Handler(WSGIRequestHandler):
    """One connection, which has one request."""

    timeout = IDLE_SECONDS

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  # its name there
        """Says nothing: a page that is read is no news."""


class _PageServer(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 128  # connections that wait to be accepted; socketserver's 5 make new peers wait for seconds

    def __init__(self, host: str, port: int, registry: CollectorRegistry) -> None:
        self.address_family, *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        self._lock = threading.Lock()
        self._connections: dict[Any, None] = {}  # oldest first
        super().__init__((host, port), _Handler)
        self.set_app(make_wsgi_app(registry))

    def get_request(self) -> Any:
        """See `socketserver.TCPServer`, whose loop would try again at once."""
        try:
            return super().get_request()
        except OSError:
            time.sleep(_PAUSE_SECONDS)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """See `socketserver.TCPServer`."""
        with self._lock:
            self._connections[request] = None
            if len(self._connections) > MAX_CONNECTIONS:
                oldest = next(iter(self._connections))
                del self._connections[oldest]
                with contextlib.suppress(OSError):  # it has just ended by itself
                    oldest.shutdown(socket.SHUT_RDWR)  # wakes its thread, which closes it
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """See `socketserver.TCPServer`."""
        with self._lock:
            self._connections.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing: peers leave as they like. `socketserver` would print a traceback."""


@contextlib.contextmanager
def serve_page(host: str, port: int, registry: CollectorRegistry) -> Iterator[int]:
    """Serves the metrics of a registry until the end of the block; yields the port.

    Args:
        host: address or name to listen on.
        port: 0 takes a free one.
        registry: what the page shows.

    Raises:
        OSError: it cannot listen there.
    """
    with _PageServer(host, port, registry) as server:
        thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
