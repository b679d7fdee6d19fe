"""What the targets run: the built-in model's manifest and tokenizer, and the service in front of an echo."""

import asyncio
import dataclasses
import functools
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from google.protobuf.message import Message
from prometheus_client import CollectorRegistry

from protos import translation_pb2 as pb
from server.bundle.manifest import TOKENIZER_FILE, Manifest, read_manifest
from server.bundle.tokenizer import Tokenizer
from server.decoding.result import Result
from server.models.model import Model
from server.rpc.service import SERVICE_NAME, TranslationService
from server.settings.settings import BUILTIN_BUNDLE
from server.telemetry.metrics import Metrics
from server.translation.translator import Translator
from tests.server.echo_engine import EchoEngine

VARIANT = "cpu-fp32"
RESPONSES: dict[str, type[Message]] = {
    "Translate": pb.TranslateResponse,
    "TranslateStream": pb.TranslateStreamResponse,
    "ListModels": pb.ListModelsResponse,
}


class _Echo(EchoEngine):
    """Forgets what it was asked, of which there are millions."""

    def submit(self, *arguments: Any, **more: Any) -> list[Future[Result]]:
        futures = super().submit(*arguments, **more)
        for seen in (self.deadlines, self.options, self.flows, self.observed, self.futures, self._answers):
            seen.clear()
        return futures


@functools.cache
def builtin_manifest() -> Manifest:
    return read_manifest(BUILTIN_BUNDLE)


@functools.cache
def special_ids() -> frozenset[int]:
    """The ids that no text may have."""
    return frozenset(dataclasses.astuple(builtin_manifest().special_ids))


@functools.cache
def builtin_tokenizer() -> Tokenizer:
    return open_tokenizer((BUILTIN_BUNDLE / TOKENIZER_FILE).read_bytes())


def open_tokenizer(model: bytes) -> Tokenizer:
    """Opens a SentencePiece model for the built-in network. Raises BundleError."""
    manifest = builtin_manifest()
    return Tokenizer(model, vocab_size=manifest.dimensions.vocab_size, eos_id=manifest.special_ids.eos)


def answer(method: str, data: bytes) -> list[Any]:
    """Hands a message's bytes to a method as gRPC does, and returns what it answers; the network is an echo."""
    handler = _handler(method)
    context = SimpleNamespace(time_remaining=lambda: None)

    async def collect() -> list[Message]:
        if handler.response_streaming:
            return [message async for message in handler.unary_stream(data, context)]
        return [await handler.unary_unary(data, context)]

    messages = _loop().run_until_complete(collect())
    return [RESPONSES[method].FromString(handler.response_serializer(message)) for message in messages]


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


@functools.cache
def _echoing_model() -> Model:
    manifest = builtin_manifest()
    metrics = Metrics(CollectorRegistry()).of_model(manifest.name)
    return Model(manifest=manifest, variant=VARIANT, tokenizer=builtin_tokenizer(), engine=_Echo(), metrics=metrics)


@functools.cache
def _handler(method: str) -> Any:
    translator = Translator(beam_size=4, max_request_seconds=60.0)
    translator.model = _echoing_model()
    path: Any = SimpleNamespace(method=f"/{SERVICE_NAME}/{method}")
    return TranslationService(translator).handler().service(path)
