import pytest

from babelserve.formats.document import HTML, BadFile
from babelserve.formats.subtitles import read_srt, read_vtt
from tests.babelserve.formats.files import translated
from tests.babelserve.scripted_server import upper

SRT = """\ufeff1\r
00:00:01,000 --> 00:00:02,500  X1:40\r
A man rides\r
 a red bike\r
home.\r
\r
2
00:00:03,000 --> 00:00:04,000
- Who is it?
- Me!

3
00:00:05,000 --> 00:00:06,000

4
00:00:07,000 --> 00:00:08,000
1234
"""
VTT = """WEBVTT - title

NOTE not
translated

STYLE
::cue { color: red }

intro
00:01.000 --> 00:02.000 line:0 align:left
<v Mary Ann>Hello <i>you
there</i> &amp; all

00:03.000 --> 00:04.000
End"""


def test_the_lines_of_a_cue_are_one_text() -> None:
    document = read_srt(SRT.encode())

    assert document.mime_type == HTML
    assert document.texts == ["A man rides a red bike home.", "Who is it?", "Me!"]


def test_everything_but_the_text_of_cues_stays_byte_for_byte() -> None:
    assert translated(read_srt(SRT.encode()), lambda text: text) == SRT.encode()
    assert translated(read_vtt(VTT.encode()), lambda text: text) == VTT.encode()
    assert translated(read_vtt(VTT.replace("\n", "\r").encode()), lambda text: text) == VTT.replace("\n", "\r").encode()


def test_translations_are_wrapped_to_as_many_lines() -> None:
    texts = ["Ein Mann fährt auf einem roten Rad nach Hause.", "Wer ist da?", "Ich!"]
    written = read_srt(SRT.encode()).write(texts, "de")[0].decode()

    expected = SRT.replace(
        "A man rides\r\n a red bike\r\nhome.", "Ein Mann fährt\r\nauf einem roten\r\nRad nach Hause."
    )
    assert written == expected.replace("Who is it?", texts[1]).replace("Me!", texts[2])


def test_fewer_words_than_lines_give_fewer_lines() -> None:
    assert read_srt(SRT.encode()).write(["Heim", None, None], "de")[0].decode() == SRT.replace(
        "A man rides\r\n a red bike\r\nhome.", "Heim"
    )
    written = read_srt(SRT.encode()).write(["Donaudampfschifffahrtsgesellschaft a b", None, None], "de")[0]
    assert b"Donaudampfschifffahrtsgesellschaft\r\na\r\nb\r\n" in written


def test_vtt_is_sent_as_html_and_no_tag_is_broken() -> None:
    document = read_vtt(VTT.encode())

    assert document.mime_type == HTML
    assert document.texts == ["<v Mary Ann>Hello <i>you there</i> &amp; all", "End"]
    expected = VTT.replace("Hello", "HELLO").replace("you\nthere", "YOU\nTHERE").replace("all\n", "ALL\n")
    assert translated(document, upper) == expected.replace("End", "END").encode()


def test_hostile_text_takes_time_in_proportion() -> None:
    text = "<" * 300_000 + "a\nb"

    assert translated(read_srt(f"0:01,0 --> 0:02,0\n{text}".encode()), upper).endswith(b"<A\nB")
    for piece in ("\u0e40", "\u5b57(", "<i>("):
        text = "0:01,0 --> 0:02,0\na b\n\n0:02,0 --> 0:03,0\nc"
        written = read_srt(text.encode()).write([piece * 100_000, None], "th")[0].decode()
        assert written.count(piece[-1]) == 100_000
    for piece in ("A: ", "(", "[", "<i ", "-", "AB ", "&amp;", "Ab", "Ab:\n"):
        text = f"0:01,0 --> 0:02,0\n{piece * 100_000}ab"
        assert translated(read_srt(text.encode()), lambda text: text).decode() == text


def test_other_files_are_refused() -> None:
    with pytest.raises(BadFile, match="is no SRT: it has no time codes"):
        read_srt(b"hello\n")
    with pytest.raises(BadFile, match="is no WebVTT: it does not begin with WEBVTT"):
        read_vtt(SRT.encode())
    with pytest.raises(BadFile, match="is not UTF-8"):
        read_srt("1\n0:01,0 --> 0:02,0\nä".encode("latin-1"))
    assert read_srt(b"\n").texts == []


