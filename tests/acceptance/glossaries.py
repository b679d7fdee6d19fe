"""What a large glossary costs, and what hostile glossaries do to a server and its other callers.

    python -m tests.acceptance.glossaries
    python -m tests.acceptance.glossaries --seconds 120

First it looks for the terms of a large glossary in sentences. Then it starts a server with a folder of glossaries.
While others call it, it sends requests whose glossaries must be refused, puts files into the folder that must be
refused, and writes a good file anew all the time, in place and not by a rename, so that the server may find half of it.
"""

import argparse
import itertools
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc

from babelserve.v1 import translation_pb2 as pb
from babelserve.v1.translation_pb2_grpc import TranslationServiceStub
from server.text.glossary import Glossary, NamedGlossary
from server.text.term_table import Term, TermTable
from tests.acceptance.calls import DEFAULT_SENTENCES, open_stub, read_sentences
from tests.acceptance.report import Check, print_checks
from tests.acceptance.server_process import ServerProcess, running_server
from tests.acceptance.start_up import read_memory
from tests.chaos.observations import metric

_NUM_TERMS = 50_000
_MOST_SECONDS = 0.001  # to find the terms of a sentence
_MOST_MIB = 256.0  # that the server may grow by
_REPEATS = 5  # of a look-up; the fastest counts, because the machine has other work
_TEXT = "A dog runs."
_LIVE = "live"  # the glossary that is written anew all the time
_TARGETS = "Hofhund", "Wachhund"  # of its term, by turns
_HEADER = "en\tde\n"
_REFUSED_SECONDS = 30.0  # in which a bad file must be refused
_WORST_SECONDS = 1.0  # of a call beside; they take 0.02 s on average
_TERM = pb.Term(source="dog", target="Hund")

_ENTITIES = '<!ENTITY a0 "ha">' + "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
_TBX = (
    '<?xml version="1.0"?>{doctype}<tbx type="TBX-Basic" xml:lang="en"><text><body><conceptEntry>'
    '<langSec xml:lang="en"><termSec><term>dog</term></termSec></langSec>'
    '<langSec xml:lang="de"><termSec><term>{term}</term></termSec></langSec></conceptEntry></body></text></tbx>'
)
# The name of each file, its content, and what the server must say of it.
_BAD_FILES = (
    ("rows.tsv", _HEADER + "".join(f"w{number}\tx\n" for number in range(1_000_000)), "at most 100000 terms"),
    ("long.tsv", f"{_HEADER}{'d' * 10_000}\tHund\n", "the source must have 1 to 200 characters, not all white space"),
    ("empty.tsv", f"{_HEADER}dog\t\n", "the target must have 1 to 200 characters, not all white space, not 0"),
    ("header.tsv", "dog\tHund\n", "the first row must be codes of two languages"),
    ("zero.tsv", f"{_HEADER}dog\tHu\0nd\n", "the target must have no control characters"),
    ("quote.csv", 'en,de\n"dog,Hund\n', "a cell that begins with a quote must end with one"),
    ("entities.tbx", _TBX.format(doctype=f"<!DOCTYPE tbx [{_ENTITIES}]>", term="&a9;"), "must have no DTD of its own"),
    (
        "outside.tbx",
        _TBX.format(doctype='<!DOCTYPE tbx [<!ENTITY x SYSTEM "file:///etc/passwd">]>', term="&x;"),
        "must have no DTD of its own",
    ),
    (
        "deep.tbx",
        _TBX.format(doctype="", term=f"{'<hi>' * 5000}Hund{'</hi>' * 5000}"),
        "elements must be nested at most 64 deep",
    ),
)


