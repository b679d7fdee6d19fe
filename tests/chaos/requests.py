"""Requests whose right answer is known: by the keyed function, or because the server gave it to each sentence alone."""

import random
import string
from collections.abc import Sequence
from dataclasses import dataclass

import grpc

from babelserve.v1.translation_pb2 import DecodingOptions, TranslateRequest
from babelserve.v1.translation_pb2_grpc import TranslationServiceStub
from server.bundle.bundle import open_bundle
from server.bundle.tokenizer import Tokenizer
from server.text.carriers import clean
from tests.acceptance.server_process import BUILTIN_BUNDLE
from tests.chaos.keyed_network import KeyedFunction
from tests.chaos.texts import draw_sentences

_VARIANT = "cpu-fp32"
_WORDS = ("red", "bridge", "walks", "under", "water", "paper", "seven", "garden", "slowly", "window")
_MOST_WORDS = 12
_MARK_LETTERS = 10
_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Requests:
    """Texts of each request, and their translations."""

    contents: list[list[str]]
    expected: list[list[str]]

    def __len__(self) -> int:
        return len(self.contents)

    def joined(self, per_request: int, seed: int = 1) -> "Requests":
        """Returns as many requests of so many texts each, drawn from these requests' first ones."""
        chance = random.Random(seed)
        draws = [chance.choices(range(len(self)), k=per_request) for _ in self.contents]
        contents = [[self.contents[index][0] for index in draw] for draw in draws]
        return Requests(contents, [[self.expected[index][0] for index in draw] for draw in draws])

    def message(self, index: int, beam_size: int | None = None, model: str = "") -> TranslateRequest:
        """Returns a request."""
        decoding = DecodingOptions(beam_size=beam_size)
        contents = self.contents[index]
        return TranslateRequest(contents=contents, target_language_code="de", decoding=decoding, model=model)


def keyed_requests(count: int, per_request: int = 1, seed: int = 1) -> Requests:
    """Returns requests for a keyed network; each text has a word that no other text has, its mark."""
    bundle = open_bundle(BUILTIN_BUNDLE, _VARIANT)
    manifest = bundle.manifest
    tokenizer = Tokenizer(manifest, bundle.read)
    function = KeyedFunction(manifest, _VARIANT)
    chance = random.Random(seed)

    def text() -> str:
        words = chance.choices(_WORDS, k=chance.randint(1, _MOST_WORDS))
        return " ".join([*words, "".join(chance.choices(string.ascii_lowercase, k=_MARK_LETTERS))])

    def translated(text: str) -> str:
        return clean(tokenizer.decode(function.target_ids(tokenizer.encode(text))))

    contents = [[text() for _ in range(per_request)] for _ in range(count)]
    return Requests(contents, [list(map(translated, texts)) for texts in contents])


def golden_requests(
    address: str,
    count: int,
    *,
    beam_size: int,
    seed: int = 1,
    metadata: Sequence[tuple[str, str]] = (),
    model: str = "",
) -> Requests:
    """Returns requests of one sentence for a real network: what it gives is asked of the server, one at a time."""
    sentences = draw_sentences(count, seed)
    unknown = Requests([[sentence] for sentence in sentences], [])
    with grpc.insecure_channel(address) as channel:
        stub = TranslationServiceStub(channel)
        answers = [
            stub.Translate(unknown.message(index, beam_size, model), timeout=_TIMEOUT_SECONDS, metadata=tuple(metadata))
            for index in range(len(unknown))
        ]
    return Requests(unknown.contents, [[answer.translations[0].text] for answer in answers])
