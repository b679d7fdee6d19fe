"""The gRPC servers for translations, for health alone and for operators, and the ports that they listen on."""

import socket
from dataclasses import dataclass

import grpc
from grpc_channelz.v1.channelz import add_channelz_servicer
from grpc_reflection.v1alpha.reflection import SERVICE_NAME as REFLECTION_NAME
from grpc_reflection.v1alpha.reflection import enable_server_reflection

from server.access.access import Access
from server.access.certificates import Certificates
from server.errors import SettingsError
from server.models.machine import raise_file_limit
from server.rpc.admin import ModelAdminService
from server.rpc.health import HEALTH_NAME, Health
from server.rpc.intake import MAX_MESSAGE_BYTES
from server.rpc.interceptors import CallInterceptor
from server.rpc.service import SERVICE_NAME, STORE_NAME, TranslationService
from server.settings.settings import Settings

_LEAST_FILES = 64  # that a process may open; without connections it opens about 20 itself
_OWN_FILES = 32
# Of the files for connections, so that no server takes those of another.
_SHARE, _HEALTH_SHARE, _ADMIN_SHARE = 0.5, 0.1, 0.05
HTTP_SHARE = 0.25  # the translation server has it where HTTP is not served
_MAX_STREAMS = 1024  # of a connection
_MAX_PENDING = 2 * _MAX_STREAMS  # more than one connection can fill
_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    # What a stream may send before its message is read. gRPC's own estimate, from the speed of the network, would be
    # megabytes. A longer message costs a round trip.
    ("grpc.http2.lookahead_bytes", 16 << 10),
    ("grpc.http2.bdp_probe", 0),
    ("grpc.max_metadata_size", 16 << 10),
    ("grpc.max_concurrent_streams", _MAX_STREAMS),
    # Calls that the event loop has not taken yet; gRPC cancels what comes beyond them. It takes them in turn, so with
    # more of them every call of a flood would be late before it is looked at. Half, and the resets of some connections
    # end calls of others. Twice, and at 30 times what a core can do nearly all calls with 2 s are late.
    ("grpc.server.max_pending_requests", _MAX_PENDING),
    ("grpc.server.max_pending_requests_hard_limit", _MAX_PENDING),
    ("grpc.so_reuseport", 0),  # else a second server on the port would start silently and take connections
    ("grpc.keepalive_time_ms", 60_000),  # a dead client holds rows until it is noticed; gRPC's default is two hours
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 30_000),
    # A client that spreads its calls over the addresses of a name looks for new ones when a connection ends, so a new
    # replica waits for its calls for as long. Half, and clients make twice as many handshakes.
    ("grpc.max_connection_age_ms", 5 * 60_000),
    ("grpc.max_connection_age_grace_ms", 10 * 60_000),
)


@dataclass(frozen=True, slots=True)
class RpcServers:
    """The three servers, and where they listen.

    Attributes:
        ports: of translation, health and admin in turn: the real numbers, where 0 was asked for.
    """

    translation: grpc.aio.Server
    health: grpc.aio.Server
    admin: grpc.aio.Server
    ports: tuple[int, int, int]

    async def start(self) -> None:
        """Begins to serve."""
        for server in (self.translation, self.health, self.admin):
            await server.start()

    async def stop(self) -> None:
        """Ends all calls that still run."""
        for server in (self.translation, self.health, self.admin):
            await server.stop(None)


