"""A real tokenizer learned from the dev sentences, and a real gRPC server in front of an engine that echoes."""

import io
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
import pytest_asyncio
import sentencepiece
from prometheus_client import CollectorRegistry

from babelserve.v1.translation_pb2_grpc import TranslationServiceStub
from server.access.access import Access
from server.bundle.files import FileFacts
from server.bundle.languages import LanguagePair
from server.bundle.manifest import (
    REVISION,
    TOKENIZER_FILE,
    Dimensions,
    Golden,
    GoldenOutput,
    Limits,
    Manifest,
    SpecialIds,
)
from server.bundle.states import attention_states
from server.bundle.tokenizer import Tokenizer
from server.models.model import Model
from server.rpc.intake import Intake
from server.rpc.interceptors import CallInterceptor
from server.rpc.service import TranslationService
from server.telemetry.metrics import Metrics
from server.text.characters import Characters
from server.translation.calls import Calls
from server.translation.memory import MemoryBudget
from server.translation.running_calls import RunningCalls
from server.translation.translator import Translator
from tests.server.echo_engine import EchoEngine, catalogue_of, idle_supervisor

SENTENCES = Path(__file__).parents[1] / "data" / "multi30k_val_200.en.txt"
VOCAB_SIZE = 600
EOS = 3


@pytest.fixture(scope="session")
def tokenizer_model() -> bytes:
    """A SentencePiece model with byte fallback and the placeholder symbols U+E000 to U+E007."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        input=str(SENTENCES),
        model_writer=written,
        vocab_size=VOCAB_SIZE,
        model_type="unigram",
        byte_fallback=True,
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=EOS,
        user_defined_symbols=[chr(0xE000 + i) for i in range(8)],
        num_threads=1,
        minloglevel=2,
    )
    return written.getvalue()


@pytest.fixture(scope="session")
def tokenizer(manifest: Manifest, tokenizer_model: bytes) -> Tokenizer:
    """The tokenizer of `tokenizer_model`."""
    return Tokenizer(manifest, {TOKENIZER_FILE: tokenizer_model}.__getitem__)


@pytest.fixture(scope="session")
def manifest(tokenizer_model: bytes) -> Manifest:
    """Describes a model that echoes English as German; its files do not exist."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer_model)
    golden_ids = tuple(processor.encode("A dog runs.", add_eos=True))
    return Manifest(
        revision=REVISION,
        name="echo",
        version="7",
        language_pairs=(LanguagePair(source="en", target="de"),),
        dimensions=Dimensions(
            vocab_size=VOCAB_SIZE, d_model=16, num_heads=2, head_dim=8, encoder_layers=1, decoder_layers=1
        ),
        special_ids=SpecialIds(pad=0, unk=1, bos=2, eos=EOS),
        states=attention_states(1, 2, 8),
        limits=Limits(max_source_tokens=64, max_target_tokens=100, max_beam_size=8),
        tokenizer=FileFacts(sha256="0", bytes=0),
        variants={},
        golden=Golden(
            source_text="A dog runs.",
            source_ids=golden_ids,
            beam_size=4,
            outputs={
                "cpu-fp32": GoldenOutput(ids=golden_ids[:-1], score=-1.0),
                "cpu-int8": GoldenOutput(ids=golden_ids[:-1], score=-1.0),
            },
        ),
    )


@pytest.fixture
def metrics() -> Metrics:
    """Metrics on a registry of their own."""
    return Metrics(CollectorRegistry())


@pytest.fixture
def engine() -> EchoEngine:
    """An engine that answers at once unless told otherwise."""
    return EchoEngine()


@pytest.fixture
def model(manifest: Manifest, tokenizer: Tokenizer, engine: EchoEngine, metrics: Metrics) -> Model:
    """The echoing model."""
    return Model(
        manifest=manifest,
        variant="cpu-fp32",
        tokenizer=tokenizer,
        characters=Characters(tokenizer.knows),
        engine=engine,
        supervisor=idle_supervisor(manifest),
        metrics=metrics.of_model(manifest.name, manifest.version),
    )


@pytest_asyncio.fixture
async def translator(model: Model, metrics: Metrics) -> Translator:
    """A translator with the echoing model, which gives up requests after 60 seconds."""
    return Translator(
        catalogue_of(model),
        beam_size=4,
        max_request_seconds=60.0,
        memory=MemoryBudget(1 << 30),
        metrics=metrics.access,
    )


@dataclass(frozen=True, slots=True)
class Live:
    """A gRPC server on a free port of the loopback, and a client's channel to it."""

    translator: Translator
    running: RunningCalls
    calls: Calls
    channel: grpc.aio.Channel
    stub: "TranslationServiceStub"
    port: int


@pytest_asyncio.fixture
async def live(metrics: Metrics, translator: Translator) -> AsyncIterator[Live]:
    """The service with its interceptor on a real server."""
    running = RunningCalls()
    service = TranslationService(translator, Intake(translator.memory, 8), running)
    calls = Calls(metrics, running, 65.0)
    server = grpc.aio.server(
        interceptors=[CallInterceptor(calls, Access(metrics.access))], options=[("grpc.so_reuseport", 0)]
    )
    server.add_generic_rpc_handlers((service.handler(), service.store_handler()))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield Live(translator, running, calls, channel, TranslationServiceStub(channel), port)
    await server.stop(None)
