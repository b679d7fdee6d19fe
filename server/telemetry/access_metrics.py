"""Metrics of who calls, and of the files that say who may."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter

from server.errors import REJECT_REASONS, Code
from server.telemetry.metric_factory import MetricFactory

RELOADED = ("certificates", "keys", "admin-keys", "server-certificates")  # the last are a gateway's
OUTCOMES = ("ok", "refused", "failed")
_REFUSED = (
    "Calls that ended with RESOURCE_EXHAUSTED: too many sentences or tokens wait, or are being split; the answer would"
    " be too late (deadline); there is no memory; the message did not come in time (unfinished); the tenant's quota is"
    " used up; at a gateway, its server refused the call (elsewhere)."
)


class AccessMetrics:
    """Families with the label `tenant` have series for those of the file, and for nobody else.

    A tenant that leaves the file keeps its series until the process ends.

    Args:
        registry: takes them; a second AccessMetrics on it raises ValueError.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        new = MetricFactory(registry)
        self.tls_certificate_expiry_timestamp_seconds = new.gauge(
            "tls_certificate_expiry_timestamp_seconds", "Unix time at which the certificate ends; NaN without TLS."
        )
        self.last_reload_successful = new.gauge(
            "last_reload_successful", "0 while what the files hold is bad, and older content in force.", "files"
        )
        self.reloads_total = new.counter("reloads", "Changes of files, by whether they were taken.", "files", "outcome")
        self.tenant_requests_total = new.counter(
            "tenant_requests",
            "Calls that ended: ok, refused for want of capacity or quota, failed.",
            "tenant",
            "outcome",
        )
        self.tenant_cost_seconds_total = new.counter(
            "tenant_cost_seconds", "Predicted time on one lane of the requests that were accepted.", "tenant"
        )
        refused = new.counter("queue_rejected", _REFUSED, "reason")
        self._refused = {reason: refused.labels(reason) for reason in REJECT_REASONS}
        self._ended: dict[tuple[str, str], Counter] = {}
        self.tls_certificate_expiry_timestamp_seconds.set(float("nan"))
        for files in RELOADED:
            self.last_reload_successful.labels(files).set(1)
            for outcome in ("ok", "failed"):
                self.reloads_total.labels(files, outcome)

    def add_tenants(self, names: Iterable[str]) -> None:
        """Makes series for tenants."""
        for name in names:
            self.tenant_cost_seconds_total.labels(name)
            for outcome in OUTCOMES:
                self._ended[name, outcome] = self.tenant_requests_total.labels(name, outcome)

    def count_reload(self, files: str, *, is_successful: bool) -> None:
        """Counts a change of files, and says whether the last is in force."""
        self.last_reload_successful.labels(files).set(is_successful)
        self.reloads_total.labels(files, "ok" if is_successful else "failed").inc()

    def count_refusal(self, reason: str) -> None:
        """Counts a call that was refused; `reason` is one of `REJECT_REASONS`."""
        self._refused[reason].inc()

    def count_request(self, tenant: str, code: Code) -> None:
        """Counts the end of a tenant's call."""
        outcome = "ok" if code is Code.OK else "refused" if code.is_capacity else "failed"
        (self._ended.get((tenant, outcome)) or self.tenant_requests_total.labels(tenant, outcome)).inc()
