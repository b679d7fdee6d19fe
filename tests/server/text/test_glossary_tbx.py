"""Glossaries in TBX, read whole or refused with the line at fault."""

import time

import pytest

from server.text.glossary_entries import MalformedGlossary
from server.text.glossary_tbx import read_tbx

V2 = """<?xml version="1.0"?>
<!DOCTYPE martif SYSTEM "TBXcoreStructV02.dtd">
<martif type="TBX" xml:lang="en"><martifHeader><p>en</p></martifHeader><text><body>
<termEntry id="1"><note>An animal</note>
<langSet xml:lang="en"><tig><term>dog</term></tig></langSet>
<langSet xml:lang="de"><tig><term>Hund</term></tig>
<tig><term>Köter</term><termNote type="administrativeStatus">forbidden</termNote></tig></langSet>
</termEntry>
<termEntry id="2">
<langSet xml:lang="en"><ntig><termGrp><term>hard
  <hi>disk</hi></term></termGrp></ntig><tig><term>drive</term></tig></langSet>
<langSet xml:lang="DE"><tig><term>Festplatte &amp; mehr</term>
<termNote type="partOfSpeech">noun</termNote></tig></langSet>
</termEntry>
<termEntry id="3"><langSet xml:lang="en"><tig><term>cur</term></tig></langSet><langSet xml:lang="de"><tig>
<term>Köter</term><termNote type="administrativeStatus">obsolete</termNote></tig></langSet></termEntry>
</body></text></martif>"""
V3 = """<tbx style="dct" xml:lang="en" xmlns="urn:iso:std:iso:30042:ed-2" xmlns:min="http://www.tbxinfo.net/ns/min">
<text><body>
<conceptEntry id="1"><min:subjectField>rivers</min:subjectField>
<langSec xml:lang="en"><termSec><term>bank</term></termSec></langSec>
<langSec xml:lang="de"><termSec><term>Ufer</term></termSec><termSec><term>Strand</term>
<min:administrativeStatus>deprecatedTerm-admn-sts</min:administrativeStatus></termSec></langSec>
</conceptEntry>
<conceptEntry id="2"><langSec xml:lang="en"><termSec><term>bank</term></termSec></langSec>
<langSec xml:lang="de"><termSec><term>Bank</term></termSec></langSec></conceptEntry>
</body></text></tbx>"""


def entry(source: str, *targets: str) -> str:
    terms = "".join(f"<termSec><term>{each}</term></termSec>" for each in targets)
    sources = f'<langSec xml:lang="en"><termSec><term>{source}</term></termSec></langSec>'
    return f'<conceptEntry>{sources}<langSec xml:lang="de">{terms}</langSec></conceptEntry>'


def document(body: str, root: str = 'tbx xml:lang="en"', before: str = "") -> bytes:
    return f"{before}<{root}>{body}</{root.partition(' ')[0]}>".encode()


def test_both_versions_are_read_without_what_they_forbid() -> None:
    old, new = read_tbx(V2.encode(), None), read_tbx(b"\xef\xbb\xbf" + V3.encode(), None)

    assert (old.source, old.target) == ("en", "de")
    assert old.targets == {
        "dog": ("Hund",),
        "hard disk": ("Festplatte & mehr",),
        "drive": ("Festplatte & mehr",),
    }
    assert new.targets == {"bank": ("Ufer", "Bank")}, "both meanings will do"
    assert read_tbx(V3.encode("utf-16"), None) == new, "its byte order mark says what it is"


def test_the_name_of_the_file_chooses_among_many_languages() -> None:
    french = '<langSec xml:lang="fr"><termSec><term>chien</term></termSec></langSec></conceptEntry>'
    content = document(entry("dog", "Hund").replace("</conceptEntry>", french))

    assert read_tbx(content, ("fr", "en")).targets == {"chien": ("dog",)}
    with pytest.raises(MalformedGlossary, match=r"^line 1: must have 2 languages, .* not 3, or the file's name must"):
        read_tbx(content, None)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"^line 1: must be well-formed XML in UTF-8, not so: no element found"),
        (b"\x00\x01\x02", "^line 1: must be well-formed XML"),
        (V3.replace("Ufer", "Küste").encode("latin-1"), "^line 5: must be well-formed XML in UTF-8"),
        (V3[:-200].encode(), "must be well-formed XML"),
        (document(entry("a", "b"), "html"), r"^line 1: must be a TBX document: its root must be martif or tbx$"),
        (document(entry("a", "b"), "tbx"), r"^line 1: the root must have xml:lang, .* or the file's name must say"),
        (document("<langSec/>"), r"^line 1: a language must have xml:lang"),
        (document(""), r"^must have terms in two languages"),
        (document(entry("a")), r"^must have at least one term, not 0$"),
        (document(entry(" ", "b")), r"^line 1: a term must have 1 to 200 characters, not all white space, not 0$"),
        (document(entry("a", "b" * 201)), r"^line 1: a term must have 1 to 200 characters.* not 201$"),
        (document(entry("a", *map(str, range(33)))), r"^line 1: a term must have at most 32 targets, not 33$"),
        (document("<a>" * 64 + "</a>" * 64), r"^line 1: elements must be nested at most 64 deep"),
        (document("\n<!--" + "x" * 100_000), r"^line 2: a tag or a comment must have at most 65536 bytes"),
        (document(f'<a b="{"x" * 100_000}"/>'), r"^line 1: a tag or a comment must have at most 65536 bytes"),
        (document("&unknown;"), "^line 1: must be well-formed XML in UTF-8, not so: undefined entity"),
        (
            document("&unknown;", before='<!DOCTYPE tbx SYSTEM "/etc/passwd">'),
            "^line 1: must have no entities but those of XML itself",
        ),
        (
            document("&b;", before='<!DOCTYPE tbx [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>'),
            "^line 1: must have no DTD of its own",
        ),
        (
            document("&a;", before='<!DOCTYPE tbx [<!ENTITY a SYSTEM "/etc/passwd">]>'),
            "^line 1: must have no DTD of its own",
        ),
    ],
)
def test_a_fault_is_told_with_its_line(content: bytes, message: str) -> None:
    with pytest.raises(MalformedGlossary, match=message):
        read_tbx(content, None)


def test_a_long_text_within_a_term_is_refused_and_one_beside_terms_is_not_kept() -> None:
    long = "x" * 1_000_000
    comment = f"<!--{'x' * 60_000}-->"

    assert read_tbx(document(f"<note>{long}</note>{comment}" + entry("a", "b")), None).targets == {"a": ("b",)}
    with pytest.raises(MalformedGlossary, match=r"^line 1: a term must have 1 to 200 characters"):
        read_tbx(document(entry(long, "b")), None)


def test_there_are_at_most_so_many_terms() -> None:
    with pytest.raises(MalformedGlossary, match=r"^line 100002: a glossary must have at most 100000 terms"):
        read_tbx(document("\n" + "\n".join(entry(str(index), "x") for index in range(100_001))), None)


def test_an_entry_has_each_term_once_and_takes_linear_time() -> None:
    terms = {"en": "<tig><term>dog</term></tig>" * 20_000, "de": "<tig><term>Hund</term></tig>" * 20_000}
    sections = "".join(f'<langSet xml:lang="{code}">{tigs}</langSet>' for code, tigs in terms.items())
    content = document(f"<termEntry>{sections}</termEntry>")
    started = time.process_time()

    assert read_tbx(content, None).targets == {"dog": ("Hund",)}
    assert time.process_time() - started < 2, "seconds, and it takes a tenth of one"
