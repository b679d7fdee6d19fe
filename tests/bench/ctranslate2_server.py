"""A minimal gRPC server around CTranslate2: what a user would build who takes it instead of this engine.

It answers the same Translate calls with the same tokenizer, and batches dynamically: a batch is closed when its padded
tokens reach the limit, or 5 ms after its first sentence came; while all translators are busy it goes on growing. On
SIGTERM it prints how many source tokens it has translated, and how many with padding.
"""

import asyncio
import json
import signal
import sys
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import grpc
import sentencepiece

from babelserve.v1.translation_pb2 import TranslateRequest, TranslateResponse, Translation
from tests.bench.systems import CTranslate2System, Settings

_WINDOW_SECONDS = 0.005


@dataclass(frozen=True, slots=True, eq=False)
class Waiting:
    """A sentence that waits for its batch since `arrived`, an instant of the event loop."""

    source: tuple[int, ...]
    beam_size: int
    arrived: float
    future: asyncio.Future[list[int]]


class Batcher:
    """Collects sentences into batches for `workers` parallel translators."""

    def __init__(self, system: CTranslate2System, settings: Settings) -> None:
        self._system = system
        self._limit = settings.batch
        self._waiting: deque[Waiting] = deque()
        self._arrived = asyncio.Event()
        self._threads = ThreadPoolExecutor(settings.workers)
        self._loops = [asyncio.create_task(self._translate_batches()) for _ in range(settings.workers)]
        self._collecting = asyncio.Lock()
        self.source_tokens = 0
        self.padded_source_tokens = 0

    async def translate(self, source: tuple[int, ...], beam_size: int) -> list[int]:
        """Returns target ids when the sentence's batch is done."""
        loop = asyncio.get_running_loop()
        waiting = Waiting(source, beam_size, loop.time(), loop.create_future())
        self._waiting.append(waiting)
        self._arrived.set()
        return await waiting.future

    async def _translate_batches(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            async with self._collecting:
                await self._collect()
                batch = self._take()
            sources = [each.source for each in batch]
            results = await loop.run_in_executor(self._threads, self._system.translate, sources, batch[0].beam_size)
            for each, ids in zip(batch, results, strict=True):
                if not each.future.done():
                    each.future.set_result(ids)

    async def _collect(self) -> None:
        while not self._waiting:
            self._arrived.clear()
            await self._arrived.wait()
        deadline = self._waiting[0].arrived + _WINDOW_SECONDS
        while len(self._waiting) * max(len(each.source) for each in self._waiting) < self._limit:
            self._arrived.clear()
            try:
                async with asyncio.timeout_at(deadline):
                    await self._arrived.wait()
            except TimeoutError:
                return

    def _take(self) -> list[Waiting]:
        """Removes the first sentences that fill a batch, at least one; all with the first one's beam."""
        batch = [self._waiting.popleft()]
        longest = len(batch[0].source)
        while self._waiting and self._waiting[0].beam_size == batch[0].beam_size:
            if max(longest, len(self._waiting[0].source)) * (len(batch) + 1) > self._limit:
                break
            batch.append(self._waiting.popleft())
            longest = max(longest, len(batch[-1].source))
        self.source_tokens += sum(len(each.source) for each in batch)
        self.padded_source_tokens += longest * len(batch)
        return batch


async def serve(settings: Settings, tokenizer: Path, port: int) -> None:
    """Serves until it is terminated; prints a line when it is ready."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(tokenizer))
    batcher = Batcher(CTranslate2System(settings), settings)
    known = processor.vocab_size()

    async def translate(request: TranslateRequest, _: object) -> TranslateResponse:
        source = (*processor.encode(request.contents[0]), processor.eos_id())
        ids = await batcher.translate(source, request.decoding.beam_size)
        text = processor.decode([token for token in ids if token < known])  # as in server/bundle/tokenizer.py
        translation = Translation(text=text, source_tokens=len(source), target_tokens=len(ids) + 1)
        return TranslateResponse(translations=[translation])

    handler = grpc.unary_unary_rpc_method_handler(
        translate,
        request_deserializer=TranslateRequest.FromString,
        response_serializer=TranslateResponse.SerializeToString,
    )
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("babelserve.v1.TranslationService", {"Translate": handler}),)
    )
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    print("serving", flush=True)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    await server.stop(1.0)
    print(json.dumps([batcher.source_tokens, batcher.padded_source_tokens]), flush=True)


if __name__ == "__main__":
    asyncio.run(serve(Settings(**json.loads(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3])))
