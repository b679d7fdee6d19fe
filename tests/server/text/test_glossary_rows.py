"""Glossaries in rows, read whole or refused with the line at fault."""

import pytest

from server.text.glossary_entries import Entries, MalformedGlossary
from server.text.glossary_rows import read_rows

EN_DE = ("en", "de")
DOG = Entries("en", "de", {"dog": ("Hund", "Hunde")})


@pytest.mark.parametrize(
    ("content", "is_csv"),
    [
        ("en\tde\ndog\tHund\tHunde\n", False),
        ("en\tde\tde\t\ndog\tHund\tHunde", False),
        ("\ufeffen\tde\r\ndog\tHund\tHunde\r\n", False),
        ("# animals\n\n en \tde\n\n# dogs\n dog\t Hund \t\tHunde\t\n", False),
        ("en\tde\ndog\tHund\tHunde\ndog\tHund\tHunde\n", False),
        ("en,de\ndog,Hund,Hunde\n", True),
        ("en;de\ndog;Hund;Hunde\n;;;\n", True),
        ('en, de\n"dog", "Hund", Hunde\n', True),
        ('"en","de"\n"dog","Hund","Hunde"\n', True),
        ('"en";"de"\n"dog";"Hund";"Hunde"\n', True),
    ],
)
def test_a_header_says_the_languages_and_further_columns_are_forms(content: str, is_csv: bool) -> None:
    assert read_rows(content.encode(), None, is_csv=is_csv) == DOG


@pytest.mark.parametrize(
    "content", ["dog\tHund\tHunde", "EN\tde\ndog\tHund\tHunde", "Source\tTARGET\tform\ndog\tHund\tHunde"]
)
def test_without_a_header_the_name_of_the_file_says_them(content: str) -> None:
    assert read_rows(content.encode(), EN_DE, is_csv=False) == DOG


def test_codes_in_columns_three_and_four_of_every_row_are_no_forms() -> None:
    assert read_rows(b"dog,Hund,EN,de\ncat,Katze,en,de,\n", EN_DE, is_csv=True).targets == {
        "dog": ("Hund",),
        "cat": ("Katze",),
    }
    assert read_rows(b"en;de\ndog;Hund;en;de\n", None, is_csv=True).targets == {"dog": ("Hund",)}
    assert read_rows(b"dog,Hund,en,de\ncat,Katze\n", EN_DE, is_csv=True).targets == {
        "dog": ("Hund", "en", "de"),
        "cat": ("Katze",),
    }


def test_a_target_that_is_given_twice_is_meant_as_it_stands() -> None:
    content = "en\tde\nuser\tAnwender\tAnwender\nscreen\tSchirm\tSchirme\tSchirm\nname\tName\n"
    targets = read_rows(content.encode(), None, is_csv=False).targets

    assert targets == {"user": ("Anwender", "Anwender"), "screen": ("Schirm", "Schirme"), "name": ("Name",)}


def test_only_the_first_row_is_a_head() -> None:
    content = b"dog\tHund\nsource\ttarget\nen\tde\n"

    assert read_rows(content, EN_DE, is_csv=False).targets == {"dog": ("Hund",), "source": ("target",), "en": ("de",)}


def test_quotes_of_csv_hold_delimiters_and_quotes_and_those_of_tsv_nothing() -> None:
    csv = read_rows(b'en;de\n"a; ""b""";"c, d"\n', None, is_csv=True)
    tsv = read_rows(b'en\tde\n"a"\tb\n', None, is_csv=False)

    assert csv.targets == {'a; "b"': ("c, d",)}
    assert tsv.targets == {'"a"': ("b",)}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("dog\tHund", r"^line 1: the first row must be codes of two languages, such as en and de, or the file's name"),
        ("en", r"^line 1: the first row must be codes"),
        ("source\ttarget\ndog\tHund", r"^line 1: the first row must be codes"),
        ("en\tde\tfr\na\tb\tc", r"^line 1: column 3 of the first row must be empty, or the code of the target"),
        ("en\tde\ndog", r"^line 2: must have at least 2 columns, source and target, not 1$"),
        ("en\tde\n#\ndog\t\tHunde", r"^line 3: the target must have 1 to 200 characters, not all white space, not 0$"),
        ("en\tde\n\tHund", r"^line 2: the source must have 1 to 200"),
        ("en\tde\na\tb\n" + "x" * 201 + "\tb", r"^line 3: the source must .* not 201$"),
        ("en\tde\na\tb\t" + "\t".join(map(str, range(32))), r"^line 2: a term must have at most 32 targets, not 33$"),
        ("en\tde\na\tb\nc\td\na\tc", r"^line 4: has the source of line 2, but another target; a term's targets"),
        ("en\tde\na\x00\tb", r"^line 2: the source must have no control characters"),
        ("en\tde\na\tb\tc\x00", r"^line 2: column 3 must have no control characters"),
        ("en\tde\n", r"^must have at least one term, not 0$"),
    ],
)
def test_a_fault_is_told_with_its_line(content: str, message: str) -> None:
    with pytest.raises(MalformedGlossary, match=message):
        read_rows(content.encode(), None, is_csv=False)


@pytest.mark.parametrize("is_csv", [True, False])
def test_lines_end_with_a_line_feed(is_csv: bool) -> None:
    content = b"en,de\rdog,Hund\r" if is_csv else b"en\tde\rdog\tHund\r"

    with pytest.raises(
        MalformedGlossary, match=r"^line 1: must end with a line feed, but has a carriage return alone$"
    ):
        read_rows(content, None, is_csv=is_csv)


@pytest.mark.parametrize("content", ['en,de\n"dog,Hund\ncat,Katze\n', 'en,de\n"do"g,Hund\n'])
def test_a_lone_quote_ends_with_its_line(content: str) -> None:
    with pytest.raises(MalformedGlossary, match=r"^line 2: a cell that begins with a quote must end with one"):
        read_rows(content.encode(), None, is_csv=True)


def test_a_row_and_the_number_of_rows_have_limits() -> None:
    with pytest.raises(MalformedGlossary, match=r"^line 2: must have at most 65536 bytes, not 10000006$"):
        read_rows(b"en\tde\ndog\t" + b"x" * 10_000_000 + b"y\n", None, is_csv=False)
    with pytest.raises(MalformedGlossary, match=r"^line 100002: a glossary must have at most 100000 terms"):
        read_rows(b"en\tde\n" + b"".join(b"%d\tx\n" % index for index in range(100_001)), None, is_csv=False)
    with pytest.raises(MalformedGlossary, match=r"^line 200001: a file must have at most 200000 lines"):
        read_rows(b"\n" * 200_001, None, is_csv=False)