def test_times_within_a_cue_of_webvtt_stay() -> None:
    source = b"WEBVTT\n\n00:01.000 --> 00:02.000\nWe go <00:01.500>to the <00:00:01.700>beach.\n"
    document = read_vtt(source)

    assert document.texts == ['We go <wbr t="00:01.500">to the <wbr t="00:00:01.700">beach.']
    assert document.write(document.texts, "de") == (source, [])


def test_classes_of_webvtt_are_attributes_of_a_tag_that_html_can_pair() -> None:
    source = "WEBVTT\n\n00:01.000 --> 00:02.000\n<v.loud Anna>Hi <c.red.bg_\u00fc>there</c>, <i.a>you</i></v>\n"
    document = read_vtt(source.encode())

    assert document.texts == ['<v x=".loud" Anna>Hi <c x=".red.bg_\u00fc">there</c>, <i x=".a">you</i></v>']
    written = translated(document, lambda text: text.replace("Hi", "Oh")).decode()
    assert written == source.replace("Hi", "Oh")


def test_a_sign_of_comparison_in_webvtt_is_no_tag_with_a_class() -> None:
    source = b"WEBVTT\n\n00:01.000 --> 00:02.000\nif a <b.c and d\n"

    assert read_vtt(source).texts == ["if a <b.c and d"]


def test_text_behind_an_empty_line_is_of_its_cue_in_srt() -> None:
    source = b"1\n0:01,0 --> 0:02,0\n\nHello.\n \nYou!\n\n2\n0:03,0 --> 0:04,0\n\n3\n0:05,0 --> 0:06,0\nBye.\n"
    document = read_srt(source)

    assert document.texts == ["Hello.", "You!", "Bye."]
    assert translated(document, upper) == source.replace(b"Hello", b"HELLO").replace(b"You", b"YOU").replace(
        b"Bye", b"BYE"
    )
    assert read_vtt(b"WEBVTT\n\n0:01.0 --> 0:02.0\n\nNOTE Hello.\n").texts == []


def test_the_number_of_a_cue_without_an_empty_line_before_it_is_no_text() -> None:
    source = b"1\r\n0:01,0 --> 0:02,0\r\nIn\r\n1999\r\n 2 \r\n0:03,0 --> 0:04,0\r\nBye.\r\n"
    document = read_srt(source)

    assert document.texts == ["In 1999", "Bye."]
    assert translated(document, upper) == source.replace(b"In", b"IN").replace(b"Bye", b"BYE")


@pytest.mark.parametrize("identifier", ["cue2", "Intro-2", "\ufeff2"])
def test_an_identifier_between_an_empty_line_and_the_times_is_no_text(identifier: str) -> None:
    cues = "1\n0:01,0 --> 0:02,0\nwe went to the\n\n{}\n0:03,0 --> 0:04,0\nhouse yesterday.\n0:05,0 --> 0:06,0\nBye.\n"
    document = read_srt(cues.format(identifier).encode())

    assert document.texts == ["we went to the house yesterday.", "Bye."]
    assert f"\n\n{identifier}\n0:03" in translated(document, upper).decode()


def test_each_speaker_of_a_cue_has_a_text() -> None:
    dashes = "- Hello, how\nare you?\n- Fine.\n\u2013 And you?\n"
    document = read_srt(f"1\n0:01,0 --> 0:02,0\n{dashes}".encode())
    assert document.texts == ["Hello, how are you?", "Fine.", "And you?"]
    assert document.write(["A b c d", "E", None], "")[0].decode().endswith("\n- A b\nc d\n- E\n\u2013 And you?\n")

    voices = "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Anna>Come\nhere!</v>\n<v.loud Bob>No.\n"
    document = read_vtt(voices.encode())
    assert document.texts == ["<v Anna>Come here!</v>", '<v x=".loud" Bob>No.']
    assert translated(document, lambda text: text) == voices.encode()