def bad_glossaries() -> dict[str, tuple[pb.Glossary, str]]:
    """Returns glossaries of requests that must be refused, and how the message must begin."""
    many = [pb.Term(source=f"w{number}", target="x") for number in range(1001)]
    wordy = [pb.Term(source=" ".join(f"{n}w{number}" for n in range(30)), target="x") for number in range(1000)]
    forms = [f"H{number}" for number in range(33)]
    return {
        "contradictory terms": (
            pb.Glossary(terms=[_TERM, pb.Term(source="dog", target="Katze")]),
            "glossary.terms[1]: has a source that glossary.terms[0] has already",
        ),
        "the same but for case": (
            pb.Glossary(terms=[_TERM, pb.Term(source="Dog", target="Katze")], ignore_case=True),
            "glossary.terms[1]: has a source that glossary.terms[0] has already",
        ),
        "10,000 characters": (
            pb.Glossary(terms=[pb.Term(source="d" * 10_000, target="Hund")]),
            "glossary.terms[0].source: must have 1 to 200 characters",
        ),
        "a target of 10,000": (
            pb.Glossary(terms=[pb.Term(source="dog", target="d" * 10_000)]),
            "glossary.terms[0].target: must have 1 to 200 characters",
        ),
        "an empty source": (
            pb.Glossary(terms=[pb.Term(target="Hund")]),
            "glossary.terms[0].source: must have 1 to 200 characters",
        ),
        "an empty target": (
            pb.Glossary(terms=[pb.Term(source="dog")]),
            "glossary.terms[0].target: must have 1 to 200 characters",
        ),
        "blanks": (
            pb.Glossary(terms=[pb.Term(source=" \t", target="Hund")]),
            "glossary.terms[0].source: must have 1 to 200 characters",
        ),
        "1,001 terms": (pb.Glossary(terms=many), "glossary.terms: must be from 0 to 1000, not 1001"),
        "30,000 words": (pb.Glossary(terms=wordy), "glossary.terms[666]: makes 20010 words of all sources"),
        "33 forms": (
            pb.Glossary(terms=[pb.Term(source="dog", target="Hund", target_forms=forms)]),
            "glossary.terms[0].target_forms: must be from 0 to 31, not 33",
        ),
        "17 names": (
            pb.Glossary(names=[f"n{number}" for number in range(17)]),
            "glossary.names: must be from 0 to 16, not 17",
        ),
    }


def match(sentences: Sequence[str], *, ignore_case: bool) -> Check:
    """Looks for the terms of a large glossary, of one to three words each, in sentences."""
    chance, words = random.Random(1), sorted({word for sentence in sentences for word in sentence.split()})
    phrases = {" ".join(chance.choices(words, k=chance.randint(1, 3))) for _ in range(3 * _NUM_TERMS)}
    table = TermTable(Term((phrase,), ("Hund",)) for phrase in chance.sample(sorted(phrases), _NUM_TERMS))
    named = NamedGlossary("large", "en", "de", "0", table)
    glossary = Glossary([], ignore_case=ignore_case, names=["large"]).with_named([named]).inflecting("de")
    num_found = sum(len(list(glossary.find(sentence))) for sentence in sentences)
    times = [min(_look_up(glossary, sentence) for _ in range(_REPEATS)) for sentence in sentences]
    measured = f"mean {sum(times) / len(times) * 1e3:.3f} ms, worst {max(times) * 1e3:.2f} ms; {num_found} found"
    name = f"{table.num_terms} terms, {len(sentences)} sentences{', ignore_case' if ignore_case else ''}"
    return Check(name, measured, f"< {_MOST_SECONDS * 1e3:g} ms", max(times) < _MOST_SECONDS and num_found > 0)


def _look_up(glossary: Glossary, sentence: str) -> float:
    """Returns the seconds that it takes to find the terms of a sentence."""
    started = time.perf_counter()
    list(glossary.find(sentence))
    return time.perf_counter() - started


def send_bad(stub: TranslationServiceStub) -> Check:
    """Sends each bad glossary, with a good text."""
    bad, faults = bad_glossaries(), []
    for name, (glossary, words) in bad.items():
        try:
            stub.Translate(_request(glossary), timeout=60)
            faults.append(f"{name}: answered")
        except grpc.RpcError as error:
            message = error.details() or ""
            if error.code() is not grpc.StatusCode.INVALID_ARGUMENT or not message.startswith(words):
                faults.append(f"{name}: {error.code().name} {message}"[:200])
    return _faultless("requests refused by field and limit", len(bad), faults)


def put_bad(folder: Path, server: ServerProcess) -> Check:
    """Puts the bad files into the folder, and waits until each has been refused for its own reason."""
    for name, content, _ in _BAD_FILES:
        (folder / name).write_text(content)
    deadline, faults = time.monotonic() + _REFUSED_SECONDS, ["none was looked at"]
    while faults and time.monotonic() < deadline:
        time.sleep(0.2)
        lines = server.stderr().splitlines()
        faults = [
            f"{name}: not refused"
            for name, _, words in _BAD_FILES
            if not any(name.rpartition(".")[0] in line and words in line for line in lines)
        ]
    return _faultless("files refused, each for its reason", len(_BAD_FILES), faults)


