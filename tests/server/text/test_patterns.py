"""Tests of what no network should rewrite, as patterns find it."""

import re
import time
from pathlib import Path

import pytest

from server.text.patterns import _PATTERNS, find_emphasis, find_parts

DATA = Path(__file__).parents[2] / "data"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Then $x^2 + y_1 = 3$ holds, $\\alpha$ and $a=b$.", ["$x^2 + y_1 = 3$", "$\\alpha$", "$a=b$"]),
        ("See \u00a7 5a, \u00a7\u00a7 12 and Art. 3.", ["\u00a7 5a", "\u00a7\u00a7 12", "Art. 3"]),
        ("If x \u2264 5 then y = 3x\u00b2 + 2, $6 or a=b.", ["x \u2264 5", "y = 3x\u00b2 + 2", "a=b"]),
        (
            "See https://example.org/a_b?q=1&r=ü#top, or www.example.com.",
            ["https://example.org/a_b?q=1&r=ü#top", "www.example.com"],
        ),
        ("(museum.example.de/plan)", ["museum.example.de/plan"]),
        ("Mail to a.b-c@mail.example.org.", ["a.b-c@mail.example.org"]),
        ("Open report_2.pdf or notes.txt!", ["report_2.pdf", "notes.txt"]),
        ("It is in /etc/app/config.yaml.", ["/etc/app/config.yaml"]),
        (r"Copy C:\Users\Public, please.", [r"C:\Users\Public"]),
        ("<b>Save</b> &amp; go", ["<b>", "</b>", "&amp;"]),
        ("Hello {name}, {{ count }} of ${total}", ["{name}", "{{ count }}", "${total}"]),
        ("%s has %1$d files, %(done).1f done", ["%s", "%1$d", "%(done).1f"]),
        ("Set $t(a.b) to :name, __NAME__ or a:b.", ["$t(a.b)", ":name", "__NAME__"]),
        ("The #st day, the #1st, # and #.", ["#", "#1st", "#", "#"]),
        ("Set $HOME and [NAME] to `sudo reboot`.", ["$HOME", "[NAME]", "`sudo reboot`"]),
        ("@anna fixed #42 in v2.3.1", ["@anna", "#42", "v2.3.1"]),
        ("Order AB-1234, voucher SUMMER24.", ["AB-1234", "SUMMER24"]),
        ("Error 0x80070057 in 9f8e7d6c", ["0x80070057", "9f8e7d6c"]),
        ("max_tokens is too small", ["max_tokens"]),
        ("getUserName sets maxRows", ["getUserName", "maxRows"]),
        ("en", ["en"]),
        ("torch.nn", ["torch.nn"]),
        ("So . . . what now .", [". . ."]),
        ("He is 5 ft 3 in tall, or 5'10\" or 5 in.", ["5 ft 3 in", "5'10\""]),
        ("Use $ here and $x there, or $name.", ["$", "$x", "$name"]),
        ("It is $5 and $, or 5 \u20ac and \u20ac.", ["$", "\u20ac"]),
        ("Call +49 30 901820.", ["+49 30 901820"]),
        ("It is 2025-03-07, on 192.168.0.1 or ./run.sh", ["2025-03-07", "192.168.0.1", "./run.sh"]),
        ("Use example.com:8080/x or shop.com.au", ["example.com:8080/x", "shop.com.au"]),
        ("{temp, number} and {{ a | b }} of [USER_NAME]", ["{temp, number}", "{{ a | b }}", "[USER_NAME]"]),
        ("\uf0b7 Mail a@b.org", ["\uf0b7", "a@b.org"]),
        ("Die #MeToo-Debatte", ["#MeToo"]),
        ("libfoo.so.6 is missing", ["libfoo.so.6"]),
        ("I am 5'11\" tall, or 5\u2032 11\u2033", ["5'11\"", "5\u2032 11\u2033"]),
        ("if a && b || c == d -> e", ["&&", "||", "==", "->"]),
        ("a | be = c ~ d ^ e \\ f", ["|", "=", "~", "^", "\\"]),
        ("--- a *** b === c", ["***", "==="]),
        (r"a \n b, \tX and \new", [r"\n", r"\t"]),
        ("Open 9am - 8pm, 9:30 to 11 a.m. or 5\u20137 p.m.", ["9am - 8pm", "9:30 to 11 a.m.", "5\u20137 p.m."]),
        ("Von 8 bis 15 Uhr, 7.30\u20139 Uhr", ["8 bis 15 Uhr", "7.30\u20139 Uhr"]),
        ("It costs $7\u2013$32, 3 + 88 = 91", ["$7\u2013$32", "3 + 88 = 91"]),
        ("$$$ or $€£5, ££", ["$$$", "££"]),
        ("Thanks :smile: and :+1: at 10:30:15", [":smile:"]),
        ("Run it with --dry-run now", ["--dry-run"]),
        (
            "See https://a.org/wiki/M_(planet), (a.com/b_(c)d) (https://a.io/b).",
            ["https://a.org/wiki/M_(planet)", "a.com/b_(c)d", "https://a.io/b"],
        ),
        (
            "Call +1 (555) 123-4567, +49 (0)30 901820, (555) 123-4567 or (030) 901820.",
            ["+1 (555) 123-4567", "+49 (0)30 901820", "(555) 123-4567", "(030) 901820"],
        ),
        ("The job 550e8400-e29b-41d4-a716-446655440000", ["550e8400-e29b-41d4-a716-446655440000"]),
        ("Use 192.168.0.1:8080. Changes in 1.2.3:", ["192.168.0.1:8080", "1.2.3"]),
        (
            r"Run C:\Program Files (x86)\App\app.exe or C:\Users to D:\My Files\x",
            [r"C:\Program Files (x86)\App\app.exe", r"C:\Users", r"D:\My Files\x"],
        ),
        (r"Move C:\Temp, and D:\a or b\c", [r"C:\Temp", r"D:\a"]),
        (r"In C:\Windows\ or C:\Temp\. See C:\.", ["C:\\Windows\\", "C:\\Temp\\"]),
        (r"D:\Herr der Ringe\a.mkv, D:\Fotos vom Urlaub\x", [r"D:\Herr der Ringe\a.mkv", r"D:\Fotos vom Urlaub\x"]),
        (r"C:\Documents and Settings\All Users\x", [r"C:\Documents and Settings\All Users\x"]),
        ("Hi <%= a.b(c) -%>, <%- n %> of <%=x%>", ["<%= a.b(c) -%>", "<%- n %>", "<%=x%>"]),
        ("请联系support@example.com，谢谢", ["support@example.com"]),
        ("打开report.pdf或/etc/app/x看", ["report.pdf", "/etc/app/x"]),
        ("访问https://example.com，或 https://a.io/b，了解更多", ["https://example.com", "https://a.io/b"]),
        ("访问www.example.com了解", ["www.example.com"]),
        ("https://ja.example.org/wiki/日本語?q=本 はここ", ["https://ja.example.org/wiki/日本語?q=本"]),
        ("共%d个文件，设置max_size的值和$path。", ["%d", "max_size", "$path"]),
        ("見て https://a.org/wiki/佐々木東京2020五 を", ["https://a.org/wiki/佐々木東京2020五"]),
        (
            "https://a.org/wiki/2008年夏季奥林匹克 https://a.org/JR東日本?q=1",
            ["https://a.org/wiki/2008年夏季奥林匹克", "https://a.org/JR東日本?q=1"],
        ),
        (
            "https://a.org/42에서는 https://a.org/wiki/b了解更多 https://a.org/A1了解更多",
            ["https://a.org/42", "https://a.org/wiki/b", "https://a.org/A1"],
        ),
        (
            "#AI绘画 和 #123问题, #general频道发布消息, #React를 <%- rescue %>",
            ["#AI绘画", "#123", "#general", "#React"],
        ),
        ("<%- next.title %> Delete %ss, %ds", ["<%- next.title %>", "%ds"]),
        ("订单AB-1234已发货给@anna和 @张三 #日本語", ["AB-1234", "@anna", "@张三", "#日本語"]),
        ("파일 report.pdf를 여세요", ["report.pdf"]),
        ("Datei Übersicht_März.pdf an straße@münchen.de", ["Übersicht_März.pdf", "straße@münchen.de"]),
        ("%dx%d pixels in %ds, %dms, %dMB, %dkm", ["%dx", "%d", "%ds", "%dms", "%dMB"]),
        ("On 2024-05-01T10:00:00Z or 2024-05-01T10:00+02:00", ["2024-05-01T10:00:00Z", "2024-05-01T10:00+02:00"]),
        ("See Https://a.org or HTTP://A.ORG now", ["Https://a.org", "HTTP://A.ORG"]),
        ("Great 👍🏽👩‍🚀 and 🇩🇪!", ["👍🏽👩‍🚀", "🇩🇪"]),
    ],
)
def test_parts_are_found_where_they_stand(text: str, parts: list[str]) -> None:
    assert [text[start:end] for start, end in find_parts(text)] == parts


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5 (x), or $6 and $7.",
        "It costs $1,250.50, or 12,99 €, at 7:30 pm on 3/4.",
        "100% sure: 50 % of 2.5 km, and/or he/she, e.g. the U.S.",
        "COVID-19, the 1990s, a 21-year-old, 20th, F-16, 10km",
        "it's 5 o'clock (or six); 2 + 2, 5 - 3 -- all of it ... yes",
        "Wait... what?! No – yes.",
        "Am 24.12.2024 oder 1.3.25 für 1.250.000,50 €, 10 €/Monat, Tag /Nacht, Kunde(in)/Gast",
        "Ich hab`s gesehen, er hat`s auch. It`s John`s car.",
        "Lehrer_innen, 100-METER-LAUF, [MUSIC] {Please wait until done}",
        "It has (555) or (2020) 123 456 of them, 100 %sure, at 1.2.3:4",
        "I saw it.It was there, look.at it.so what?",
    ],
)
def test_what_languages_write_in_different_ways_is_no_part(text: str) -> None:
    assert list(find_parts(text)) == []


def test_no_part_begins_where_the_patterns_are_not_tried() -> None:
    sentences = (DATA / "copying.tsv").read_text().splitlines() + (DATA / "odd_characters.txt").read_text().splitlines()
    texts = [line.split("\t")[1] for line in sentences]
    texts += [text.replace(" ", glue) for text in texts for glue in ("", "a", "Z", "5", "_", ", ", "\u00a0")]
    pattern = re.compile("|".join(_PATTERNS))

    for text in texts:
        assert list(find_parts(text)) == [match.span() for match in pattern.finditer(text)]


def test_emphasis_in_a_long_word_takes_linear_time() -> None:
    started = time.process_time()
    assert list(find_emphasis("*__a" * 8192)) == [(0, 1)]

    assert time.process_time() - started < 0.3, "seconds, and it takes a fiftieth of that"
