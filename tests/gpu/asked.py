"""What a request may ask for, on the GPU beside cpu-fp32: each field takes a way of its own through the decoder."""

import html
import operator
import time
from collections.abc import Sequence
from typing import Any

from babelserve.v1.translation_pb2 import (
    DecodingOptions,
    Glossary,
    OutputOptions,
    Sampling,
    Term,
    TranslateRequest,
    Translation,
)
from tests.acceptance.calls import open_stub
from tests.acceptance.server_process import ServerProcess
from tests.gpu.calling import server_flags
from tests.gpu.parts import Context

# The fields of each request, by a name for them.
_ASKED: dict[str, dict[str, Any]] = {
    "nothing": {},
    "a beam of 4, all of it": {"decoding": DecodingOptions(beam_size=4, num_hypotheses=4)},
    "penalties and bans": {
        "decoding": DecodingOptions(repetition_penalty=1.2, no_repeat_ngram_size=3, suppress=["ein"])
    },
    "sampling of one": {"decoding": DecodingOptions(sampling=Sampling(top_k=1, seed=7))},
    "alternatives": {"decoding": DecodingOptions(num_hypotheses=3, return_alternatives=True)},
    "the start given": {"target_prefixes": ["In der"]},
    "terms": {"glossary": Glossary(terms=[Term(source="man", target="Herr"), Term(source="and", target="sowie")])},
    "links": {"output": OutputOptions(include_sentences=True, include_alignment=True)},
    "confidence": {"output": OutputOptions(include_confidence=True)},
    "markup": {"mime_type": "text/html"},
}
_LEAST_SAME = 0.9  # halves decide near-ties otherwise
_CALL_TIMEOUT_SECONDS = 60.0


def compare_answers(context: Context, server: ServerProcess, exact: ServerProcess, sources: Sequence[str]) -> None:
    """Asks both servers for the same; no text may fail, and most answers must be the same words and positions."""
    found = _answers(context, server_flags(context.device)[-1], server, sources)
    expected = _answers(context, "cpu-fp32", exact, sources)
    for name, answers in found.items():
        same = sum(map(operator.eq, answers, expected[name])) / len(sources)
        is_met = same >= _LEAST_SAME or context.is_quick  # a few sentences say nothing
        context.check(f"{name}: same as cpu-fp32", same, is_met, f">= {_LEAST_SAME}")


def _answers(context: Context, variant: str, server: ServerProcess, sources: Sequence[str]) -> dict[str, list[str]]:
    found = {}
    with open_stub(server.address) as stub:
        for name, fields in _ASKED.items():
            contents = [_marked_up(source) for source in sources] if "mime_type" in fields else sources
            request = TranslateRequest(contents=contents, target_language_code="de", **fields)
            started = time.monotonic()
            translations = stub.Translate(request, timeout=_CALL_TIMEOUT_SECONDS).translations
            context.figure(f"{name}: seconds of {variant} for {len(sources)} texts", time.monotonic() - started)
            faults = [each.status.message for each in translations if each.status.code]
            context.check(f"{name}: texts that {variant} failed", str(faults[:3]), not faults, "none")
            found[name] = [_shown(each) for each in translations]
    return found


def _marked_up(source: str) -> str:
    first, _, rest = html.escape(source).partition(" ")
    return f"<p>{first} <b>{rest}</b></p>"


def _shown(translation: Translation) -> str:
    """Returns what an answer says in words and positions; its scores differ by rounding."""
    links = [
        (link.source_begin, link.source_end, link.target_begin, link.target_end)
        for sentence in translation.sentences
        for link in sentence.links
    ]
    return repr((translation.text, [each.text for each in translation.hypotheses], links))
