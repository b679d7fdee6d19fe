import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from server.access.access import POLL_SECONDS, Access
from server.access.directory import PeerNames
from server.access.keys import hash_key
from server.access.tenants import ANONYMOUS
from server.errors import PermissionDenied, SettingsError, Unauthenticated
from server.telemetry.access_metrics import AccessMetrics
from tests.certificates import authority

TICK_SECONDS = 0.01
SECONDS = 100.0  # far above what any of these needs; a hang fails


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def metrics(registry: CollectorRegistry) -> AccessMetrics:
    return AccessMetrics(registry)


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    path = tmp_path / "keys.toml"
    write_keys(path, "one")
    return path


@pytest.fixture
def tls(tmp_path: Path) -> dict[str, Path]:
    paths = {name: tmp_path / name for name in ("tls_cert", "tls_key", "tls_client_ca")}
    issued = authority().issue()
    for path, content in zip(paths.values(), (issued.chain, issued.key, authority().pem), strict=True):
        path.write_bytes(content)
    return paths


def write_keys(path: Path, *keys: str) -> None:
    table = '[[tenants.billing.keys]]\nsha256 = "{}"\n'
    quota = "[tenants.billing]\nquota = { rate = 1, burst = 5 }\n"
    path.write_text(quota + "".join(table.format(hash_key(key).hex()) for key in keys))


@contextlib.asynccontextmanager
async def watching(access: Access, reload: asyncio.Event, poll_seconds: float) -> AsyncIterator[None]:
    task = asyncio.create_task(access.watch(reload, poll_seconds))
    try:
        yield
    finally:
        task.cancel()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110 # what is in force is read at each call; nobody is told of a change
            await asyncio.sleep(TICK_SECONDS)


def is_known(access: Access, key: str) -> bool:
    try:
        return access.identify(key, None).name == "billing"
    except Unauthenticated:
        return False


def test_without_files_everybody_may_call(metrics: AccessMetrics, tls: dict[str, Path]) -> None:
    plain = Access(metrics)
    encrypted = Access(metrics, tls_cert=tls["tls_cert"], tls_key=tls["tls_key"])

    assert plain.certificates is None
    assert encrypted.certificates is not None
    for access in (plain, encrypted):
        assert access.is_open
        assert access.identify("any", None) is ANONYMOUS


def test_with_keys_those_may_call_who_have_one(metrics: AccessMetrics, keys: Path) -> None:
    access = Access(metrics, keys=keys)

    assert not access.is_open
    assert access.identify("one", None).name == "billing"
    with pytest.raises(Unauthenticated, match="is not known"):
        access.identify("two", None)
    with pytest.raises(Unauthenticated, match='"authorization: Bearer KEY"'):
        access.identify(None, None)


def test_with_an_authority_of_clients_those_may_call_who_pass_the_handshake(
    metrics: AccessMetrics, tls: dict[str, Path]
) -> None:
    access = Access(metrics, **tls)

    assert not access.is_open
    assert access.identify(None, PeerNames(common_name="client")) is ANONYMOUS


def test_with_both_a_key_counts_before_a_certificate(metrics: AccessMetrics, keys: Path, tls: dict[str, Path]) -> None:
    keys.write_text(keys.read_text() + '[tenants.search]\ncommon_names = ["search"]\n')
    access = Access(metrics, keys=keys, **tls)

    assert access.identify(None, PeerNames(common_name="search")).name == "search"
    assert access.identify("one", PeerNames(common_name="search")).name == "billing"
    with pytest.raises(Unauthenticated):
        access.identify("two", PeerNames(common_name="search"))
    with pytest.raises(PermissionDenied):
        access.identify(None, PeerNames(common_name="other"))


def test_the_faults_of_all_files_are_listed_together(metrics: AccessMetrics, keys: Path, tls: dict[str, Path]) -> None:
    keys.write_text("[tenants.A]")
    tls["tls_client_ca"].write_bytes(b"")
    tls["tls_key"].write_bytes(b"")

    with pytest.raises(SettingsError) as caught:
        Access(metrics, keys=keys, **tls)

    assert len(caught.value.faults) == 3


def test_an_expired_certificate_is_refused_at_the_start(metrics: AccessMetrics, tls: dict[str, Path]) -> None:
    tls["tls_cert"].write_bytes((issued := authority().issue(ends=-1)).chain)
    tls["tls_key"].write_bytes(issued.key)

    with pytest.raises(SettingsError, match=r"^--tls-cert: cannot be used: certificate has expired$"):
        Access(metrics, **tls)


