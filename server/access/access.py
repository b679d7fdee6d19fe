"""Who may call: the tenants and the certificates in force, and their renewal while the server runs."""

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from pathlib import Path

from server.access.certificates import Certificates, read_certificates
from server.access.directory import Directory, PeerNames
from server.access.tenants import ANONYMOUS, Tenant
from server.access.tenants_file import read_tenants
from server.access.watched_files import WatchedFiles
from server.errors import SettingsError, Unauthenticated
from server.telemetry.access_metrics import AccessMetrics

logger = logging.getLogger(__name__)

POLL_SECONDS = 2.0  # what changes is in force after two polls at most


class Access:
    """Open to everybody, unless there is a file of tenants, or an authority of clients' certificates.

    Args:
        metrics: told of reloads, tenants, and the certificate's end.
        tls_cert: file with the server's certificate chain; None for no TLS.
        tls_key: file with its private key.
        tls_client_ca: file with the authorities of clients' certificates; None if clients need none.
        keys: file with tenants and their keys; None for none.
        admin_keys: file of the same form with those who may change models; None for nobody.

    Raises:
        SettingsError: everything that is wrong with the files.
    """

    def __init__(
        self,
        metrics: AccessMetrics,
        *,
        tls_cert: Path | None = None,
        tls_key: Path | None = None,
        tls_client_ca: Path | None = None,
        keys: Path | None = None,
        admin_keys: Path | None = None,
    ) -> None:
        self._metrics = metrics
        self._certificates: WatchedFiles[Certificates] | None = None
        self._directory: WatchedFiles[Directory] | None = None
        self._admins: WatchedFiles[Directory] | None = None
        self.asks_for_certificates = tls_client_ca is not None
        metrics.add_tenants([ANONYMOUS.name])
        faults: list[str] = []
        if tls_cert is not None and tls_key is not None:
            paths = {"--tls-cert": tls_cert, "--tls-key": tls_key}
            if tls_client_ca is not None:
                paths["--tls-client-ca"] = tls_client_ca
            try:
                self._certificates = WatchedFiles("certificates", paths, self._load_certificates, metrics)
            except SettingsError as error:
                faults += error.faults
        if keys is not None:
            try:
                self._directory = WatchedFiles("keys", {"--keys": keys}, self._load_directory, metrics)
            except SettingsError as error:
                faults += error.faults
        if admin_keys is not None:
            try:
                self._admins = WatchedFiles("admin-keys", {"--admin-keys": admin_keys}, _load_admins, metrics)
            except SettingsError as error:
                faults += error.faults
        if faults:
            raise SettingsError(faults)
        if keys is not None and tls_cert is None:
            logger.warning("--keys without --tls-cert: keys arrive in plain text, unless a proxy in front has TLS")

    @property
    def is_open(self) -> bool:
        """Whether anybody may call."""
        return self._directory is None and not self.asks_for_certificates

    @property
    def certificates(self) -> Certificates | None:
        """The ones in force; None for no TLS. Safe on any thread."""
        return self._certificates.value if self._certificates else None

    def identify(self, key: str | None, names: PeerNames | None) -> Tenant:
        """Returns who calls.

        Args:
            key: the API key that came with the call; it counts before a certificate.
            names: of the client certificate, which the handshake has verified; None if there is none.

        Raises:
            Unauthenticated: neither came, or nobody has the key, or it has expired.
            PermissionDenied: the certificate names no tenant.
        """
        if self._directory is None:  # without tenants whoever passed the handshake may call
            return ANONYMOUS
        if key is not None:
            return self._directory.value.of_key(key)
        if names is not None:
            return self._directory.value.of_certificate(names)
        raise Unauthenticated('an API key is needed, as "authorization: Bearer KEY"')

    def identify_admin(self, key: str | None) -> str:
        """Returns the name of who has a key to change models.

        Raises:
            Unauthenticated: nobody has it, or it has expired.
        """
        if key is None or self._admins is None:
            raise Unauthenticated('an admin key is needed, as "authorization: Bearer KEY"')
        return self._admins.value.of_key(key).name

    async def watch(self, reload: asyncio.Event, poll_seconds: float = POLL_SECONDS) -> None:
        """Takes what changes in the files, until cancelled.

        Args:
            reload: to be set for taking it at once.
            poll_seconds: from one look to the next.
        """
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(reload.wait(), poll_seconds)
            at_once = reload.is_set()
            reload.clear()
            await asyncio.to_thread(self.renew, at_once=at_once)

    def renew(self, *, at_once: bool) -> None:
        """Takes what has changed in the files; see `WatchedFiles.poll`."""
        for each in (self._certificates, self._directory, self._admins):
            if each is not None:
                each.poll(at_once=at_once)

    def _load_certificates(self, contents: Mapping[str, bytes]) -> Certificates:
        certificates = read_certificates(contents["--tls-cert"], contents["--tls-key"], contents.get("--tls-client-ca"))
        self._metrics.tls_certificate_expiry_timestamp_seconds.set(certificates.expires)
        return certificates

    def _load_directory(self, contents: Mapping[str, bytes]) -> Directory:
        directory = read_tenants(contents["--keys"])
        if self._directory is not None:
            directory = directory.succeeding(self._directory.value)
        self._metrics.add_tenants(each.tenant.name for each in directory.accounts)
        return directory


def _load_admins(contents: Mapping[str, bytes]) -> Directory:
    try:
        return read_tenants(contents["--admin-keys"])
    except SettingsError as error:
        raise SettingsError([fault.replace("--keys", "--admin-keys", 1) for fault in error.faults]) from error