@pytest.mark.parametrize(
    ("lines", "texts"),
    [
        (
            "Peter: He took\na tablet.\nAnna-Lou: How many?",
            ["Peter: He took a tablet.", "Anna-Lou: How many?"],
        ),
        ("\u00c9va M. O'Hara: Yes.\n<i>Nurse #2: No.</i>", ["\u00c9va M. O'Hara: Yes.", "<i>Nurse #2: No.</i>"]),
        ("Anna:\nYes.\nPeter:\nNo.", ["Anna: Yes.", "Peter: No."]),
        ("ANNA: Yes.\nPeter: No.", ["Yes.", "Peter: No."]),
        ("We need one thing:\nAnna: she knows\nall.", ["We need one thing: Anna: she knows all."]),
        ("He said to me: go.\nI said to him: no.", ["He said to me: go. I said to him: no."]),
        ("From Monday 8:30 to\nFriday 9:30 here", ["From Monday 8:30 to Friday 9:30 here"]),
    ],
)
def test_lines_with_a_name_are_speakers_where_a_cue_has_two(lines: str, texts: list[str]) -> None:
    source = f"0:01,0 --> 0:02,0\n{lines}\n".encode()
    document = read_srt(source)

    assert document.texts == texts
    assert document.write(texts, "de") == (source, [])


@pytest.mark.parametrize(
    ("line", "sent", "written"),
    [
        ("ANNA-LOU: Come & see", "Come &amp; see", "ANNA-LOU: COME & SEE"),
        ("- MAN #2:\nCome", "Come", "- MAN #2:\nCOME"),
        ("{\\an8}(a <i>door</i> closes)", "a <i>door</i> closes", "{\\an8}(A <i>DOOR</i> CLOSES)"),
        ("[door] closes", "[door] closes", "[DOOR] CLOSES"),
        ("<FONT color='red'>a < b", "<FONT color='red'>a &lt; b", "<FONT color='red'>A < B"),
        ("-5 degrees", "-5 degrees", "-5 DEGREES"),
        ("At 12:30 OK: go", "At 12:30 OK: go", "AT 12:30 OK: GO"),
    ],
)
def test_dashes_names_and_brackets_are_not_sent(line: str, sent: str, written: str) -> None:
    document = read_srt(f"0:01,0 --> 0:02,0\n{line}\n".encode())

    assert document.texts == [sent]
    assert translated(document, upper).decode() == f"0:01,0 --> 0:02,0\n{written}\n"


def test_cues_that_break_a_sentence_are_one_text() -> None:
    source = (
        "1\n0:01,0 --> 0:02,0\nWe went to the\nold town,\n\n"
        "2\n0:03,0 --> 0:04,0\nand slept.\n\n3\n0:05,0 --> 0:06,0\nYes\n"
    )
    document = read_srt(source.encode())

    assert document.texts == ["We went to the old town, and slept.", "Yes"]
    written = document.write(["Wir gingen in die Altstadt und schliefen.", None], "de")[0].decode()
    expected = source.replace("We went to the\nold town,", "Wir gingen in\ndie Altstadt und")
    assert written == expected.replace("and slept.", "schliefen.")
    assert document.write(["Ja", None], "de")[0].decode() == source.replace("We went to the\nold town,", "Ja").replace(
        "and slept.", ""
    )
    assert translated(document, lambda text: text) == source.encode()


@pytest.mark.parametrize(
    ("translation", "first", "second"),
    [
        ("我们去了老城，然后睡了一觉。", "我们去了\n老城，然", "后睡了一觉。"),
        ("我们用 iPhone<i>（手机）</i>睡。", "我们用 iPhone\n<i>（手", "机）</i>睡。"),
        ("コーヒーを<i>「ちょっと」</i>！", "コーヒーを\n<i>「ちょっ", "と」</i>！"),
        ("กินน้ำชา", "กิน\nน้ำ", "ชา"),
        ("กินข้าว น้ำชา", "กินข้าว", "น้ำชา"),
    ],
)
def test_languages_without_blanks_are_broken_between_characters(translation: str, first: str, second: str) -> None:
    source = "0:01,0 --> 0:02,0\n{}\n\n0:03,0 --> 0:04,0\n{}\n"
    document = read_srt(source.format("We went\nto the town", "and slept there.").encode())

    assert document.write([translation], "zh")[0].decode() == source.format(first, second)


@pytest.mark.parametrize("between", [("town.", "and"), ("town", "And"), ("town\u2026", "and"), ("<i>town</i>", "and")])
def test_other_cues_are_texts_of_their_own(between: tuple[str, str]) -> None:
    source = "0:01,0 --> 0:02,0\nThe {}\n\n0:03,0 --> 0:04,0\n{} so\n".format(*between)

    assert len(read_srt(source.encode()).texts) == 2


def test_captions_without_punctuation_are_joined_by_few() -> None:
    source = "".join(f"0:{second},0 --> 0:{second},9\nall small\n\n" for second in range(10, 20))

    assert [text.count("small") for text in read_srt(source.encode()).texts] == [4, 4, 2]
