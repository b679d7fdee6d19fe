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
_TERM = pb.Term(source="dog", target="Hund")

_ENTITIES = '<!ENTITY a0 "ha">' + "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
_TBX = (
    '<?xml version="1.0"?>{doctype}<tbx type="TBX-Basic" xml:lang="en"><text><body><conceptEntry>'
    '<langSec xml:lang="en"><termSec><term>dog</term></termSec></langSec>'
    '<langSec xml:lang="de"><termSec><term>{term}</term></termSec></langSec></conceptEntry></body></text></tbx>'
)
_BAD_FILES = {
    "rows.tsv": _HEADER + "".join(f"w{number}\tx\n" for number in range(1_000_000)),
    "long.tsv": f"{_HEADER}{'d' * 10_000}\tHund\n",
    "empty-side.tsv": f"{_HEADER}dog\t\n",
    "no-header.tsv": "dog\tHund\n",
    "zeros.tsv": f"{_HEADER}dog\tHu\0nd\n",
    "quote.csv": 'en,de\n"dog,Hund\n',
    "entities.tbx": _TBX.format(doctype=f"<!DOCTYPE tbx [{_ENTITIES}]>", term="&a9;"),
    "outside.tbx": _TBX.format(doctype='<!DOCTYPE tbx [<!ENTITY x SYSTEM "file:///etc/passwd">]>', term="&x;"),
    "deep.tbx": '<?xml version="1.0"?><tbx type="TBX-Basic" xml:lang="en">' + "<text>" * 5000,
}


def bad_glossaries() -> dict[str, tuple[pb.Glossary, str]]:
    """Returns glossaries of requests that must be refused, and what the message must have."""
    many = [pb.Term(source=f"w{number}", target="x") for number in range(1001)]
    wordy = [pb.Term(source=" ".join(f"{n}w{number}" for n in range(30)), target="x") for number in range(1000)]
    return {
        "contradictory terms": (pb.Glossary(terms=[_TERM, pb.Term(source="dog", target="Katze")]), "glossary.terms[1]"),
        "the same but for case": (
            pb.Glossary(terms=[_TERM, pb.Term(source="Dog", target="Katze")], ignore_case=True),
            "glossary.terms[1]",
        ),
        "10,000 characters": (pb.Glossary(terms=[pb.Term(source="d" * 10_000, target="Hund")]), "200"),
        "a target of 10,000": (pb.Glossary(terms=[pb.Term(source="dog", target="d" * 10_000)]), "200"),
        "an empty source": (pb.Glossary(terms=[pb.Term(target="Hund")]), "glossary.terms[0].source"),
        "an empty target": (pb.Glossary(terms=[pb.Term(source="dog")]), "glossary.terms[0].target"),
        "blanks": (pb.Glossary(terms=[pb.Term(source=" \t", target="Hund")]), "glossary.terms[0].source"),
        "1,001 terms": (pb.Glossary(terms=many), "glossary.terms: must be from 0 to 1000, not 1001"),
        "30,000 words": (pb.Glossary(terms=wordy), "20000"),
        "33 forms": (
            pb.Glossary(terms=[pb.Term(source="dog", target="Hund", target_forms=[f"H{n}" for n in range(33)])]),
            "target_forms",
        ),
        "17 names": (
            pb.Glossary(names=[f"n{number}" for number in range(17)]),
            "glossary.names: must be from 0 to 16, not 17",
        ),
        "an unknown name": (pb.Glossary(names=["nothing"]), "nothing"),
    }


def match(sentences: Sequence[str], *, ignore_case: bool) -> Check:
    """Looks for the terms of a large glossary, of one to three words each, in sentences."""
    chance, words = random.Random(1), sorted({word for sentence in sentences for word in sentence.split()})
    phrases = {" ".join(chance.choices(words, k=chance.randint(1, 3))) for _ in range(3 * _NUM_TERMS)}
    table = TermTable(Term((phrase,), ("x",)) for phrase in sorted(phrases)[:_NUM_TERMS])
    named = NamedGlossary("large", "en", "de", "0", table)
    glossary = Glossary([], ignore_case=ignore_case, names=["large"]).with_named([named])
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
    faults = []
    bad = bad_glossaries()
    for name, (glossary, words) in bad.items():
        try:
            stub.Translate(_request(glossary), timeout=60)
            faults.append(f"{name}: answered")
        except grpc.RpcError as error:
            expected = grpc.StatusCode.NOT_FOUND if "unknown" in name else grpc.StatusCode.INVALID_ARGUMENT
            if error.code() is not expected or words not in (error.details() or ""):
                faults.append(f"{name}: {error.code().name} {error.details()}"[:200])
    return _faultless("requests refused by field and limit", len(bad), faults)


def put_bad(folder: Path, server: ServerProcess, stub: TranslationServiceStub) -> Check:
    """Puts the bad files into the folder, and waits until they are refused."""
    for name, content in _BAD_FILES.items():
        (folder / name).write_text(content)
    deadline, num_refused = time.monotonic() + _REFUSED_SECONDS, 0
    while num_refused < len(_BAD_FILES) and time.monotonic() < deadline:
        time.sleep(0.2)
        num_refused = int(metric(server, "glossary_loads_total", outcome="refused"))
    served = [each.name for each in stub.ListGlossaries(pb.ListGlossariesRequest(), timeout=60).glossaries]
    measured = f"{num_refused} of {len(_BAD_FILES)}; served: {', '.join(served)}"
    return Check("files refused", measured, "all", num_refused == len(_BAD_FILES) and served == [_LIVE])


class Callers:
    """Call the server without end: some with the glossary that is written anew, some without any."""

    def __init__(self, address: str) -> None:
        self.num_calls = 0
        self.faults: list[str] = []
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._call, args=(address, names)) for names in ([], [_LIVE], [_LIVE])]

    @contextmanager
    def calling(self) -> Iterator[None]:
        """They call during the block."""
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            for thread in self._threads:
                thread.join()

    def _call(self, address: str, names: Sequence[str]) -> None:
        with open_stub(address) as stub:
            while not self._is_over.is_set():
                self.num_calls += 1
                try:
                    answer = stub.Translate(_request(pb.Glossary(names=names)), timeout=30)
                except grpc.RpcError as error:
                    self.faults.append(f"{error.code().name} {error.details()}")
                    continue
                text = answer.translations[0].text
                if names and not any(target in text for target in _TARGETS):
                    self.faults.append(f"no term in {text!r}")


def write_anew(path: Path, seconds: float) -> int:
    """Writes a glossary in place, in two halves, with another target each time; returns how often."""
    end = time.monotonic() + seconds
    for number in itertools.count():
        if time.monotonic() > end:
            return number
        with path.open("w") as file:
            file.write(f"{_HEADER}cat\tKa")
            file.flush()
            time.sleep(0.01)
            file.write(f"tze\ndog\t{_TARGETS[number % 2]}\n")
        time.sleep(0.02 if number % 50 else 3.0)  # at times it is the same at two looks, and is taken
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
        with running_server(["--glossaries", directory, *flags]) as server, open_stub(server.address) as stub:
            before = read_memory(server.process.pid).resident
            callers = Callers(server.address)
            with callers.calling():
                checks = [send_bad(stub), put_bad(folder, server, stub)]
                num_written = write_anew(live, seconds)
            grown = read_memory(server.process.pid).peak - before
            taken = metric(server, "glossary_loads_total", outcome="ok")
        checks.append(Check("the good file, written anew", f"{num_written} times, taken {taken:.0f} times"))
        checks.append(_faultless("calls beside, with their terms", callers.num_calls, callers.faults))
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
