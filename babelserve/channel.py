"""How to reach a server: TLS, API key, retries and balancing, as gRPC channel options that both clients share.

The retry policy is gRPC's own, by service config, so an attempt honours the server's `grpc-retry-pushback-ms` and all
attempts share one deadline. Translation changes nothing on the server, so it may be retried on UNAVAILABLE and
RESOURCE_EXHAUSTED. Throttling stops retries once more than a third of the attempts fail for long. It has 1,000 tokens,
gRPC's most, not the usual 10: half of them may be gone at once when a replica takes all calls in flight with it.
"""

import json
import ssl
from dataclasses import dataclass
from pathlib import Path

import grpc

SERVICE = "babelserve.v1.TranslationService"
# gRPC retries no call of it: where it sends the messages of a stream again, it may leave one out (grpcio 1.85.1). The
# client makes such a call again itself (`babelserve.losses`).
_BULK_METHOD = "TranslateBulk"
MAX_RESPONSE_BYTES = 64 * 2**20
# gRPC retries only what it keeps: its default of 256 KiB would leave large requests without retries.
RETRY_BUFFER_BYTES = 9 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsOptions:
    """Encryption, and the proof of who is who; every path is a PEM file.

    Args:
        ca_file: Certificates that may vouch for the server; None: the ones that gRPC brings.
        certificate_file: The client's own certificate, where the server asks for one.
        key_file: Its private key.
        server_name: Name that the server's certificate must carry, where it is not the address's host.
    """

    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    server_name: str | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        """Reads the files. Raises as `context`."""
        self.context()  # gRPC says nothing of what is wrong with them, and never connects
        return grpc.ssl_channel_credentials(
            root_certificates=self.ca_file.read_bytes() if self.ca_file else None,
            private_key=self.key_file.read_bytes() if self.key_file else None,
            certificate_chain=self.certificate_file.read_bytes() if self.certificate_file else None,
        )

    def context(self) -> ssl.SSLContext:
        """Reads the files for Python's own TLS.

        Raises:
            OSError: A file cannot be read.
            ValueError: Only one of certificate and key is given, they do not belong together, or a file does not hold
                what it should.
        """
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("a client certificate and its key must be given together")
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except ssl.SSLError as error:
            raise ValueError(f"{self.ca_file}: holds no certificate in PEM") from error
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # which Python sets from 3.13 on; gRPC is not so strict
        if self.certificate_file and self.key_file:
            for path in (self.certificate_file, self.key_file):
                path.open("rb").close()  # or an error would not say which
            try:
                context.load_cert_chain(self.certificate_file, self.key_file, password="")
            except ssl.SSLError as error:
                reason = (error.reason or "no PEM").replace("_", " ").lower()
                files = f"{self.certificate_file} and {self.key_file}"
                raise ValueError(f"{files}: are no client certificate and its unencrypted key: {reason}") from error
        return context


def call_metadata(api_key: str | None) -> tuple[tuple[str, str], ...]:
    """What goes with every call: the key, if there is one.

    Raises:
        ValueError: the key holds what no header can carry; it is not repeated.
    """
    if api_key is None:
        return ()
    if not api_key.isascii() or not api_key.isprintable() or not api_key.strip():
        raise ValueError("an API key must be printable ASCII")
    return (("authorization", f"Bearer {api_key}"),)


def service_config(max_attempts: int, *, watch_health: bool = True) -> dict[str, object]:
    """Balancing over all addresses of a name, leaving out those that are not SERVING, and retries.

    Args:
        max_attempts: 1 (no retries) to 5 (gRPC's own cap).
        watch_health: Whether to ask each address if it is SERVING, by a stream of `grpc.health.v1`.
    """
    method: dict[str, object] = {"name": [{"service": SERVICE}]}
    if max_attempts > 1:
        method["retryPolicy"] = {
            "maxAttempts": max_attempts,
            "initialBackoff": "0.05s",
            "maxBackoff": "0.5s",
            "backoffMultiplier": 2,
            "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"],
        }
    health: dict[str, object] = {"healthCheckConfig": {"serviceName": SERVICE}} if watch_health else {}
    return {
        "loadBalancingConfig": [{"round_robin": {}}],
        **health,
        "retryThrottling": {"maxTokens": 1000, "tokenRatio": 0.5},
        "methodConfig": [method, {"name": [{"service": SERVICE, "method": _BULK_METHOD}]}],
    }


def channel_options(
    max_attempts: int, tls: TlsOptions | None, *, watch_health: bool = True
) -> list[tuple[str, str | int]]:
    """Options for `grpc.secure_channel` and its like; arguments as for `service_config`.

    Raises:
        ValueError: `max_attempts` is not 1 to 5.
    """
    if not 1 <= max_attempts <= 5:
        raise ValueError(f"max_attempts must be 1 to 5, not {max_attempts}")
    options: list[tuple[str, str | int]] = [
        ("grpc.service_config", json.dumps(service_config(max_attempts, watch_health=watch_health))),
        ("grpc.per_rpc_retry_buffer_size", RETRY_BUFFER_BYTES),
        ("grpc.max_receive_message_length", MAX_RESPONSE_BYTES),
        # A server that starts or restarts is back within seconds; the defaults are 1 s, growing to 2 minutes.
        ("grpc.initial_reconnect_backoff_ms", 200),
        ("grpc.max_reconnect_backoff_ms", 10_000),
    ]
    if tls and tls.server_name:
        options.append(("grpc.ssl_target_name_override", tls.server_name))
    return options
