"""Serves an application over HTTP on the server's own event loop.

uvicorn would take the signals, set up the log and choose a loop of its own; all of these are the server's.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator

import uvicorn
from starlette.types import ASGIApp

from server.access.certificates import Certificates, server_context
from server.web.connection import Connection

# Longer than the 60 s after which most balancers drop a connection that nobody uses. Half, and calls over pooled
# connections meet one that has just been closed. Twice, and idle connections keep places for longer.
_KEEP_ALIVE_SECONDS = 75
_BACKLOG = 1024
# At the end, until requests that have come are read. Half, and a busy server does not read them; twice, and each stop
# takes longer.
_LAST_REQUESTS_SECONDS = 0.1
# So many times as long at most, while a connection has had no request yet. Half, and busy callers get no answer; twice,
# and an idle one delays each stop by a second.
_FIRST_REQUESTS = 5
_LAST_SECONDS = 1.0  # for the answers of calls that were cut off


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.has_started = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Tells that it has started."""
        await super().startup(sockets)
        self.has_started.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Listens no more, and a moment later closes the connections whose callers wait for nothing.

        A caller may have connected and sent a request just before. The moment lets the request be read and answered. A
        connection that has had no request yet gets longer, because a busy caller sends its request some time after it
        has connected. With TLS, a caller has connected when its handshake is over.
        """
        for server in self.servers:
            server.close()
        for _ in range(_FIRST_REQUESTS):
            await asyncio.sleep(_LAST_REQUESTS_SECONDS)
            if not any(isinstance(each, Connection) and each.cycle is None for each in self.server_state.connections):
                break
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves the signals to the server."""
        yield


class HttpServer:
    """One port of HTTP. It is bound at once, and served from `start` to `stop`.

    Args:
        app: answers the requests.
        host: address or name to listen on.
        port: 0 takes a free one.
        max_connections: more are answered 503 and closed.
        is_serving: says whether requests are welcome. Where they are not, each answer closes its connection.
        certificates: returns those in force; None for no TLS.
        at_end: ends what the application has under way, when no request is left.

    Attributes:
        port: the real number.

    Raises:
        OSError: the port cannot be had.
    """

    def __init__(
        self,
        app: ASGIApp,
        host: str,
        port: int,
        max_connections: int,
        is_serving: Callable[[], bool] = lambda: True,
        certificates: Callable[[], Certificates | None] = lambda: None,
        at_end: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        # Its warnings are of what peers send, and the server tells itself when it starts and stops.
        logging.getLogger("uvicorn").setLevel(logging.ERROR)
        family, *_, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        self._socket = socket.create_server(place[:2], family=family, backlog=_BACKLOG, dualstack_ipv6=both)
        self.port: int = self._socket.getsockname()[1]
        has_tls = certificates() is not None
        own = {"max_connections": max_connections, "is_serving": staticmethod(is_serving)}
        limited = type("LimitedConnection", (Connection,), own)
        config = uvicorn.Config(
            app,
            loop="none",
            lifespan="off",
            http=limited,
            ws="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=1,
            ssl_context_factory=(lambda *_: _following(certificates)) if has_tls else None,
        )
        self._server = _Server(config)
        self._at_end = at_end
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begins to serve."""
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        starting = asyncio.create_task(self._server.has_started.wait())
        await asyncio.wait({starting, self._serving}, return_when=asyncio.FIRST_COMPLETED)
        starting.cancel()
        if self._serving.done():
            await self._serving  # raises what kept it from serving

    async def stop(self) -> None:
        """Takes no more connections, lets first requests come and answers go for 3 s at most, and ends the rest."""
        if self._serving is None:
            self._socket.close()
            return
        self._server.should_exit = True
        await self._serving
        state = self._server.server_state
        if state.tasks:  # cancelled, they answer that the server shuts down
            await asyncio.wait(state.tasks, timeout=_LAST_SECONDS)
        for connection in list(state.connections):
            connection.transport.abort()
        if self._at_end is not None:
            await self._at_end()


def _following(certificates: Callable[[], Certificates | None]) -> ssl.SSLContext:
    """Returns a context that follows the certificates in force: it looks for others at each handshake."""
    shown = certificates()
    assert shown is not None
    current = _with_http(shown)

    def renew(handshake: ssl.SSLObject, _: str | None, __: ssl.SSLContext) -> None:
        nonlocal shown, current
        now = certificates()
        if now is not None and now is not shown:
            shown, current = now, _with_http(now)
        handshake.context = current

    first = _with_http(shown)
    first.sni_callback = renew
    return first


def _with_http(certificates: Certificates) -> ssl.SSLContext:
    context = server_context(certificates)
    context.set_alpn_protocols(["http/1.1"])
    return context
