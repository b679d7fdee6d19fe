"""S1, S2, S3, S8: bytes that are no message, odd texts, sizes at the limits, and text that must not leak."""

import contextlib
import itertools
import random
import re
import urllib.request
from collections import Counter
from collections.abc import Iterator

import grpc

from babelserve.v1.translation_pb2 import DecodingOptions, TranslateRequest, TranslateResponse
from tests.acceptance.bad_input import try_request
from tests.acceptance.bad_requests import bad_requests
from tests.acceptance.report import Check
from tests.chaos.case import Case, Options, none
from tests.chaos.failpoints import Action, Point
from tests.chaos.load import PATH
from tests.chaos.observations import is_serving, resources
from tests.chaos.servers import Spec, broken_server

_TIMEOUT_SECONDS = 30.0
_MOST_GROWTH = 2.5  # of time, when a text is twice as long
_SIZES = (8_000, 16_000, 32_000)
# All sizes take turns, and of each the least time counts: a processor's frequency changes from second to second.
_ROUNDS = 5
_LEAST_SECONDS = 0.05  # shorter times count as this: much of them is the server's other work
_SECRET = "4711081517342"
_REAL = Spec(step_seconds=None)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

# Of each a unit that is repeated to make a long one.
ODD_TEXTS = {
    "NUL": "a\x00b ",
    "C0 and C1": "\x01\x1b[31m\x85 ",
    "bidi overrides": "\u202eabc\u202c ",
    "zero width": "a\u200bb\u200d\ufeff",
    "emoji with joiners": "👩‍👩‍👧‍👦",
    "combining marks": "e\u0301\u0302\u0303\u0304",
    "right to left": "שלום עולם ",
    "spaces": " ",
    "no spaces": "漢字仮名交",
    "one token": "the ",
    "punctuation": "?!...,;",
    "not composed": "e\u0301a\u0308 ",
    "special tokens": "</s> >>de<< <unk> <s> ",
    "placeholders": "\ue000\ue001 ",
    "expanding": "\ufdfa",
    "line breaks": "\r\n\u2028\x0b",
    "digits": "1234567890",
    "one character": "x",
}


def malformed(options: Options) -> Iterator[Check]:
    """S1: truncations at every byte, flipped bits, random bytes: INVALID_ARGUMENT or an answer, nothing else."""
    chance = random.Random(options.seed)
    good = TranslateRequest(
        contents=["A dog runs.", "Zwei."], target_language_code="de", decoding=DecodingOptions(beam_size=2)
    ).SerializeToString()
    payloads = [good[:length] for length in range(len(good))]
    for _ in range(options.count(10_000, 200)):
        flipped = bytearray(good)
        flipped[chance.randrange(len(good))] ^= 1 << chance.randrange(8)
        payloads += [bytes(flipped), chance.randbytes(chance.randrange(1, 200))]
    with broken_server() as server, grpc.insecure_channel(server.address) as channel:
        call = channel.unary_unary(PATH, None, None)
        outcomes = Counter(_outcome(call, payload) for payload in payloads)
        serves = is_serving(server.process.health_address)
    odd = outcomes.keys() - {"OK", "INVALID_ARGUMENT", "NOT_FOUND"}
    yield Check("outcomes", f"{dict(outcomes)}", "OK, INVALID_ARGUMENT, NOT_FOUND", not odd)
    yield Check("afterwards", "SERVING" if serves else "not SERVING", "SERVING", serves)


