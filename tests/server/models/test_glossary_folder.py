"""A folder of glossaries: what is good in it is served, and what is bad is told and changes nothing else."""

import logging
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from server.models import glossary_folder
from server.models.glossary_folder import FoundFile, GlossaryFolder, find_files, read_file
from server.telemetry.glossary_metrics import GlossaryMetrics
from server.text.glossary_entries import MalformedGlossary

GOOD = b"en\tde\ndog\tHund\n"
BETTER = b"en\tde\ndog\tHund\ncat\tKatze\n"


class Folder:
    """A folder of glossaries that is looked at when a test says so."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.directory = directory
        self.registry = CollectorRegistry()
        self.glossaries = GlossaryFolder(directory, GlossaryMetrics(self.registry))

    def write(self, file: str, content: bytes) -> None:
        (self.directory / file).write_bytes(content)

    def look(self, times: int = 2) -> dict[str, int]:
        for _ in range(times):
            self.glossaries.take_changes()
        return self.num_terms()

    def num_terms(self) -> dict[str, int]:
        return {name: each.table.num_terms for name, each in self.glossaries.served.items()}

    def sample(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"babelserve_glossary_{name}", labels)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "glossaries")


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    records = [record for record in caplog.records if record.levelno >= logging.WARNING]
    return [f"{record.getMessage()} {getattr(record, 'facts', {}).get('error', '')}".strip() for record in records]


def test_glossaries_come_change_and_go(folder: Folder) -> None:
    folder.write("a.tsv", GOOD)
    folder.write("b.csv", b"en,de\ndog,Hund\n")
    folder.glossaries.load_all()
    first = folder.glossaries.served["a"]
    assert folder.num_terms() == {"a": 1, "b": 1}

    folder.write("a.tsv", BETTER)
    folder.write("c.tsv", GOOD)
    assert folder.look(1) == {"a": 1, "b": 1}, "it may not be written whole"
    assert folder.look(1) == {"a": 2, "b": 1, "c": 1}
    assert folder.glossaries.served["a"].version != first.version
    assert folder.sample("terms", glossary="a") == 2
    assert folder.sample("loads_total", outcome="ok") == 4

    (folder.directory / "b.csv").unlink()
    assert folder.look() == {"a": 2, "c": 1}
    assert folder.sample("terms", glossary="b") is None


def test_a_glossary_that_does_not_change_is_read_once(folder: Folder) -> None:
    folder.write("a.tsv", GOOD)
    folder.glossaries.load_all()
    served = folder.glossaries.served

    folder.look(5)

    assert folder.glossaries.served is served
    assert folder.sample("loads_total", outcome="ok") == 1


def test_a_faulty_change_leaves_the_old_glossary_and_is_told_once(
    folder: Folder, caplog: pytest.LogCaptureFixture
) -> None:
    folder.write("a.tsv", GOOD)
    folder.glossaries.load_all()
    folder.write("a.tsv", BETTER + b"mouse\n")

    assert folder.look(5) == {"a": 1}
    assert errors(caplog) == [
        "a glossary is refused line 4: must have at least 2 columns, source and target, not 1",
    ]
    assert folder.sample("last_load_successful", glossary="a") == 0
    assert folder.sample("terms", glossary="a") == 1
    folder.write("a.tsv", BETTER)
    assert folder.look() == {"a": 2}
    assert folder.sample("last_load_successful", glossary="a") == 1


@pytest.mark.parametrize("is_unreadable", [False, True])
def test_a_folder_without_any_glossary_is_taken_for_a_missing_mount(
    folder: Folder, caplog: pytest.LogCaptureFixture, *, is_unreadable: bool
) -> None:
    folder.write("a.tsv", GOOD)
    folder.glossaries.load_all()
    (folder.directory / "a.tsv").unlink()
    if is_unreadable:
        folder.directory.rmdir()

    assert folder.look(3) == {"a": 1}
    assert any("those there were stay" in each for each in errors(caplog))


def test_a_file_that_changes_while_it_is_read_is_read_again(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder.write("a.tsv", GOOD)
    found = find_files(folder.directory)[0]["a"]
    folder.write("a.tsv", BETTER)
    assert read_file(found) is None, "it changed after the look"

    real = os.open

    def change(path: str, flags: int) -> int:
        descriptor = real(path, flags)
        writing = real(path, os.O_WRONLY | os.O_APPEND)
        os.write(writing, b"half a r")
        os.close(writing)
        return descriptor

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", change)
        folder.glossaries.load_all()
    assert folder.num_terms() == {}
    folder.write("a.tsv", BETTER)
    assert folder.look() == {"a": 2}
    assert errors(caplog) == []


def test_a_file_that_vanishes_while_it_is_read_is_no_fault(folder: Folder, caplog: pytest.LogCaptureFixture) -> None:
    folder.write("a.tsv", GOOD)
    found = find_files(folder.directory)[0]["a"]
    (folder.directory / "a.tsv").unlink()

    assert read_file(found) is None
    assert errors(caplog) == []


def test_codes_of_languages_are_told_as_bcp_47_writes_them(folder: Folder) -> None:
    folder.write("a.eng-pt_br.tsv", b"dog\tcachorro\n")
    folder.glossaries.load_all()
    (glossary,) = folder.glossaries.served.values()

    assert (glossary.name, glossary.source, glossary.target) == ("a.eng-pt_br", "en", "pt-BR")


def test_what_kubernetes_swaps_is_noticed(folder: Folder, tmp_path: Path) -> None:
    for version, content in (("..1", GOOD), ("..2", BETTER)):
        (folder.directory / version).mkdir()
        (folder.directory / version / "a.tsv").write_bytes(content)
    data = folder.directory / "..data"
    data.symlink_to("..1")
    (folder.directory / "a.tsv").symlink_to("..data/a.tsv")
    folder.glossaries.load_all()
    assert folder.num_terms() == {"a": 1}

    other = tmp_path / "link"
    other.symlink_to("..2")
    other.replace(data)

    assert folder.look() == {"a": 2}


def fifo(path: Path) -> None:
    os.mkfifo(path)


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def long(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(33 << 20)


def two(path: Path) -> None:
    path.write_bytes(GOOD)
    path.with_suffix(".csv").write_bytes(b"en,de\ndog,Hund\n")


def xml(body: str) -> bytes:
    return f'<tbx xml:lang="en">{body}</tbx>'.encode()


BOMB = b'<!DOCTYPE tbx [<!ENTITY a "%b">%s]><tbx xml:lang="en">&z;</tbx>'
ROW = b"en\tde\n"
HOSTILE: list[tuple[str, bytes | Callable[[Path], object], str]] = [
    ("x.tsv", b"", "must have at least one term, not 0"),
    ("x.csv", b"", "must have at least one term, not 0"),
    ("x.tbx", b"", "line 1: must be well-formed XML in UTF-8, not so: no element found"),
    ("x.tsv", b"\n\n# nothing\n", "must have at least one term, not 0"),
    ("x.tsv", ROW, "must have at least one term, not 0"),
    ("x.tsv", bytes(range(256)) * 10, "line 1: the first row must be codes of two languages"),
    ("x.tsv", bytes(range(128, 256)), "line 1: must be UTF-8, but byte 1 is none"),
    ("x.tsv", bytes(100_000), "line 1: must have at most 65536 bytes, not 100000"),
    ("x.tsv", ROW + b"dog\x00\tHund\n", "line 2: the source must have no control characters"),
    ("x.csv", b"en,de\ndog,Hu\x00nd\n", "line 2: the target must have no control characters"),
    ("x.tsv", ROW + "Tür\tdoor\n".encode("latin-1"), "line 2: must be UTF-8, but byte 2 is none"),
    ("x.tsv", "en\tde\ndog\tHund\n".encode("utf-16"), "line 1: must be UTF-8, but byte 1 is none"),
    ("x.tsv", "en\tde\ndog\tHund\n".encode("utf-16-le"), "line 1: the first row must be codes"),
    ("x.tsv", "en\tde\ndog\tHund\n".encode("utf-32"), "line 1: must be UTF-8"),
    ("x.tsv", ROW + b"\xc0\xae\tx\n", "line 2: must be UTF-8, but byte 1 is none"),
    ("x.tsv", ROW + b"\xed\xa0\x80\tx\n", "line 2: must be UTF-8, but byte 1 is none"),
    ("x.csv", b'en,de\n"dog,Hund\ncat,Katze\n', "line 2: a cell that begins with a quote must end with one"),
    ("x.csv", b'en,de\ndog,"Hund"er\n', "line 2: a cell that begins with a quote must end with one"),
    ("x.csv", b'en,de\ndog,"Hund\nHunde"\n', "line 2: a cell that begins with a quote must end with one"),
    ("x.csv", b'"', "line 1: a cell that begins with a quote must end with one"),
    ("x.tsv", ROW + b"a\tb\n" * 1_000_000, "line 200001: a file must have at most 200000 lines; this one has more"),
    ("x.tsv", ROW + b"".join(b"%d\tb\n" % each for each in range(10**6)), "line 100002: a glossary must have at most"),
    ("x.tsv", ROW + b"dog\t" + b"x" * (10 << 20), "line 2: must have at most 65536 bytes, not 10485764"),
    ("x.csv", b"en,de\n" + b'"' * (10 << 20), "line 2: must have at most 65536 bytes, not 10485760"),
    ("x.tsv", ROW + b"\t" * 60_000, "must have at least one term, not 0"),
    (
        "x.csv",
        b"en,de\n" + b"," * 60_000 + b"a",
        "line 2: the source must have 1 to 200 characters, not all white space,",
    ),
    ("x.tsv", ROW + b"a\tb\n" + b"a\tc\n", "line 3: has the source of line 2, but another target"),
    ("x.tsv", ROW + b"dog\n", "line 2: must have at least 2 columns, source and target, not 1"),
    ("x.tsv", ROW + b"\tHund\n", "line 2: the source must have 1 to 200 characters"),
    ("x.tsv", ROW + b"dog\t \n", "line 2: the target must have 1 to 200 characters"),
    ("x.tsv", ROW + b"x" * 10_000 + b"\ty\n", "line 2: the source must have 1 to 200 characters, not all white space,"),
    ("x.tsv", ROW + b"a" + b"\tb" * 5 + b"\tc" * 5 + b"".join(b"\t%d" % i for i in range(40)), "at most 32 targets"),
    ("x.tsv", ROW + "a\u202eb\tc".encode(), "line 2: the source must have no control characters"),
    ("x.tsv", ROW + "a\u2028b\tc".encode(), "line 2: the source must have no control characters"),
    ("x.tsv", b"dog\tHund\n", "line 1: the first row must be codes of two languages, such as en and de, or the file's"),
    ("x.tsv", b"english\tgerman\ndog\tHund\n", "line 1: the first row must be codes"),
    ("x.tsv", b"en\tfr\tde\ndog\tchien\tHund\n", "line 1: column 3 of the first row must be empty, or the code of"),
    ("x.tsv", b"en-x1-y2-z3-q4\tde\ndog\tHund\n", "is no BCP-47 code of one"),
    ("x.tbx", BOMB % (b"a" * 100, b""), "line 1: must have no DTD of its own"),
    (
        "x.tbx",
        BOMB % (b"a", b"".join(b'<!ENTITY b%d "&a;&a;&a;">' % each for each in range(50))),
        "line 1: must have no DTD of its own",
    ),
    (
        "x.tbx",
        b'<!DOCTYPE tbx [<!ENTITY % p SYSTEM "file:///etc/passwd">%p;]><tbx/>',
        "line 1: must have no DTD of its",
    ),
    (
        "x.tbx",
        b'<!DOCTYPE tbx SYSTEM "file:///etc/passwd"><tbx xml:lang="en">&p;</tbx>',
        "line 1: must have no entities",
    ),
    ("x.tbx", xml("<a>" * 200_000), "line 1: elements must be nested at most 64 deep; these are deeper"),
    ("x.tbx", b"<html><body>dog</body></html>", "line 1: must be a TBX document: its root must be martif or tbx"),
    ("x.tbx", GOOD, "line 1: must be well-formed XML in UTF-8, not so: syntax error"),
    ("x.tbx", xml('<langSec xml:lang="de">' + "x" * 5_000_000), "line 1: must be well-formed XML in UTF-8, not so:"),
    ("x.tbx", xml(f'<a b="{"x" * 5_000_000}"/>'), "line 1: a tag or a comment must have at most 65536 bytes"),
    ("x.tbx", xml("<a " + " ".join(f'a{each}=""' for each in range(10**6)) + "/>"), "line 1: a tag or a comment must"),
    ("x.tbx", xml("<!--" + "x" * 5_000_000), "line 1: a tag or a comment must have at most 65536 bytes"),
    ("x.tbx", xml("<a/>" * 10**6), "must have terms in two languages"),
    ("x.tbx", xml('<a b="1" b="2"/>'), "line 1: must be well-formed XML in UTF-8, not so: duplicate attribute"),
    ("x.tbx", xml("<conceptEntry><langSec/></conceptEntry>"), "line 1: a language must have xml:lang, its code"),
    ("x.tbx", xml('<langSec xml:lang="de"><tig><term>\x01</term></tig></langSec>'), "must be well-formed XML"),
    ("x.tsv", fifo, "must be a regular file"),
    ("x.tsv", listening, "cannot be read: No such device or address"),
    ("x.tsv", Path.mkdir, "cannot be read: Is a directory"),
    ("x.tsv", lambda path: path.symlink_to("/dev/zero"), "must be a regular file"),
    ("x.tsv", lambda path: path.symlink_to("/"), "cannot be read: Is a directory"),
    ("x.tsv", lambda path: path.symlink_to("/etc/passwd"), "line 1: the first row must be codes of two languages"),
    ("x.tsv", lambda path: path.symlink_to("missing"), "cannot be read: No such file or directory"),
    ("x.tsv", lambda path: path.symlink_to(path), "cannot be read: Too many levels of symbolic links"),
    ("x.tsv", long, "must have at most 33554432 bytes, not 34603008"),
    ("x.tsv", two, "x.csv has this name already"),
    ("-x.tsv", GOOD, "no name of a glossary: letters, digits"),
    ("a\nb.tsv", GOOD, r"a\nb.tsv: no name of a glossary"),
    ("ü\u202e.tsv", GOOD, r"\xfc\u202e.tsv: no name of a glossary"),
    ("x" * 65 + ".tsv", GOOD, "no name of a glossary"),
    ("x.txt", GOOD, "no glossary: its name must end with one of .tsv, .csv, .tbx"),
    ("x.TSV", GOOD, "no glossary: its name must end with one of .tsv, .csv, .tbx"),
    ("x.tsv.gz", GOOD, "no glossary: its name must end with one of .tsv, .csv, .tbx"),
]


@pytest.mark.parametrize(
    ("file", "content", "message"), HOSTILE, ids=[f"{number}-{case[2][:40]}" for number, case in enumerate(HOSTILE)]
)
def test_what_is_no_glossary_is_told_and_changes_nothing_else(
    folder: Folder,
    caplog: pytest.LogCaptureFixture,
    file: str,
    content: bytes | Callable[[Path], object],
    message: str,
) -> None:
    folder.write("good.tsv", GOOD)
    folder.glossaries.load_all()
    if isinstance(content, bytes):
        folder.write(file, content)
    else:
        content(folder.directory / file)
    folder.write("new.tsv", BETTER)

    num_terms = folder.look(3)

    num_terms.pop("x", None)  # of two files with that name, the first is served
    assert num_terms == {"good": 1, "new": 2}
    (error,) = errors(caplog)
    assert message in error
    assert len(error) < 300
    assert "root:" not in error


def test_there_are_limits_of_glossaries_files_and_terms(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(glossary_folder, "MAX_ALL_WORDS", 3)
    monkeypatch.setattr(glossary_folder, "MAX_GLOSSARIES", 3)
    for name in ("a", "b", "c", "d"):
        folder.write(f"{name}.tsv", BETTER if name == "b" else GOOD)
    folder.glossaries.load_all()

    assert folder.num_terms() == {"a": 1, "b": 2}
    assert errors(caplog) == [
        f"glossaries: {folder.directory}/d.tsv: there must be at most 3 glossaries",
        "a glossary is refused the sources of all glossaries together must have at most 3 words, not 4",
    ]


def test_what_is_refused_leaves_no_file_open(folder: Folder) -> None:
    (folder.directory / "x.tsv").mkdir()
    os.mkfifo(folder.directory / "y.tsv")
    found = find_files(folder.directory)[0]
    before = len(list(Path("/proc/self/fd").iterdir()))

    for each in found.values():
        with pytest.raises(MalformedGlossary):
            read_file(each)

    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_what_is_served_stays_however_many_files_come(folder: Folder, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("m", "n"):
        folder.write(f"{name}.tsv", GOOD)
    folder.glossaries.load_all()
    for index in range(1500):
        folder.write(f".{index}", b"")
        folder.write(f"{index}.txt", b"")
    for index in range(110):
        folder.write(f"a{index:03}.tsv", b"")

    assert folder.look(3) == {"m": 1, "n": 1}
    folder.write("n.tsv", BETTER)
    assert folder.look(3) == {"m": 1, "n": 2}
    assert len(errors(caplog)) < 300


def test_of_many_faults_the_first_are_named(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glossary_folder, "_MOST_FAULTS", 2)
    for index in range(5):
        folder.write(f"{index}.txt", b"")

    suffix = "no glossary: its name must end with one of .tsv, .csv, .tbx"
    assert find_files(folder.directory) == (
        {},
        [
            f"{folder.directory}/0.txt: {suffix}",
            f"{folder.directory}/1.txt: {suffix}",
            f"{folder.directory}: 3 files more that are no glossaries",
        ],
    )


def test_a_found_file_has_what_tells_it_from_others(folder: Folder) -> None:
    folder.write("a.en-de.tsv", b"dog\tHund\n")
    status = (folder.directory / "a.en-de.tsv").stat()

    assert find_files(folder.directory)[0] == {
        "a.en-de": FoundFile(
            "a.en-de",
            folder.directory / "a.en-de.tsv",
            (status.st_ino, 9, status.st_mtime_ns, status.st_ctime_ns),
        )
    }
