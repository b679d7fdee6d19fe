"""Whether translations have the terms of a glossary, and what that does to the rest of them.

    python -m tests.acceptance.terms
    python -m tests.acceptance.terms --bundle DIR --show 40

It sends held-out sentences that have one to three terms each. A sentence goes with its own terms alone, beside others,
and once without terms. It *needs help* if its translation without terms lacks one of them. These terms are exact: they
are the words of the reference. Then it sends sentences with a name that must stay, and at last sentences with a term of
which the reference has another form than the glossary.
"""

import argparse
import asyncio
import re
import sys
from collections.abc import Sequence
from typing import NamedTuple

import grpc
from sacrebleu.metrics import CHRF

from babelserve.v1 import translation_pb2 as pb
from babelserve.v1.translation_pb2_grpc import TranslationServiceStub
from tests.acceptance.lines import DATA
from tests.acceptance.report import Check, print_checks
from tests.acceptance.server_process import running_server

_AT_ONCE = 16
_LEAST_PRESENT = 0.99
_LEAST_GAIN = 2.5  # chrF
_LEAST_NEEDY = 0.45  # of the sentences; with fewer, the gain is no measure


class Line(NamedTuple):
    """A sentence, its reference translation, the terms of both, and what forms of terms the reference has instead."""

    source: str
    reference: str
    terms: tuple[tuple[str, str], ...]
    forms: tuple[str, ...] = ()


def read_lines(name: str) -> list[Line]:
    """Returns the lines of a file: source, reference, and in each further column a term and what it must become.

    A column without "=" has a form of a term.
    """
    lines = []
    for line in (DATA / name).read_text(encoding="utf-8").splitlines():
        source, reference, *columns = line.split("\t")
        parts = [column.split("=") for column in columns]
        terms = tuple((each[0], each[1]) for each in parts if len(each) == 2)
        lines.append(Line(source, reference, terms, tuple(each[0] for each in parts if len(each) == 1)))
    return lines


def num_present(line: Line, translation: str) -> int:
    """Returns how many of a line's terms a translation has as whole words; one of them may begin it."""
    return sum(_has(translation, term) for _, term in line.terms)


def _has(translation: str, word: str) -> bool:
    forms = (word, word[:1].upper() + word[1:])
    return any(re.search(rf"(?<!\w){re.escape(form)}(?!\w)", translation) for form in forms)


async def translate(port: int, lines: Sequence[Line], *, with_terms: bool, are_exact: bool = True) -> list[str]:
    """Returns the translation of each line, which is sent in a call of its own."""
    turns = asyncio.Semaphore(_AT_ONCE)
    async with grpc.aio.insecure_channel(f"localhost:{port}") as channel:
        stub = TranslationServiceStub(channel)

        async def ask(line: Line) -> str:
            terms = [pb.Term(source=a, target=b, exact=are_exact) for a, b in line.terms if with_terms]
            request = pb.TranslateRequest(
                contents=[line.source],
                source_language_code="en",
                target_language_code="de",
                glossary=pb.Glossary(terms=terms),
            )
            async with turns:
                response = await stub.Translate(request, timeout=60)
            text: str = response.translations[0].text
            return text

        return await asyncio.gather(*map(ask, lines))


def main() -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", default="builtin", metavar="DIR", help="from English to German (default: built in)")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print N translations that needed help")
    arguments = parser.parse_args()
    lines, names, others = map(read_lines, ("term_pairs.tsv", "kept_names.tsv", "inflected_terms.tsv"))
    with running_server(["--models", arguments.bundle]) as server:
        plain = asyncio.run(translate(server.port, lines, with_terms=False))
        with_terms = asyncio.run(translate(server.port, lines, with_terms=True))
        kept = asyncio.run(translate(server.port, names, with_terms=True))
        before = asyncio.run(translate(server.port, others, with_terms=False))
        listed = asyncio.run(translate(server.port, others, with_terms=True))
        inflected = asyncio.run(translate(server.port, others, with_terms=True, are_exact=False))
    needy = [index for index, line in enumerate(lines) if num_present(line, plain[index]) < len(line.terms)]
    for index in needy[: arguments.show]:
        print(f"{lines[index].source}\n  {lines[index].terms}\n  {plain[index]}\n  {with_terms[index]}")
    checks = _checks(lines, plain, with_terms, needy, names, kept)
    return print_checks([*checks, *_inflection_checks(others, before, listed, inflected)])


def _checks(
    lines: Sequence[Line],
    plain: Sequence[str],
    with_terms: Sequence[str],
    needy: Sequence[int],
    names: Sequence[Line],
    kept: Sequence[str],
) -> list[Check]:
    present, total = sum(map(num_present, lines, with_terms)), sum(len(line.terms) for line in lines)
    others = sorted(set(range(len(lines))) - set(needy))
    unchanged = sum(plain[index] == with_terms[index] for index in others)
    gain = _chrf(lines, with_terms) - _chrf(lines, plain)
    of_needy = [[each[index] for index in needy] for each in (plain, with_terms)]
    before, behind = (_chrf([lines[index] for index in needy], each) for each in of_needy)
    num_kept = sum(map(num_present, names, kept))
    is_better = gain >= _LEAST_GAIN if len(needy) >= _LEAST_NEEDY * len(lines) else None
    return [
        Check("sentences that need help", f"{len(needy)} of {len(lines)}"),
        Check("terms present", _share(present, total), f">= {_LEAST_PRESENT:.0%}", present >= _LEAST_PRESENT * total),
        Check("chrF with terms, above chrF without", f"{gain:+.2f}", f">= {_LEAST_GAIN}", is_better),
        Check("the same, of sentences that need help", f"{before:.2f} to {behind:.2f}"),
        Check("others unchanged", _share(unchanged, len(others)), "100 %", unchanged == len(others)),
        Check("names kept", _share(num_kept, len(names)), "100 %", num_kept == len(names)),
    ]


def _inflection_checks(
    lines: Sequence[Line], plain: Sequence[str], listed: Sequence[str], inflected: Sequence[str]
) -> list[Check]:
    """Returns what endings do where references have another form than the glossary."""
    numbers = [
        sum(_has(text, line.forms[0]) for line, text in zip(lines, texts, strict=True))
        for texts in (plain, listed, inflected)
    ]
    scores = [_chrf(lines, texts) for texts in (plain, listed, inflected)]
    shown = f"{numbers[0]}, {numbers[1]}, {numbers[2]} of {len(lines)}"
    is_more = numbers[2] > max(numbers[:2])
    is_better = scores[2] > max(scores[:2])
    return [
        Check("the reference's form: no term, as listed, with endings", shown, "rises", is_more),
        Check("chrF of the same", ", ".join(f"{score:.2f}" for score in scores), "rises", is_better),
    ]


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / max(1, whole):.1%})"


def _chrf(lines: Sequence[Line], translations: Sequence[str]) -> float:
    score: float = CHRF().corpus_score(list(translations), [[line.reference for line in lines]]).score
    return score


if __name__ == "__main__":
    sys.exit(main())
