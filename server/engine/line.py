"""The waiting requests whose sentences can share steps: flows take turns by what their sentences cost."""

from collections.abc import Callable, Iterator

from server.engine.flow import Flow
from server.engine.flow_queue import FlowQueue, WaitingRequest
from server.engine.sentence import Sentence


class Line:
    """Requests of one kind of step, of all flows. Start-time fair queueing (Goyal, Vin and Cheng 1996).

    Attributes:
        num_passed: sentences of other lines that have been taken since the first of this one began to wait.
    """

    def __init__(self) -> None:
        self._flows: dict[str, FlowQueue] = {}
        self._virtual_time = 0.0  # start tag of the last sentence that was taken
        self.num_passed = 0

    def __bool__(self) -> bool:
        return any(self._flows.values())

    def __iter__(self) -> Iterator[WaitingRequest]:
        for queue in self._flows.values():
            yield from queue

    @property
    def num_requests(self) -> int:
        """Requests that wait."""
        return sum(map(len, self._flows.values()))

    @property
    def has_large(self) -> bool:
        """Whether a request waits that has had its burst."""
        return any(queue.has_large for queue in list(self._flows.values()))  # a copy, as it is asked without the lock

    def work(self, is_left_out: Callable[[Flow], bool] = lambda _: False) -> float:
        """Returns the row-steps that wait, but those of flows that are left out."""
        queues = list(self._flows.values())  # a copy, as it is asked without the lock
        return sum(queue.work for queue in queues if not is_left_out(queue.flow))

    def work_before(self, flow: Flow, due: float, *, is_large: bool) -> float:
        """Returns the row-steps of its own flow that a request would wait for, see `FlowQueue.work_before`."""
        queue = self._flows.get(flow.name)
        return queue.work_before(flow.rank, due, is_large=is_large) if queue else 0.0

    def add(self, request: WaitingRequest) -> None:
        """Adds a request."""
        flow = request.head.flow
        queue = self._flows.get(flow.name)
        if queue is None:
            queue = self._flows[flow.name] = FlowQueue(flow)
        if not queue:
            queue.tag = max(queue.tag, self._virtual_time)
        queue.add(request)

    def next(self, may_run: Callable[[WaitingRequest], bool]) -> WaitingRequest | None:
        """Returns the request whose first sentence is next among those that may run, if there is one."""
        for queue in sorted(filter(None, self._flows.values()), key=lambda queue: queue.tag):
            for request in queue.candidates():
                if may_run(request):
                    return request
        return None

    def pop(self, request: WaitingRequest) -> Sentence:
        """Removes the first sentence of the request that `next` returned."""
        flow = request.head.flow
        queue = self._flows[flow.name]
        self._virtual_time = queue.tag
        sentence = queue.pop(request)
        queue.tag += sentence.work / flow.weight
        return sentence

    def remove(self, request: WaitingRequest) -> None:
        """Removes a request with all that still waits of it."""
        self._flows[request.head.flow.name].remove(request)

    def clear(self) -> None:
        """Removes all requests."""
        self._flows.clear()