async def test_keys_are_renewed_without_a_gap_and_a_revoked_one_is_refused(metrics: AccessMetrics, keys: Path) -> None:
    access = Access(metrics, keys=keys)
    async with watching(access, asyncio.Event(), TICK_SECONDS):
        write_keys(keys, "one", "two")
        await until(lambda: is_known(access, "two"))
        assert is_known(access, "one")

        write_keys(keys, "two")
        await until(lambda: not is_known(access, "one"))
        assert is_known(access, "two")


async def test_a_revoked_key_is_refused_within_ten_seconds(metrics: AccessMetrics, keys: Path) -> None:
    access = Access(metrics, keys=keys)
    async with watching(access, asyncio.Event(), POLL_SECONDS):
        started = time.monotonic()
        write_keys(keys, "two")
        await until(lambda: not is_known(access, "one"))

    assert time.monotonic() - started < 10.0


async def test_a_bad_file_of_keys_leaves_the_old_in_force(metrics: AccessMetrics, keys: Path) -> None:
    access, reload = Access(metrics, keys=keys), asyncio.Event()
    async with watching(access, reload, SECONDS):
        write_keys(keys, "two", "two")
        reload.set()
        await until(lambda: metrics.last_reload_successful.labels("keys")._value.get() == 0)

    assert is_known(access, "one")


async def test_a_reload_changes_no_quota_that_is_as_it_was(metrics: AccessMetrics, keys: Path) -> None:
    access, reload = Access(metrics, keys=keys), asyncio.Event()
    bucket = access.identify("one", None).bucket
    assert bucket is not None
    bucket.take(5.0)
    async with watching(access, reload, SECONDS):
        write_keys(keys, "two")
        reload.set()
        await until(lambda: is_known(access, "two"))

    assert access.identify("two", None).bucket is bucket


async def test_certificates_are_renewed_when_asked_for_and_their_end_is_told(
    metrics: AccessMetrics, registry: CollectorRegistry, tls: dict[str, Path]
) -> None:
    access, reload = Access(metrics, **tls), asyncio.Event()
    issued = authority().issue(ends=9)
    async with watching(access, reload, SECONDS):
        tls["tls_cert"].write_bytes(issued.chain)
        tls["tls_key"].write_bytes(issued.key)
        reload.set()
        await until(lambda: access.certificates is not None and access.certificates.chain == issued.chain)

    expiry = registry.get_sample_value("babelserve_tls_certificate_expiry_timestamp_seconds")
    assert expiry == issued.expires


def test_tenants_have_series_from_the_start(metrics: AccessMetrics, registry: CollectorRegistry, keys: Path) -> None:
    Access(metrics, keys=keys)

    for tenant in ("anonymous", "billing"):
        assert registry.get_sample_value("babelserve_tenant_cost_seconds_total", {"tenant": tenant}) == 0


def test_keys_in_plain_text_are_warned_of(
    metrics: AccessMetrics, keys: Path, tls: dict[str, Path], caplog: pytest.LogCaptureFixture
) -> None:
    Access(metrics, keys=keys, **tls)
    assert caplog.records == []

    Access(metrics, keys=keys)
    assert "plain text" in caplog.text


async def test_admin_keys_are_a_file_of_their_own_and_change_while_it_is_open(
    metrics: AccessMetrics, keys: Path, tmp_path: Path
) -> None:
    admin_keys = tmp_path / "admins.toml"
    write_keys(admin_keys, "two")
    access = Access(metrics, keys=keys, admin_keys=admin_keys)

    assert access.identify_admin("two") == "billing"
    for key in ("one", None):
        with pytest.raises(Unauthenticated):
            access.identify_admin(key)
    with pytest.raises(Unauthenticated):
        access.identify("two", None)
    write_keys(admin_keys, "three")
    access.renew(at_once=True)
    assert access.identify_admin("three") == "billing"
    with pytest.raises(Unauthenticated, match="an admin key is needed"):
        Access(metrics).identify_admin("two")


def test_faults_of_admin_keys_name_their_flag(metrics: AccessMetrics, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("[")
    for path, fault in ((tmp_path / "bad.toml", "--admin-keys: is no TOML"), (tmp_path / "none", "cannot be read")):
        with pytest.raises(SettingsError, match=fault):
            Access(metrics, admin_keys=path)
