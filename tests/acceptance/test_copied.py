import re

import pytest

from tests.acceptance.copied import KINDS, is_copied, read_times


@pytest.mark.parametrize(
    ("kind", "part", "translation"),
    [
        ("url", "https://example.org/a", "Siehe https://example.org/a."),
        ("url", "https://example.org/a", "Was ist „https://example.org/a“?"),
        ("url", "www.example.org", "Ist www.example.org, meine Seite, (www) da?"),
        ("email", "tom+x@example.org", "An <tom+x@example.org>!"),
        ("code", "ISO 8601", "Die ISO 8601-Norm"),
        ("code", "C:\\Users", "Nach C:\\Users."),
        ("code", "v2.1.0", "Seit v2.1.0."),
        ("emoji", "👍", "Gut 👍!"),
        ("emoji", "👍🏽", "Gut👍🏽"),
        ("placeholder", "{name}", "{name}s Datei"),
        ("placeholder", "%s", "Die Datei „%s“"),
        ("placeholder", "<b>", "Auf <b>{x}</b> klicken"),
        ("placeholder", "$1", "Von $1."),
        ("number", "12,500", "Es kamen 12,500"),
        ("number", "12,500", "Es kamen 12.500."),
        ("number", "12,500", "Es kamen 12\u202f500 Leute"),
        ("number", "12,500", "Es kamen 12500 Leute"),
        ("number", "1,234.5", "1.234,5 Liter"),
        ("number", "10000", "10.000 Leute"),
        ("number", "6.8", "Stärke 6,8."),
        ("number", "-18", "Es waren −18 Grad"),
        ("number", "-18", "Es waren minus 18 Grad"),
        ("number", "15%", "15 % der Gäste"),
        ("number", "4.25%", "auf 4,25 Prozent"),
        ("number", "98", "98:87"),
        ("number", "16", "an der 16. Haltestelle"),
        ("price", "$89.95", "kostet $89.95."),
        ("price", "$89.95", "kostet 89,95 $."),
        ("price", "$89.95", "kostet 89,95 US-Dollar"),
        ("price", "$5", "5,00 $"),
        ("price", "$5.00", "5 Dollar"),
        ("price", "€3,450.75", "3.450,75\u00a0€"),
        ("price", "€30", "30,- €"),
        ("price", "20 euros", "20 Euro, bitte"),
        ("price", "£27", "27 britische Pfund"),
        ("price", "5,600 francs", "5.600 Franken"),
        ("price", "5,600 francs", "5600 Schweizer Franken"),
        ("price", "85 cents", "je 85 Cent."),
        ("time", "7 pm", "um 19 Uhr"),
        ("time", "7 pm", "um 19.00 Uhr"),
        ("time", "7 pm", "um 7 Uhr abends"),
        ("time", "7 pm", "heute Abend um 7 Uhr"),
        ("time", "7 pm", "um 7 p.m."),
        ("time", "9 am", "von 9 bis 17 Uhr"),
        ("time", "5 pm", "von 9 bis 17 Uhr"),
        ("time", "5 pm", "9-17 Uhr"),
        ("time", "5 am", "um 5 morgens"),
        ("time", "9 pm", "um 9 Uhr am Abend"),
        ("time", "12:15", "um 12:15 Uhr am Montag"),
        ("time", "12 pm", "um 12 Uhr am Bahnhof"),
        ("time", "7:30 pm", "um 19 Uhr 30"),
        ("time", "09:58", "um 9:58 Uhr"),
        ("time", "20:00", "um 8 Uhr abends"),
        ("time", "12 am", "um 0 Uhr"),
        ("time", "4:05 in the afternoon", "um 4:05 Uhr am Nachmittag"),
    ],
)
def test_what_means_the_same_is_copied(kind: str, part: str, translation: str) -> None:
    assert is_copied(kind, [part], translation)


@pytest.mark.parametrize(
    ("kind", "part", "translation"),
    [
        ("url", "https://example.org/a", "Siehe https://example.org/ab"),
        ("url", "https://example.org/a", "Siehe https://example.org/a/b"),
        ("url", "https://example.org/a", "Siehe https://example.org/a.html"),
        ("url", "https://example.org/a", "Siehe https://Example.org/a"),
        ("url", "example.org", "Siehe www.example.org"),
        ("email", "tom@example.org", "An x.tom@example.org"),
        ("email", "tom@example.co", "An tom@example.co.uk"),
        ("code", "B42", "B423"),
        ("code", "B42", "Am B 42"),
        ("code", "SN-1", "SN-1-77"),
        ("code", "2.14.0", "2,14,0"),
        ("emoji", "👍", "Gut 👍🏽"),
        ("emoji", "👩", "Die 👩‍⚕️"),
        ("emoji", "🎉", "🎉🎉"),
        ("placeholder", "{name}", "{{name}}"),
        ("placeholder", "{name}", "${name}"),
        ("placeholder", "{name}", "{ name }"),
        ("placeholder", "{name}", "{Name}"),
        ("placeholder", "%s", "%%s"),
        ("placeholder", "$1", "$12"),
        ("number", "12,500", "12,5"),
        ("number", "12,500", "112.500"),
        ("number", "2024", "2.024"),
        ("number", "6.8", "6,80"),
        ("number", "6.8", "68"),
        ("number", "-18", "18 Grad"),
        ("number", "18", "Es waren -18 Grad"),
        ("number", "18", "Es waren minus 18 Grad"),
        ("number", "15%", "15 der Gäste"),
        ("number", "15", "15 % der Gäste"),
        ("number", "37", "siebenunddreißig"),
        ("price", "$89.95", "89,95 €"),
        ("price", "$89.95", "89 $"),
        ("price", "$89.95", "89,95"),
        ("price", "$5", "$5,50"),
        ("price", "$5", "15 $"),
        ("price", "$1,250", "1,25 $"),
        ("price", "€30", "30 Cent"),
        ("time", "7 pm", "um 7 Uhr"),
        ("time", "7 pm", "um 7"),
        ("time", "7 am", "um 7 Uhr abends"),
        ("time", "7 am", "19 Uhr"),
        ("time", "7:30 pm", "um halb acht"),
        ("time", "7:30 pm", "um 19 Uhr"),
        ("time", "10 am", "10 Leute"),
        ("time", "2:17 am", "2,17"),
    ],
)
def test_what_means_something_else_is_not(kind: str, part: str, translation: str) -> None:
    assert not is_copied(kind, [part], translation)


def test_each_part_must_come_as_often_as_it_is_listed() -> None:
    assert is_copied("emoji", ["👏", "👏"], "Bravo 👏👏")
    assert not is_copied("emoji", ["👏", "👏"], "Bravo 👏")
    assert not is_copied("placeholder", ["%s"], "%s und %s")
    assert not is_copied("url", ["www.example.org", "www.example.net"], "www.example.org")


def test_times_are_read_out_of_running_text() -> None:
    assert read_times("Von 9 bis 17:30 Uhr, ICE 577, 12,50 €, in 3 Tagen um 8.05") == [540, 1050, 485]


@pytest.mark.parametrize(
    ("kind", "part", "expected"),
    [
        ("numbre", "1", f'there is no kind "numbre"; there are {", ".join(KINDS)}'),
        ("number", "one", '"one" is not a number'),
        ("price", "5 cows", '"5 cows" is not a price'),
        ("time", "soon", '"soon" is not a time'),
    ],
)
def test_a_part_that_does_not_read_as_its_kind_is_refused(kind: str, part: str, expected: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        is_copied(kind, [part], "")
