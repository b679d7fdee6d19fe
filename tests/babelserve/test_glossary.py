from pathlib import Path

import grpc
import pytest

from babelserve.glossary import Languages, read_terms, tell_missed
from babelserve.lines import Line, TranslatedLine, failed_line
from babelserve.outputs import UsageError
from babelserve.results import FinishReason, Translation
from babelserve.terms import UsedTerm

TERMS = {"printer": ["Drucker", "Druckers"], "tray": "Fach"}


def read(
    tmp_path: Path, data: str | bytes, name: str = "terms.csv", *, ignore_case: bool = False
) -> dict[str, str | list[str]]:
    file = tmp_path / name
    file.write_bytes(data.encode() if isinstance(data, str) else data)
    return read_terms([], file, ignore_case=ignore_case)


def fault(tmp_path: Path, data: str | bytes, name: str = "terms.csv", *, ignore_case: bool = False) -> str:
    """What is told of a file, behind its name."""
    with pytest.raises(UsageError) as caught:
        read(tmp_path, data, name, ignore_case=ignore_case)
    return str(caught.value).removeprefix(str(tmp_path / name))


def test_terms_of_flags_have_forms_and_stand_before_those_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("tray\tFach\n")

    found = read_terms(["printer=Drucker|Druckers"], tmp_path / "a.tsv", ignore_case=False)

    assert found == TERMS
    assert list(found) == ["printer", "tray"]
    assert read_terms([" a  b =c=d||e"], None, ignore_case=False) == {"a b": ["c=d", "e"]}
    assert read_terms([], None, ignore_case=False) == {}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.tsv", "printer\tDrucker\tDruckers\ntray\tFach\n"),
        ("a.TAB", "printer\tDrucker\tDruckers\ntray\tFach"),
        ("a.csv", "printer,Drucker,Druckers\ntray,Fach\n"),
        ("a.csv", "printer;Drucker;Druckers\ntray;Fach;;\n"),
        ("a.csv", '"printer";"Drucker"; "Druckers"\n"tray";"Fach"\n'),
        ("a", "printer\tDrucker\tDruckers\r\ntray\tFach\r\n"),
        ("a.txt", "printer;Drucker;Druckers\rtray;Fach\r"),
        ("a.csv", "\ufeffprinter,Drucker,Druckers\n\n# a note, of ours;\n  \n tray , Fach\n"),
        ("a.csv", "en;de\nprinter;Drucker;Druckers\ntray;Fach\n"),
        ("a.tsv", "en\tpt-BR\tpt-BR\nprinter\tDrucker\tDruckers\ntray\tFach\n"),
        ("a.csv", "Source,Target\nprinter,Drucker,Druckers\ntray,Fach\n"),
    ],
)
def test_files_of_every_kind_are_read(name: str, data: str, tmp_path: Path) -> None:
    assert read(tmp_path, data, name) == TERMS


def test_quotes_hold_delimiters_together_where_no_tabs_part(tmp_path: Path) -> None:
    assert read(tmp_path, '"Inc.; new",X\n"say ""no""",Y\n"#1",Z\n') == {
        "Inc.; new": "X",
        'say "no"': "Y",
        "#1": "Z",
    }
    assert read(tmp_path, '"a"\t5" disk\n', "a.tsv") == {'"a"': '5" disk'}


def test_only_the_first_line_can_be_a_head(tmp_path: Path) -> None:
    assert read(tmp_path, "a,b\nsource,target\nen,de\n") == {"a": "b", "source": "target", "en": "de"}


@pytest.mark.parametrize(
    ("head", "languages", "is_head"),
    [
        ("EN,pt_br", ("en", "pt-BR"), True),
        ("eng,de", ("eng", None), True),
        ("en,de", ("en", "fr"), False),
        ("en,de", ("fr", None), False),
        ("EN,DE", (None, None), False),
        ("eng,deu", (None, None), False),
        ("one,de", (None, None), False),
    ],
)
def test_a_head_has_the_codes_of_the_languages_if_they_are_known(
    head: str, languages: Languages, is_head: bool, tmp_path: Path
) -> None:
    file = tmp_path / "terms.csv"
    file.write_text(f"{head}\na,b\n")

    terms = read_terms([], file, ignore_case=False, languages=languages)

    assert len(terms) == (1 if is_head else 2)


