"""The load generator: `python -m tests.bench.load ADDRESS` reads commands and answers, as JSON lines.

`{"mode": "closed", "callers": 64, "seconds": 20}`: each caller sends its next sentence when it has its last answer.
`{"mode": "open", "rate": 30.0, "seconds": 20}`: Poisson arrivals; a latency counts from the instant at which the
sentence was due, so that a client that falls behind does not flatter the server.
"""

import asyncio
import json
import random
import sys
import time
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import grpc

from babelserve.v1.translation_pb2 import DecodingOptions, TranslateRequest, TranslateResponse

_METHOD = "/babelserve.v1.TranslationService/Translate"
_TIMEOUT_SECONDS = 120.0


class Load:
    """Sends sentences to one server and notes what became of them."""

    def __init__(self, channel: grpc.aio.Channel, lines: list[str], beam_size: int, seed: int) -> None:
        self._call = channel.unary_unary(
            _METHOD,
            request_serializer=TranslateRequest.SerializeToString,
            response_deserializer=TranslateResponse.FromString,
        )
        self._random = random.Random(seed)
        shuffled = self._random.sample(lines, len(lines))  # the same order for every server
        decoding = DecodingOptions(beam_size=beam_size, with_scores=False)  # CTranslate2's server computes none either
        self._requests: Iterator[TranslateRequest] = cycle(
            TranslateRequest(contents=[line], target_language_code="de", decoding=decoding) for line in shuffled
        )
        self.latencies: list[float] = []
        self.source_tokens = 0
        self.target_tokens = 0
        self.failures = 0

    async def closed(self, callers: int, seconds: float) -> None:
        """Keeps `callers` calls in flight for so long; calls that end later do not count."""
        end = time.perf_counter() + seconds

        async def caller() -> None:
            while time.perf_counter() < end:
                await self._send(time.perf_counter(), end)

        await asyncio.gather(*(caller() for _ in range(callers)))

    async def open(self, rate: float, seconds: float) -> None:
        """Sends `rate` sentences a second on average, whatever the server does, and waits for all answers."""
        start = due = time.perf_counter()
        calls: list[asyncio.Task[None]] = []
        while (due := due + self._random.expovariate(rate)) < start + seconds:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            calls.append(asyncio.create_task(self._send(due, float("inf"))))
        await asyncio.gather(*calls)

    async def _send(self, due: float, end: float) -> None:
        try:
            answer = await self._call(next(self._requests), timeout=_TIMEOUT_SECONDS)
        except grpc.aio.AioRpcError:
            self.failures += 1
            return
        now = time.perf_counter()
        if now < end:
            self.latencies.append(now - due)
            self.source_tokens += answer.translations[0].source_tokens
            self.target_tokens += answer.translations[0].target_tokens


async def _run(address: str) -> None:
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        command: dict[str, Any] = json.loads(line)
        async with grpc.aio.insecure_channel(address) as channel:
            load = Load(channel, command["lines"], command["beam_size"], command["seed"])
            started = time.perf_counter()
            if command["mode"] == "closed":
                await load.closed(command["callers"], command["seconds"])
            else:
                await load.open(command["rate"], command["seconds"])
            answer = {
                "seconds": time.perf_counter() - started,
                "latencies": load.latencies,
                "failures": load.failures,
                "source_tokens": load.source_tokens,
                "target_tokens": load.target_tokens,
            }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asyncio.run(_run(sys.argv[1]))
