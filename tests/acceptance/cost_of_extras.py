"""What links, tokens, confidence, tags and terms cost a request that asks for them.

    python -m tests.acceptance.cost_of_extras
    python -m tests.acceptance.cost_of_extras --beam-size 1 --rounds 20

For each batch of sentences, one caller sends one request of every kind in each round, so that what slows the machine
down for some seconds slows all kinds alike. A round's times are summed over the batches, and the time of a kind is
compared with that of plain requests.
"""

import argparse
import re
import sys
import time
from collections import Counter

from babelserve import Client
from babelserve.messages import TranslateOptions
from tests.acceptance.calls import DEFAULT_SENTENCES, read_sentences
from tests.acceptance.report import Check, print_checks
from tests.acceptance.server_process import running_server
from tests.bench.rounds import turns
from tests.bench.statistics import median_of_ratios

_NUM_SENTENCES = 32  # of a request, which fill one batch
_NUM_BATCHES = 6
_MOST_FOR_LINKS, _MOST_FOR_TAGS = 1.15, 1.20  # times the time of plain requests


def main() -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", default="builtin", metavar="DIR", help="from English to German (default: built in)")
    parser.add_argument("--beam-size", type=int, default=4, metavar="N", help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=20, metavar="N", help="default: %(default)s")
    arguments = parser.parse_args()
    sentences = read_sentences(DEFAULT_SENTENCES, _NUM_BATCHES * _NUM_SENTENCES)
    batches = [sentences[start : start + _NUM_SENTENCES] for start in range(0, len(sentences), _NUM_SENTENCES)]
    with running_server(["--models", arguments.bundle]) as server, Client(server.address) as client:
        seconds = _measure(client, batches, arguments.beam_size, arguments.rounds)
    plain = seconds.pop("plain")
    most = {"links": _MOST_FOR_LINKS, "html, a tag in each": _MOST_FOR_TAGS}
    checks = []
    for kind, own in seconds.items():
        ratio = median_of_ratios(own, plain)
        bar = most.get(kind)
        passed = None if bar is None else ratio.value <= bar
        checks.append(Check(f"{kind}, times plain", str(ratio), "" if bar is None else f"<= {bar:.2f}", passed))
    return print_checks(checks)


def _measure(client: Client, batches: list[list[str]], beam_size: int, rounds: int) -> dict[str, list[float]]:
    """Returns the seconds of each kind of request, one sum over all batches for each round."""
    marked = [[_with_tag(sentence) for sentence in batch] for batch in batches]
    said, unsaid = _glossaries(client, batches)
    plain: TranslateOptions = {"source": "en", "beam_size": beam_size}
    kinds: dict[str, tuple[list[list[str]], TranslateOptions]] = {
        "plain": (batches, plain),
        "links": (batches, {**plain, "include_alignment": True}),
        "tokens": (batches, {**plain, "include_tokens": True}),
        "confidence": (batches, {**plain, "include_confidence": True}),
        "html, no tags": (batches, {**plain, "mime_type": "text/html"}),
        "html, a tag in each": (marked, {**plain, "mime_type": "text/html"}),
        "1000 terms, none there": (batches, {**plain, "glossary": {f"unused {number}": "x" for number in range(1000)}}),
        "a term in each, there": (batches, {**plain, "glossary": said}),
        "a term in each, missing": (batches, {**plain, "glossary": unsaid}),
    }
    seconds: dict[str, list[float]] = {kind: [0.0] * rounds for kind in kinds}
    for index in range(len(batches)):
        for number, kind in turns(list(kinds), rounds):
            texts, options = kinds[kind]
            started = time.perf_counter()
            client.translate(texts[index], target="de", **options)
            if number >= 0:
                seconds[kind][number] += time.perf_counter() - started
    return seconds


def _glossaries(client: Client, batches: list[list[str]]) -> tuple[dict[str, str], dict[str, str]]:
    """Returns terms that translations have without being told, and the same sources with targets that they lack.

    Each source is a word of one sentence only, and most sentences have one.
    """
    words = Counter(
        word for batch in batches for sentence in batch for word in set(re.findall(r"\w+", sentence.casefold()))
    )
    said: dict[str, str] = {}
    for batch in batches:
        for translation in client.translate(batch, source="en", target="de", include_alignment=True).translations:
            for sentence in translation.sentences:
                for link in sentence.links:
                    source = sentence.source_text[link.source_begin : link.source_end]
                    if words[source.casefold()] == 1:
                        said[source] = sentence.text[link.target_begin : link.target_end]
                        break
    targets = list(said.values())
    return said, dict(zip(said, [*targets[1:], targets[0]], strict=True))


def _with_tag(sentence: str) -> str:
    """Returns a sentence with its second word in bold."""
    first, _, rest = sentence.partition(" ")
    second, _, others = rest.partition(" ")
    return f"{first} <b>{second}</b> {others}"


if __name__ == "__main__":
    sys.exit(main())
