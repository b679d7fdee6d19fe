"""A server, its callers and perhaps a front, each where it would be: what overload and fairness are measured with."""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from tests.acceptance.report import Check
from tests.acceptance.server_process import ServerProcess, free_ports, running_server
from tests.chaos.callers import Callers, Outcomes, callers, pinned
from tests.chaos.case import none
from tests.chaos.envoy import running_envoy
from tests.chaos.journal import LATE_SECONDS
from tests.chaos.load import Command
from tests.chaos.observations import metric
from tests.chaos.requests import golden_requests, keyed_requests
from tests.chaos.servers import FLAGS, Spec, broken_server

TIMEOUT_SECONDS = 2.0
CALM = 0.6  # of saturation
_IN_FLIGHT = 96  # sentences of the closed loop that measures saturation: 32 fill the rows at beam 4
_FILLING = 1 / 3  # of the closed loop's time, until answers come as fast as calls
CLIENT_CORE, *_SERVER_CORES = sorted(os.sched_getaffinity(0))
SERVER_CORE = _SERVER_CORES[0] if _SERVER_CORES else None  # None where there is one for all


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to measure; times in seconds.

    Attributes:
        spec: of a server with a keyed network, whose speed is the same on busy machines; None for the real one, with
            server and callers on cores of their own.
        has_front: whether calls go through Envoy, with the configuration that is shipped.
        is_core: whether gRPC's own client sends the calls.
        is_http: whether the loads go over HTTP; the closed loop that measures saturation goes over gRPC all the same.
    """

    sentences: int = 8
    multiples: tuple[float, ...] = (1.3, 3.0, 5.0, 10.0)
    seconds: float = 60.0
    calm_seconds: float = 15.0
    with_retries: tuple[bool, ...] = (False, True)
    beam_size: int = 4
    connections: int = 8
    spec: Spec | None = None
    flags: tuple[str, ...] = ()
    has_front: bool = False
    is_core: bool = False
    is_http: bool = False


@dataclass(slots=True)
class Bench:
    """A server, its callers, and the calls that it is measured with.

    Attributes:
        command: a closed loop without deadlines; the loads are made from it.
        saturation: sentences a second.
        saturation_tokens: target tokens a second, likewise: short sentences alone make a fine figure of the former.
        address: where the loads go: that of the server, or of its front.
        front_pid: of the front's process; None without one.
        http_port: of the server, where the plan has loads over HTTP; else None.
    """

    server: ServerProcess
    callers: Callers
    command: Command
    address: str
    front_pid: int | None = None
    http_port: int | None = None
    saturation: float = 0.0
    saturation_tokens: float = 0.0

    def measure_saturation(self, seconds: float) -> Outcomes:
        """Runs the closed loop; counts sentences as the server ends them, for calls end in waves."""
        callers = max(1, _IN_FLIGHT // len(self.command.contents[0]))
        self.callers.start(replace(self.command, seconds=seconds, callers=callers))
        time.sleep(_FILLING * seconds)
        before, begun = self._translated(), time.monotonic()
        time.sleep((1.0 - _FILLING) * seconds)
        after, passed = self._translated(), time.monotonic() - begun
        self.saturation, self.saturation_tokens = ((b - a) / passed for a, b in zip(before, after, strict=True))
        return self.callers.finish()

    def _translated(self) -> tuple[float, float]:
        sentences = metric(self.server, "sentences_total", outcome="ok")
        return sentences, metric(self.server, "generated_tokens_total")

    def calm(self, seconds: float, timeout: float | None = TIMEOUT_SECONDS) -> Outcomes:
        """Offers what the server does with ease."""
        return self.at(CALM, seconds, timeout)

    def at(
        self, share: float, seconds: float, timeout: float | None, *, is_http: bool | None = None, seed: int = 1
    ) -> Outcomes:
        """Offers a part of saturation; `is_http` says over what, if not as the plan does."""
        command = replace(self._open(share, seconds, timeout, with_retries=False), seed=seed)
        if is_http is not None:
            command = replace(command, is_http=is_http, address=self._http_address if is_http else self.server.address)
        return self.callers.run(command)

    def overload(self, multiple: float, seconds: float, *, with_retries: bool) -> Outcomes:
        """Offers a multiple of what the server can do."""
        return self.callers.run(self._open(multiple, seconds, TIMEOUT_SECONDS, with_retries=with_retries))

    def judged(self, name: str, outcomes: Outcomes, codes: Iterable[str], late_seconds: float = LATE_SECONDS) -> Check:
        """Returns P1 to P3 of a load, and the sentences that got another answer than alone, which fp32 forbids.

        Args:
            name: of the load.
            outcomes: of it.
            codes: that may come.
            late_seconds: after its deadline a call hangs.
        """
        journal = outcomes.journal
        wrong = {entry.request for entry in journal.entries if entry.is_right is False}
        texts = [f"wrong: {self.command.contents[request]}" for request in sorted(wrong)]
        return none(f"{name}: journal", [*journal.faults(codes, late_seconds), *texts], f"{len(journal.entries)} calls")

    @property
    def _http_address(self) -> str:
        return f"{self.server.host}:{self.http_port}"

    def _open(self, multiple: float, seconds: float, timeout: float | None, *, with_retries: bool) -> Command:
        rate = multiple * self.saturation / len(self.command.contents[0])
        command = replace(self.command, address=self.address, seconds=seconds, timeout=timeout, rate=rate)
        return replace(command, with_retries=with_retries, is_http=self.http_port is not None)


@contextmanager
def bench(plan: Plan) -> Iterator[Bench]:
    """Starts server and callers, and learns what each sentence gives alone."""
    with ExitStack() as stack:
        core = CLIENT_CORE if plan.spec is None else None
        process = stack.enter_context(callers(core))
        http_port = free_ports(1)[0] if plan.is_http else None
        flags = [*plan.flags, *(["--http-port", str(http_port)] if plan.is_http else [])]
        if plan.spec is None:
            with pinned(SERVER_CORE):
                server = stack.enter_context(running_server([*FLAGS, *flags]))
            sentences = golden_requests(server.address, 256, beam_size=plan.beam_size)
        else:
            server = stack.enter_context(broken_server(plan.spec, flags)).process
            sentences = keyed_requests(256)
        requests = sentences.joined(plan.sentences)
        command = Command(
            address=server.address,
            contents=requests.contents,
            expected=requests.expected,
            seconds=0.0,
            connections=plan.connections,
            beam_size=plan.beam_size,
            is_core=plan.is_core,
        )
        address, front_pid = f"{server.host}:{http_port}" if plan.is_http else server.address, None
        if plan.has_front:
            with pinned(core):
                address, front_pid, _ = stack.enter_context(running_envoy(server.port))
        yield Bench(server, process, command, address, front_pid, http_port)
