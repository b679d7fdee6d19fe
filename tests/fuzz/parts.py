"""What the targets run: the built-in model's manifest and tokenizer, the service in front of an echo, small bundles."""

import asyncio
import contextlib
import dataclasses
import functools
import hashlib
import io
import json
import tempfile
import zipfile
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from google.protobuf.message import Message
from prometheus_client import CollectorRegistry

from babelserve.v1 import translation_pb2 as pb
from server.bundle.files import FileFacts
from server.bundle.graphs import needed_files
from server.bundle.manifest import MANIFEST_FILE, TOKENIZER_FILE, Manifest, seal_manifest
from server.bundle.manifest_file import read_manifest
from server.bundle.tokenizer import Tokenizer
from server.decoding.result import Result
from server.models.model import Model
from server.rpc.intake import Intake
from server.rpc.service import SERVICE_NAME, TranslationService
from server.settings.settings import BUILTIN_BUNDLE
from server.telemetry.metrics import Metrics
from server.text.characters import Characters
from server.text.masking import Masker
from server.translation.memory import MemoryBudget
from server.translation.running_calls import RunningCalls
from server.translation.translator import Translator
from tests.server.echo_engine import EchoEngine, catalogue_of, idle_supervisor

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
def builtin_masker() -> Masker:
    masking = builtin_manifest().masking
    characters = Characters(builtin_tokenizer().knows)
    return Masker(carriers=masking.carriers, characters=characters, folds_capitals=True, language="de")


@functools.cache
def builtin_tokenizer() -> Tokenizer:
    return open_tokenizer((BUILTIN_BUNDLE / TOKENIZER_FILE).read_bytes())


def open_tokenizer(model: bytes) -> Tokenizer:
    """Opens a SentencePiece model for the built-in network. Raises BundleError."""
    return Tokenizer(builtin_manifest(), {TOKENIZER_FILE: model}.__getitem__)


def answer(method: str, data: bytes) -> list[Any]:
    """Hands a message's bytes to a method as gRPC does, and returns what it answers; the network is an echo."""
    handler = _handler(method)

    async def read() -> bytes:
        return data

    context = SimpleNamespace(
        time_remaining=lambda: None,
        peer=lambda: "ipv4:127.0.0.1:1",
        read=read,
        add_done_callback=lambda callback: callback(None),
    )

    async def collect() -> list[bytes]:
        if handler.response_streaming:
            return [message async for message in handler.stream_stream(None, context)]
        return [await handler.stream_unary(None, context)]

    messages = _loop().run_until_complete(collect())
    return [RESPONSES[method].FromString(message) for message in messages]


@contextlib.contextmanager
def bundle(change: bytes) -> Iterator[Path]:
    """A directory with a good bundle's files and a manifest that was changed, then sealed.

    Args:
        change: what differs in the good manifest, as a JSON merge patch (RFC 7396); else all of the file.
    """
    files, good = _good_bundle()
    try:
        patch = json.loads(change)
    except (ValueError, RecursionError):
        patch = None
    manifest = json.dumps(_merged(json.loads(good), patch)).encode() if isinstance(patch, dict) else change
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for file, data in (files | {MANIFEST_FILE: manifest}).items():
            (directory / file).parent.mkdir(exist_ok=True)
            (directory / file).write_bytes(data)
        seal_manifest(directory)
        yield directory


def table_file(array_file: bytes) -> bytes:
    """A shortlist's file, of which one array is these bytes."""
    common, table = io.BytesIO(), io.BytesIO()
    np.save(common, np.array([3], np.int32))
    with zipfile.ZipFile(table, "w") as archive:
        archive.writestr("by_token.npy", array_file)
        archive.writestr("common.npy", common.getvalue())
    return table.getvalue()


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


@functools.cache
def _echoing_model() -> Model:
    manifest = builtin_manifest()
    metrics = Metrics(CollectorRegistry()).of_model(manifest.name, manifest.version)
    return Model(
        manifest=manifest,
        variant=VARIANT,
        tokenizer=builtin_tokenizer(),
        characters=Characters(builtin_tokenizer().knows),
        engine=_Echo(),
        supervisor=idle_supervisor(manifest),
        metrics=metrics,
    )


@functools.cache
def _handler(method: str) -> Any:
    metrics = Metrics(CollectorRegistry()).access
    memory = MemoryBudget(1 << 30)
    catalogue = catalogue_of(_echoing_model())
    translator = Translator(catalogue, beam_size=4, max_request_seconds=60.0, memory=memory, metrics=metrics)
    path: Any = SimpleNamespace(method=f"/{SERVICE_NAME}/{method}")
    return TranslationService(translator, Intake(memory, 8), RunningCalls()).handler().service(path)


@functools.cache
def _good_bundle() -> tuple[dict[str, bytes], str]:
    """Files of a byte each, and their manifest: the built-in model's with one variant."""
    data = b"x"
    facts = FileFacts(sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))
    manifest = builtin_manifest()
    names = sorted(needed_files(VARIANT, has_shortlist=False, states=manifest.states))
    variant = dataclasses.replace(manifest.variants[VARIANT], files=dict.fromkeys(names, facts))
    golden = dataclasses.replace(manifest.golden, outputs={VARIANT: manifest.golden.outputs[VARIANT]})
    small = dataclasses.replace(
        manifest, tokenizer=facts, variants={VARIANT: variant}, golden=golden, training={}, quality={}, parity={}
    )
    return {TOKENIZER_FILE: data} | {f"{VARIANT}/{name}": data for name in names}, small.to_json()


def _merged(document: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    for name, value in patch.items():
        if value is None:
            document.pop(name, None)
        elif isinstance(value, dict):
            own = document.get(name)
            document[name] = _merged(own if isinstance(own, dict) else {}, value)
        else:
            document[name] = value
    return document
