"""What is fuzzed: a function for each target, which takes any bytes and raises if the server breaks a promise."""

import contextlib
import dataclasses
import io
import os
import re
import unicodedata
from collections.abc import Callable, Sequence

import numpy as np
from google.protobuf.message import DecodeError
from google.protobuf.wrappers_pb2 import BytesValue

from babelserve.v1 import translation_pb2 as pb
from server.bundle.bundle import open_bundle
from server.bundle.manifest import MANIFEST_FILE, TOKENIZER_FILE, seal_manifest
from server.bundle.manifest_file import read_manifest
from server.bundle.shortlist import Shortlist
from server.errors import BundleError, InvalidRequest, ModelNotFound, SettingsError, TranslationError
from server.settings.command_line import PREFIX, read_settings
from server.settings.settings import BUILTIN_BUNDLE, Settings
from server.text.carriers import clean
from server.text.sentences import WINDOW_CHARACTERS, split_text
from server.translation.calls import choose_id
from tests.fuzz.front_targets import FRONT_TARGETS
from tests.fuzz.markup_targets import MARKUP_TARGETS
from tests.fuzz.parts import (
    answer,
    builtin_manifest,
    builtin_masker,
    builtin_tokenizer,
    bundle,
    open_tokenizer,
    special_ids,
    table_file,
)

LANGUAGES = ("en", "de", "zh", "ar", "no-such-language", "")
MAX_TOKENS = (2, 8, 100)
SHORTLIST_VOCAB_SIZE = 8
_MAX_ROUNDS = 32  # that encode a character: a cut leaves at most three quarters of a window to either side
_NO_MESSAGE = b"\xff"
_NAMES = ("source_language_code", "target_language_code", "model", "mime_type")


def fuzz_request(data: bytes) -> None:
    """Bytes of a message, as gRPC hands them on: answered whole, or refused in words that hold no text of theirs."""
    with contextlib.suppress(InvalidRequest):
        answer("ListModels", data)
    try:
        message: pb.TranslateRequest | None = pb.TranslateRequest.FromString(data)
    except DecodeError:
        message = None
    other = _NO_MESSAGE if message is None else _with_other_texts(message).SerializeToString()
    in_stream = BytesValue(value=data).SerializeToString()  # a message's bytes in field 1, as TranslateStreamRequest
    error = _error("Translate", data)
    if error is not None:
        assert str(error) == str(_error("TranslateStream", in_stream)) == str(_error("Translate", other))
        return
    assert message is not None
    (response,) = answer("Translate", data)
    _check_translations(message.contents, response, answer("TranslateStream", in_stream))


