"""What goes with each call of a client, and which of our errors a failure is."""

from typing import Any

from babelserve.answers import answer
from babelserve.channel import TlsOptions, call_metadata
from babelserve.diagnosis import explain
from babelserve.errors import TlsFailed, TranslationError, Unavailable, from_rpc_error
from babelserve.proxies import with_proxy


class Connection:
    """What both clients know of the way to a server: until it has answered once, a failure may be one of TLS.

    Args:
        address: HOST:PORT, or any gRPC target.
        tls: None for plain text.
        api_key: where the server asks for one.
        deadline_seconds: of calls that set none of their own.
        max_attempts: of a bulk call that no server begins.

    Attributes:
        is_proven: whether the server has answered.
    """

    def __init__(
        self, address: str, tls: TlsOptions | None, api_key: str | None, deadline_seconds: float, max_attempts: int = 1
    ) -> None:
        self.is_proven = False
        self.max_attempts = max_attempts
        self._address = address
        self._tls = tls
        self._metadata = call_metadata(api_key)
        self._deadline_seconds = deadline_seconds

    def terms(self, deadline_seconds: float | None) -> dict[str, Any]:
        """Returns what goes with a call: how long it may take, by default as long as the client says, and the key."""
        return self.bulk_terms(self._deadline_seconds if deadline_seconds is None else deadline_seconds)

    def bulk_terms(self, deadline_seconds: float | None) -> dict[str, Any]:
        """Returns what goes with a call that may take for ever, if its deadline is None."""
        return {"timeout": deadline_seconds, "metadata": self._metadata}

    def taken(self, response: Any) -> Any:
        """Takes note that the server has answered; returns the answer. Raises ServerFailed if it is none."""
        self.is_proven = True
        return answer(response)

    def failure(self, error: Any) -> TranslationError:
        """Makes our error of gRPC's; may take some seconds to find out more."""
        failure = from_rpc_error(error)
        self.is_proven = self.is_proven or failure.request_id is not None
        if self.is_proven:
            return failure
        reason = explain(self._address, self._tls) if isinstance(failure, Unavailable) else None
        return TlsFailed(reason) if reason else with_proxy(failure, self._address)