def test_codes_in_columns_three_and_four_of_every_line_are_no_forms(tmp_path: Path) -> None:
    assert read(tmp_path, "a,b,en,de\nc,d,en,de,,\n") == {"a": "b", "c": "d"}
    assert read(tmp_path, "a,b,en,de\nc,d\n") == {"a": ["b", "en", "de"], "c": "d"}
    assert read(tmp_path, "a,b,en,de\nc,d,de,en\n") == {"a": ["b", "en", "de"], "c": ["d", "de", "en"]}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("a,b\nc\n", ", line 2: must be a source and a target with ',' between: 'c\\n'"),
        ("\n\na b\n", ", line 3: must be a source and a target with a tab, a semicolon or a comma between: 'a b\\n'"),
        ("a,\n", ", line 1: the target is empty"),
        (" ,b\n", ", line 1: the source is empty"),
        ("a,b\n" + "c" * 201 + ",d\n", ", line 2: the source has 201 characters; the limit is 200"),
        ("a,b," + "c" * 201, ", line 1: the target has 201 characters; the limit is 200"),
        ("a" + ",b" * 33, ", line 1: the target has 32 other forms; the limit is 31"),
        ("a,b\x00c\n", ", line 1: the target has U+0000, a control character or one without meaning"),
        ("a,b\u202ec\n", ", line 1: the target has U+202E, a control character or one without meaning"),
        ("a\u0378,b\n", ", line 1: the source has U+0378, a control character or one without meaning"),
        ('a,"b\nc,d\n', ", line 1: cannot be parted: unexpected end of data: 'a,\"b\\n'"),
        ("a," + '"b"' + "c" * 90, f", line 1: cannot be parted: ',' expected after '\"': 'a,\"b\"{'c' * 55}...'"),
        ("a," + "b" * 200_000, ", line 1: cannot be parted: field larger than field limit"),
        (b"a,b\nc,\xff\n", ", line 2: is not UTF-8: byte 6 of the file is wrong; convert it first"),
        ("a,b".encode("utf-16"), ", line 1: is not UTF-8: byte 0 of the file is wrong; convert it first"),
        (b"\x7fELF\x02\x01\x01\x00", ", line 1: must be a source and a target with"),
        ("".join(f"{n},b\n" for n in range(1001)), ", line 1001: this is one term too many; the limit is 1000"),
        ("#" * (4 * 2**20 + 1), ": has more than 4194304 bytes, the limit of a request"),
    ],
)
def test_a_fault_is_told_with_its_line_and_its_limit(data: str | bytes, message: str, tmp_path: Path) -> None:
    assert fault(tmp_path, data).startswith(message)


def test_a_source_that_is_there_twice_is_told_with_both_places(tmp_path: Path) -> None:
    place = f"{tmp_path / 'terms.csv'}, line 1"

    assert fault(tmp_path, "a,b\n\n a ,c\n") == f", line 3: the source 'a' is that of {place} already"
    assert fault(tmp_path, "a,b\nA,c\n", ignore_case=True) == f", line 2: the source 'A' is that of {place} already"
    assert read(tmp_path, "a,b\nA,c\n") == {"a": "b", "A": "c"}
    with pytest.raises(UsageError, match=r"^--term 2: the source 'a' is that of --term 1 already$"):
        read_terms(["a=b", "a=c"], None, ignore_case=False)


@pytest.mark.parametrize(
    ("term", "message"),
    [("x", "must be SOURCE=TARGET, not 'x'"), ("=x", "the source is empty"), ("x=|y", "the target is empty")],
)
def test_a_flag_that_is_no_term_is_told_by_its_number(term: str, message: str) -> None:
    with pytest.raises(UsageError, match=f"^--term 2: {message}$"):
        read_terms(["a=b", term], None, ignore_case=False)


def line_with(**missed: int) -> TranslatedLine:
    terms = tuple(
        UsedTerm(source=source, target="", source_begin=0, source_end=1, begin=0, end=0, is_applied=not count)
        for source, count in missed.items()
        for _ in range(max(1, count))
    )
    line = failed_line(Line(text="", num_bytes=0), grpc.StatusCode.INTERNAL, "")
    translation = Translation(
        text="",
        score=0.0,
        finish_reason=FinishReason.STOP,
        hypotheses=(),
        sentences=(),
        source_tokens=0,
        target_tokens=0,
        error=None,
        terms=terms,
    )
    return TranslatedLine(translation=translation, num_bytes=line.num_bytes, model="", model_version="")


def test_missed_terms_are_told_once_each_at_the_end_even_of_a_job_that_is_stopped() -> None:
    told: list[str] = []
    batches = [[line_with(a=1, b=0)], [line_with(b=1, c=2), line_with(c=1)]]

    results = tell_missed(batches, told.append)
    assert next(results) == batches[0]
    assert told == []
    assert list(results) == batches[1:]
    assert told == [
        "the term 'c' was missed 3 times",
        "the term 'a' was missed 1 time",
        "the term 'b' was missed 1 time",
    ]

    told.clear()
    stopped = tell_missed(batches, told.append)
    next(stopped)
    stopped.close()
    assert told == ["the term 'a' was missed 1 time"]