def fuzz_split(data: bytes) -> None:
    """A language, a limit and a text: the copies of its sentences join to the text, each within the limit."""
    choice, text = int.from_bytes(data[:1]), data[1:].decode(errors="replace")
    language, max_tokens = LANGUAGES[choice % len(LANGUAGES)], MAX_TOKENS[choice // len(LANGUAGES) % len(MAX_TOKENS)]
    encoded: list[int] = []

    def encode(sentence: str) -> tuple[int, ...]:
        encoded.append(len(sentence))
        return builtin_tokenizer().encode(sentence)

    split = split_text(text, language, encode, max_tokens, masker=builtin_masker())

    assert split.error is None
    assert split.join([sentence.text for sentence in split.sentences]) == text
    assert not split.leading.strip()
    for sentence in split.sentences:
        assert sentence.text
        assert sentence.text.strip() == sentence.text
        assert not sentence.separator.strip()
        if sentence.source_ids is not None:
            assert 2 <= len(sentence.source_ids) <= max_tokens
            _check_ids(sentence.source_ids)
        if sentence.masked is not None:
            restored = sentence.masked.restore(sentence.masked.text)
            assert all(part.text in restored.text for part in restored.parts)
            assert len(clean(restored.text)) == len(restored.text) or clean(sentence.text) != sentence.text
    assert max(encoded, default=0) <= WINDOW_CHARACTERS
    assert sum(encoded) <= _MAX_ROUNDS * len(text)


def fuzz_tokenizer(data: bytes) -> None:
    """A text to ids and back; then the bytes, in pairs, are ids themselves, also such as stand for nothing."""
    tokenizer = builtin_tokenizer()
    text = data.decode(errors="replace")
    ids = tokenizer.encode(text)
    _check_ids(ids)
    assert _controls(tokenizer.decode(ids[:-1])) <= _controls(text)
    pairs = np.frombuffer(data[: len(data) & ~1], "<u2") % (builtin_manifest().dimensions.vocab_size + 8)
    tokenizer.decode(pairs.tolist()).encode()


def fuzz_tokenizer_file(data: bytes) -> None:
    """The built-in tokenizer with some bytes changed, each by a place of three bytes and a value: a fault, or ids."""
    vocab_size = builtin_manifest().dimensions.vocab_size
    file = bytearray((BUILTIN_BUNDLE / TOKENIZER_FILE).read_bytes())
    for place, value in ((int.from_bytes(data[i : i + 3]), data[i + 3]) for i in range(0, len(data) - 3, 4)):
        file[place % len(file)] = value
    with contextlib.suppress(BundleError):
        ids = open_tokenizer(bytes(file)).encode("A dog runs.")
        assert all(0 <= token < vocab_size for token in ids)


def fuzz_bundle(data: bytes) -> None:
    """A bundle with another manifest: a fault, or a bundle whose manifest can be written and read again."""
    with bundle(data) as directory, contextlib.suppress(BundleError):
        text = read_manifest(directory).to_json()
        (directory / MANIFEST_FILE).write_text(text, encoding="utf-8")
        seal_manifest(directory)
        assert read_manifest(directory).to_json() == text
        assert open_bundle(directory).manifest.to_json() == text


def fuzz_shortlist(data: bytes) -> None:
    """A table, or the first array of one: a fault, or candidates that are ids."""
    with contextlib.suppress(BundleError):
        shortlist = Shortlist.load(data if data.startswith(b"PK") else table_file(data), SHORTLIST_VOCAB_SIZE)
        candidates = shortlist.candidates(tuple(range(SHORTLIST_VOCAB_SIZE)))
        assert all(0 <= token < SHORTLIST_VOCAB_SIZE for token in candidates)


def fuzz_settings(data: bytes) -> None:
    """Flags and variables with NUL between them: faults, or settings within their ranges that can be given again."""
    words = [os.fsdecode(word) for word in data.split(b"\0")]
    variables = [word for word in words if word.startswith(PREFIX) and "=" in word]
    flags = [word for word in words if word not in variables]
    environment = {name: value for name, _, value in (word.partition("=") for word in variables)}
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            settings = read_settings(flags, environment, "0").settings
    except (SettingsError, SystemExit):  # the latter after --help and --version
        return
    given = {name: str(value) for name, value in dataclasses.asdict(settings).items() if value is not None}
    again = {PREFIX + name.upper(): value for name, value in given.items()}
    assert read_settings((), again, "0").settings == settings
    for each in dataclasses.fields(Settings):
        value, low, high = getattr(settings, each.name), each.metadata["low"], each.metadata["high"]
        assert value is None or low is None or low <= value
        assert value is None or high is None or value <= high
        assert value in each.metadata.get("choices", (value,))


def fuzz_request_id(data: bytes) -> None:
    """A caller's own id, as text and as bytes: kept only if it may stand in a log line."""
    for given in (data, data.decode(errors="replace")):
        assert re.fullmatch(r"[A-Za-z0-9._-]{1,64}", choose_id(given))


TARGETS: dict[str, Callable[[bytes], None]] = {
    "request": fuzz_request,
    "split": fuzz_split,
    "tokenizer": fuzz_tokenizer,
    "tokenizer_file": fuzz_tokenizer_file,
    "bundle": fuzz_bundle,
    "shortlist": fuzz_shortlist,
    "settings": fuzz_settings,
    "request_id": fuzz_request_id,
    **MARKUP_TARGETS,
    **FRONT_TARGETS,
}


def _error(method: str, data: bytes) -> TranslationError | None:
    """The declared error that a message is answered with; any other is a crash."""
    try:
        answer(method, data)
    except (InvalidRequest, ModelNotFound) as error:
        return error
    return None


def _with_other_texts(message: pb.TranslateRequest) -> pb.TranslateRequest:
    """A request that must be refused in the same words: other texts, other names but for those that are plain."""
    other = pb.TranslateRequest()
    other.CopyFrom(message)
    other.contents[:] = ["x"] * len(message.contents)
    for name in _NAMES:
        value = getattr(message, name)
        if value and not re.fullmatch(r"[A-Za-z0-9._/+-]{1,64}", value):
            setattr(other, name, "?" * len(value))
    return other


def _check_translations(
    contents: Sequence[str], response: pb.TranslateResponse, parts: Sequence[pb.TranslateStreamResponse]
) -> None:
    assert len(response.translations) == len(contents)
    for index, (content, translation) in enumerate(zip(contents, response.translations, strict=True)):
        own = sorted((part for part in parts if part.content_index == index), key=lambda part: part.sentence_index)
        sentences = [part.sentence for part in own]
        leading = own[0].leading
        assert leading + "".join(each.source_text + each.separator for each in sentences) == content
        assert leading + "".join(each.text + each.separator for each in sentences) == translation.text
        assert _controls(translation.text) <= _controls(content)


def _check_ids(ids: Sequence[int]) -> None:
    manifest = builtin_manifest()
    assert ids[-1] == manifest.special_ids.eos
    assert not special_ids() & set(ids[:-1])
    assert all(0 <= token < manifest.dimensions.vocab_size for token in ids)


def _controls(text: str) -> set[str]:
    return {character for character in text if unicodedata.category(character) == "Cc"}