def odd_texts(options: Options) -> Iterator[Check]:
    """S2: texts that nobody writes: each has a defined result, and takes a time that grows with its length."""
    worst, worst_name, faults = 0.0, "", []
    with broken_server(_REAL) as server, grpc.insecure_channel(server.address) as channel:
        for name, unit in ODD_TEXTS.items():
            for text in (unit, unit * 50):
                faults += [f"{name}: {fault}" for fault in _translated_faults(channel, text)]
        for name, unit in list(ODD_TEXTS.items())[: options.count(len(ODD_TEXTS), 0)]:
            texts = [unit * (size // len(unit)) for size in _SIZES]
            rounds = [[_seconds(server.process.process.pid, channel, text) for text in texts] for _ in range(_ROUNDS)]
            seconds = list(map(min, zip(*rounds, strict=True)))
            growth = max(after / max(before, _LEAST_SECONDS) for before, after in itertools.pairwise(seconds))
            worst, worst_name = max((worst, worst_name), (growth, name))
    yield none(f"{2 * len(ODD_TEXTS)} texts", faults, "a defined result each")
    if not options.is_quick:
        yield Check(
            "twice the text", f"{worst:.2f} of the time ({worst_name})", f"<= {_MOST_GROWTH}", worst <= _MOST_GROWTH
        )


def _translated_faults(channel: grpc.Channel, text: str) -> list[str]:
    try:
        answer = _translate(channel, text)
    except grpc.RpcError as error:
        code = error.code().name
        return [] if code == "INVALID_ARGUMENT" else [code]
    [translation] = answer.translations
    new = set(_CONTROLS.findall(translation.text)) - set(text)
    return [f"control characters {sorted(new)} that the text has not"] if new else []


def _seconds(pid: int, channel: grpc.Channel, text: str) -> float:
    """Returns what a server takes of processors for a text. By the clock, splitters rest once a text takes long."""
    before = resources(pid).cpu_seconds
    with contextlib.suppress(grpc.RpcError):  # a refusal takes its time too
        _translate(channel, text)
    return resources(pid).cpu_seconds - before


def _translate(channel: grpc.Channel, text: str) -> TranslateResponse:
    decoding = DecodingOptions(beam_size=1, max_output_tokens=4)  # it is the input that is measured
    call = channel.unary_unary(PATH, TranslateRequest.SerializeToString, TranslateResponse.FromString)
    request = TranslateRequest(contents=[text], target_language_code="de", decoding=decoding)
    answer: TranslateResponse = call(request, timeout=_TIMEOUT_SECONDS)
    return answer


def sizes(options: Options) -> Iterator[Check]:
    """S3: whatever is too large or too many has its own clear error (`tests.acceptance.bad_requests`)."""
    with broken_server(_REAL) as server, grpc.insecure_channel(server.address) as channel:
        outcomes = [try_request(channel, case) for case in bad_requests()]
    for outcome in outcomes:
        yield none(outcome.name, outcome.faults, outcome.got)


def leaks(options: Options) -> Iterator[Check]:
    """S8: a user's text stays out of the log, of the metrics and of errors, whatever fails; labels are a closed set."""
    contents = [f"The secret is {_SECRET} and {_SECRET}.", "x" * 300]
    request = TranslateRequest(contents=contents, target_language_code="de").SerializeToString()
    details: list[str] = []
    with broken_server() as server, grpc.insecure_channel(server.address) as channel:
        call = channel.unary_unary(PATH, None, None)
        before = _num_series(server.process.metrics_url)
        for point in (Point.ADMIT, Point.BEFORE_ENCODE, Point.AFTER_STEP, Point.BEFORE_REPLY):
            server.arm(point, Action.RAISE)
            details.append(_details(call, request))
        for number in range(options.count(10_000, 300)):
            language = TranslateRequest(contents=[_SECRET], target_language_code=f"x-{number}", model=f"m{number}")
            details.append(_details(call, language.SerializeToString()))
            unknown = channel.unary_unary(f"/babelserve.v1.TranslationService/M{number}", None, None)
            _details(unknown, b"")
        after = _num_series(server.process.metrics_url)
        page = urllib.request.urlopen(server.process.metrics_url).read().decode()
        log = server.process.stderr()
    everything = {"errors": "\n".join(details), "the log": log, "the metrics page": page}
    for name, text in everything.items():
        yield none(
            f"secrets in {name}",
            [f"{text.count(_SECRET)} times"] if _SECRET in text else [],
            f"none in {len(text)} characters",
        )
    words = [each for each in details if "failpoint" in each or "Traceback" in each]
    yield none("an exception's words in errors", words)
    yield Check("series", f"{after}, {before} before", f"{before}", after == before)


def _outcome(call: "grpc.UnaryUnaryMultiCallable", payload: bytes) -> str:  # type: ignore[type-arg]
    try:
        call(payload, timeout=_TIMEOUT_SECONDS)
    except grpc.RpcError as error:
        return str(error.code().name)
    return "OK"


def _details(call: "grpc.UnaryUnaryMultiCallable", payload: bytes) -> str:  # type: ignore[type-arg]
    try:
        call(payload, timeout=_TIMEOUT_SECONDS)
    except grpc.RpcError as error:
        return f"{error.code()} {error.details()}"
    return ""


def _num_series(url: str) -> int:
    with urllib.request.urlopen(url) as page:
        return sum(not line.startswith(b"#") for line in page.read().splitlines())


CASES = (
    Case("S1", "bytes that are no message", malformed),
    Case("S2", "odd texts", odd_texts),
    Case("S3", "sizes at and beyond the limits", sizes),
    Case("S8", "what must not leak", leaks),
)