def open_servers(
    settings: Settings,
    service: TranslationService,
    interceptor: CallInterceptor,
    health: Health,
    access: Access,
    model_admin: ModelAdminService | None = None,
) -> RpcServers:
    """Makes the servers and binds their ports. They serve only after `start`.

    Without `model_admin` nobody can change models.

    Raises:
        SettingsError: ports cannot be bound, all of which it names; or the process may open too few files.
    """
    num_files = raise_file_limit()
    if num_files < _LEAST_FILES:
        raise SettingsError([f"open files: the limit is {num_files}; at least {_LEAST_FILES} are needed (ulimit -n)"])
    share = _SHARE + HTTP_SHARE if settings.http_port is None else _SHARE
    translation = grpc.aio.server(interceptors=[interceptor], options=_options(share))
    handlers = (service.handler(), service.store_handler(), *service.front_handlers(health.is_ready))
    translation.add_generic_rpc_handlers(handlers)
    health.add_to(translation)
    if settings.reflection:
        enable_server_reflection([SERVICE_NAME, STORE_NAME, HEALTH_NAME, REFLECTION_NAME], translation)
    health_server = grpc.aio.server(options=_options(_HEALTH_SHARE))
    health.add_to(health_server)
    admin = grpc.aio.server(options=_options(_ADMIN_SHARE))
    add_channelz_servicer(admin)  # type: ignore[arg-type] # it takes both kinds
    if model_admin is not None:
        admin.add_generic_rpc_handlers((model_admin.handler(),))
    credentials = _credentials(access)
    faults: list[str] = []
    ports = (
        _bind(translation, "--port", settings.host, settings.port, credentials, faults),
        _bind(health_server, "--health-port", settings.host, settings.health_port, None, faults),
        _bind(admin, "--admin-port", "127.0.0.1", settings.admin_port, None, faults),
    )
    if faults:
        raise SettingsError(faults)
    return RpcServers(translation, health_server, admin, ports)


def address(host: str, port: int) -> str:
    """Returns host and port as one string, with an IPv6 host in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def other_ports(faults: list[str]) -> list[str]:
    """Returns a line with flags in place of those whose ports cannot be had; nothing if all can."""
    flags = [f"{fault.partition(':')[0]} 0" for fault in faults if "cannot listen" in fault]
    told = "for a second server on this machine give it ports of its own, or free ones, which it tells: "
    return [told + " ".join(flags)] if flags else []


def connections_of(share: float) -> int:
    """Returns how many connections a server with this share of them may have. Each connection is an open file."""
    return int((raise_file_limit() - _OWN_FILES) * share)


def _options(share: float) -> tuple[tuple[str, int], ...]:
    return (*_OPTIONS, ("grpc.max_allowed_incoming_connections", connections_of(share)))


def _bind(
    server: grpc.aio.Server,
    flag: str,
    host: str,
    port: int,
    credentials: grpc.ServerCredentials | None,
    faults: list[str],
) -> int:
    """Returns the port's number. If the port cannot be bound, it adds a fault.

    It tries a socket of our own first, because gRPC says only on stderr why it failed.
    """
    if reason := _obstacle(host, port):
        faults.append(f"{flag}: cannot listen on {host} port {port}: {reason}")
        return 0
    try:
        if credentials is None:
            return server.add_insecure_port(address(host, port))
        return server.add_secure_port(address(host, port), credentials)
    except RuntimeError:
        faults.append(f"{flag}: cannot listen on {host} port {port}: does something listen there already?")
        return 0


def _obstacle(host: str, port: int) -> str:
    """Returns why the server cannot listen on a port; empty if it can."""
    try:
        family, kind, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        with socket.socket(family, kind) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(place)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _credentials(access: Access) -> grpc.ServerCredentials | None:
    """Returns credentials that follow the certificates in force: gRPC asks at each handshake for new ones."""
    shown = access.certificates
    if shown is None:
        return None

    def renewed() -> grpc.ServerCertificateConfiguration | None:  # on gRPC's threads
        nonlocal shown
        current = access.certificates
        if current is None or current is shown:
            return None  # the certificates have not changed
        shown = current
        return _configuration(current)

    return grpc.dynamic_ssl_server_credentials(
        _configuration(shown),
        renewed,  # type: ignore[arg-type] # the stubs lack None
        require_client_authentication=access.asks_for_certificates,
    )


def _configuration(certificates: Certificates) -> grpc.ServerCertificateConfiguration:
    pair = (certificates.key, certificates.chain)
    return grpc.ssl_server_certificate_configuration([pair], root_certificates=certificates.client_ca)