class GlossaryCallers:
    """Call the server without end: some with the glossary that is written anew, some without any.

    Attributes:
        seconds: of each call.
        faults: what was wrong with answers.
    """

    def __init__(self, address: str) -> None:
        self.seconds: list[float] = []
        self.faults: list[str] = []
        self._address = address
        self._is_over = threading.Event()

    @contextmanager
    def calling(self) -> Iterator[None]:
        """They call during the block. Raises what has ended one of them."""
        with ThreadPoolExecutor(3) as pool:
            calls = [pool.submit(self._call, names) for names in ([], [_LIVE], [_LIVE])]
            try:
                yield
            finally:
                self._is_over.set()
        for call in calls:
            call.result()

    def _call(self, names: Sequence[str]) -> None:
        with open_stub(self._address) as stub:
            while not self._is_over.is_set():
                started = time.monotonic()
                try:
                    (translation,) = stub.Translate(_request(pb.Glossary(names=names)), timeout=30).translations
                except grpc.RpcError as error:
                    self.faults.append(f"{error.code().name} {error.details()}")
                else:
                    if not translation.text or (names and not any(each in translation.text for each in _TARGETS)):
                        self.faults.append(f"{translation.text!r} for {names}")
                self.seconds.append(time.monotonic() - started)


def write_anew(path: Path, seconds: float) -> int:
    """Writes a glossary in place, in two halves, with the other target each time; returns how often."""
    end = time.monotonic() + seconds
    for number in itertools.count(1):
        with path.open("w") as file:
            file.write(f"{_HEADER}cat\tKa")
            file.flush()
            time.sleep(0.01)
            file.write(f"tze\ndog\t{_TARGETS[number % 2]}\n")
        if time.monotonic() > end:
            return number
        time.sleep(0.02 if number % 51 else 3.0)  # at times it stays the same for two looks, and is taken
    raise AssertionError


def _request(glossary: pb.Glossary) -> pb.TranslateRequest:
    return pb.TranslateRequest(
        contents=[_TEXT], source_language_code="en", target_language_code="de", glossary=glossary
    )


def _faultless(name: str, number: int, faults: Sequence[str]) -> Check:
    measured = f"{number - len(faults)} of {number}"
    return Check(name, "; ".join([measured, *faults[:5]]), "all", not faults)


def serve(seconds: float, flags: Sequence[str]) -> list[Check]:
    """Starts a server and does to it what the module says; returns the table's lines."""
    with tempfile.TemporaryDirectory(prefix="babelserve-") as directory:
        folder = Path(directory)
        live = folder / f"{_LIVE}.tsv"
        live.write_text(f"{_HEADER}dog\t{_TARGETS[0]}\n")
        (folder / "good.tbx").write_text(_TBX.format(doctype="", term="Hund"))
        with running_server(["--glossaries", directory, *flags]) as server, open_stub(server.address) as stub:
            before = read_memory(server.process.pid).peak
            callers = GlossaryCallers(server.address)
            with callers.calling():
                checks = [send_bad(stub), put_bad(folder, server)]
                num_written = write_anew(live, seconds)
            grown = read_memory(server.process.pid).peak - before
            num_taken = metric(server, "glossary_loads_total", outcome="ok")
            num_refused = metric(server, "glossary_loads_total", outcome="refused")
            served = sorted(
                each.name for each in stub.ListGlossaries(pb.ListGlossariesRequest(), timeout=60).glossaries
            )
        is_right = num_taken > len(served) and num_refused == len(_BAD_FILES) and served == ["good", _LIVE]
        measured = f"written {num_written} times, taken {num_taken - 1:.0f} times; served: {', '.join(served)}"
        checks.append(Check("a good file that changes is taken, no half of it", measured, "good, live", is_right))
        checks.append(_faultless("calls beside, with their terms", len(callers.seconds), callers.faults))
        worst = max(callers.seconds)
        checks.append(
            Check("the slowest of them", f"{worst:.2f} s", f"<= {_WORST_SECONDS:g} s", worst <= _WORST_SECONDS)
        )
        measured = f"{grown:.0f} MiB over {before:.0f}"
        checks.append(Check("peak of memory", measured, f"<= {_MOST_MIB:.0f} MiB", grown <= _MOST_MIB))
        return checks


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--seconds", type=float, default=40.0, help="for which a file is written anew (default: %(default)s)")
    add("--input", type=Path, default=DEFAULT_SENTENCES, help="sentences, one a line")
    add("server", nargs="*", help="flags of the server, after --")
    arguments = parser.parse_args(argv)
    sentences = read_sentences(arguments.input, 1000)
    checks = [match(sentences, ignore_case=ignore_case) for ignore_case in (False, True)]
    return print_checks([*checks, *serve(arguments.seconds, arguments.server)])


if __name__ == "__main__":
    sys.exit(main())
