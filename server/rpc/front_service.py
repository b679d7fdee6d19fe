"""A service of another vendor: a table of methods, and an answer for all that it does not have."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import grpc

from server.errors import Code, TranslationError
from server.translation.rules import shown


class Unimplemented(TranslationError):
    """The vendor's service has this method, and this server has not."""

    code = Code.UNIMPLEMENTED


class FrontService(grpc.GenericRpcHandler):  # type: ignore[type-arg] # not generic at run time
    """Finds the handlers of a service's methods.

    Args:
        name: of the service, with the vendor's package.
        methods: those that are served, by name.
    """

    def __init__(self, name: str, methods: "Mapping[str, grpc.RpcMethodHandler[Any, Any]]") -> None:
        self._name = name
        self._methods = methods

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[Any, Any] | None":
        """Returns what handles a call: a refusal if this server lacks the method; None for another service."""
        service, _, method = handler_call_details.method.strip("/").partition("/")
        if service != self._name:
            return None
        return self._methods.get(method) or grpc.stream_unary_rpc_method_handler(partial(self._refuse, method))

    async def _refuse(self, method: str, _: Any, __: Any) -> bytes:
        raise Unimplemented(
            f"{shown(method)} is not served here; of {self._name} these are: {', '.join(self._methods)}"
        )
