"""Hand-made XLIFF documents, of both versions."""

import random

import pytest

from server.text.markup.document import MalformedDocument
from server.text.markup.xliff import escape, read_xliff
from tests.server.text.markup.identity import identity

OLD = '<xliff version="1.2"><file><body><trans-unit id="1">{}</trans-unit></body></file></xliff>'
NEW = '<xliff version="2.1"><file><unit id="1"><segment>{}</segment></unit></file></xliff>'


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        (
            "\n <source>One &amp; two</source>\n",
            '\n <source>One &amp; two</source><target state="translated">One &amp; two</target>\n',
        ),
        (
            '<source>One</source>\n <target xml:lang="de" state="new">Eins</target>',
            '<source>One</source>\n <target xml:lang="de" state="translated">One</target>',
        ),
        ("<source>One</source><!-- c --><target/>", "<source>One</source><!-- c --><target>One</target>"),
        (
            "<source>One</source><seg-source><mrk>One</mrk></seg-source>",
            '<source>One</source><seg-source><mrk>One</mrk></seg-source><target state="translated">One</target>',
        ),
        (
            "<source> One</source><alt-trans><source>On</source></alt-trans>",
            '<source> One</source><target state="translated"> One</target><alt-trans><source>On</source></alt-trans>',
        ),
        ("<source/>", "<source/>"),
        *(
            (f"<source>{source}</source>", f'<source>{source}</source><target state="translated">{target}</target>')
            for source, target in [
                ("One.&#10;", "One.&#10;"),
                ("&#x0A; \n One &#32;<g/>", "&#x0A; \n One &#32;<g/>"),
                ("<![CDATA[ &#10; One\n]]>", " &amp;#10; One\n"),
            ]
        ),
    ],
)
def test_a_translation_becomes_the_target_of_its_unit(unit: str, expected: str) -> None:
    document = read_xliff(OLD.format(unit))

    assert identity(document) == OLD.format(expected)


def test_a_segment_of_xliff_2_has_no_state_in_its_target() -> None:
    matches = "<mtc:matches><mtc:match><source>On</source></mtc:match></mtc:matches>"
    document = read_xliff(matches + NEW.format("<source>One</source>"))

    assert identity(document) == matches + NEW.format("<source>One</source><target>One</target>")
    assert [block.text for block in document.blocks] == ["One"]


def test_elements_may_have_the_prefix_of_xliff_and_no_other() -> None:
    uri = "urn:oasis:names:tc:xliff:document:1.2"
    unit = '<a:source>One <a:g id="1">two</a:g></a:source>{}<b:source>x</b:source>'
    document = (
        f"<a:xliff xmlns:a='{uri}' xmlns:b=\"urn:b\"><a:file><a:body><a:trans-unit>"
        f"{unit}</a:trans-unit><b:trans-unit>{unit}</b:trans-unit></a:body></a:file></a:xliff>"
    )

    read = read_xliff(document.format("", ""))
    assert [block.text for block in read.blocks] == ["One two"]
    assert [tag.partner for tag in read.blocks[0].tags] == [1, 0]
    target = '<a:target state="translated">One <a:g id="1">two</a:g></a:target>'
    assert identity(read) == document.format(target, "")
    new = document.replace("{}", "<a:target>x</a:target>", 1).format("")
    assert identity(read_xliff(new)) == document.format(target.replace(' state="translated"', ""), "")
    with pytest.raises(MalformedDocument, match="must be well-formed"):
        read_xliff(document.format("", "").replace("</a:body>", "</body>"))


def test_what_is_marked_is_not_translated() -> None:
    document = '<xliff><file translate="no"><trans-unit><source>One</source></trans-unit></file></xliff>'
    inner = (
        '<xliff><group translate="no"><trans-unit translate="yes"><source>One</source></trans-unit>'
        "<trans-unit><source>two</source></trans-unit></group></xliff>"
    )

    assert read_xliff(document).blocks == ()
    assert [block.text for block in read_xliff(inner).blocks] == ["One"]


@pytest.mark.parametrize(
    "unit",
    [
        '<trans-unit id="1" approved="yes"><source>One</source><target>Eins</target></trans-unit>',
        "<trans-unit id='1' approved='yes' translate='yes'><source>One</source></trans-unit>",
        '<trans-unit id="1"><source>One</source><target state="final">Eins</target></trans-unit>',
        '<trans-unit><source>One</source><seg-source/> <target state="signed-off">Eins</target></trans-unit>',
        '<unit id="1"><segment state="final"><source>One</source><target>Eins</target></segment></unit>',
    ],
)
def test_what_is_approved_or_final_stays_as_it_is(unit: str) -> None:
    other = '<trans-unit id="2" approved="no"><source>Two</source><target state="translated">Zwei</target></trans-unit>'
    document = read_xliff(f"<xliff>{unit}{other}</xliff>")

    assert [block.text for block in document.blocks] == ["Two"]
    assert identity(document) == f"<xliff>{unit}{other.replace('Zwei', 'Two')}</xliff>"


@pytest.mark.parametrize(
    "segment",
    ['<segment state="reviewed"><source>One</source></segment>', "<segment><source>One</source></segment>"],
)
def test_other_states_and_final_segments_beside_them_keep_nothing_from_being_translated(segment: str) -> None:
    final = '<segment state="final"><source>Two</source><target>Zwei</target></segment>'

    assert [block.text for block in read_xliff(f"<xliff><unit>{final}{segment}</unit></xliff>").blocks] == ["One"]


@pytest.mark.parametrize(
    ("source", "text", "partners", "kept"),
    [
        ('a <g id="1">b <x id="2"/></g> c', "a b \U000f0000 c", [1, 0], ['<x id="2"/>']),
        ('a <pc id="1">b</pc> <ph id="2"/>c', "a b \U000f0000c", [1, 0], ['<ph id="2"/>']),
        ('a <bpt id="1">&lt;b&gt;</bpt>b<ept id="1">&lt;/b&gt;</ept> c', "a b c", [1, 0], []),
        ('a <sc id="1"/>b <sc id="2"/>c<ec startRef="1"/> d<ec startRef="2"/> e', "a b c d e", [2, None, 0, None], []),
        ('a <bx id="3" rid="1"/>b <ex id="4" rid="1"/> c', "a b  c", [1, 0], []),
        ("a <ph id='1'>%s<sub>x</sub></ph> c", "a \U000f0000 c", [], ["<ph id='1'>%s<sub>x</sub></ph>"]),
        ('a <mrk mtype="protected">b</mrk> c', "a \U000f0000 c", [], ['<mrk mtype="protected">b</mrk>']),
        ('a <mrk translate="no">b</mrk> c', "a \U000f0000 c", [], ['<mrk translate="no">b</mrk>']),
        ('a <mrk mtype="term">b</mrk> c', "a b c", [1, 0], []),
        ("a\n  b &#x26; <![CDATA[<c>]]>", "a b & <c>", [], []),
        ("a <!-- x --> b", "a  b", [None], []),
    ],
)
def test_codes_are_tags(source: str, text: str, partners: list[int | None], kept: list[str]) -> None:
    [block] = read_xliff(NEW.format(f"<source>{source}</source>")).blocks

    assert block.text == text
    assert [tag.partner for tag in block.tags] == partners
    assert list(block.kept.values()) == kept


def test_white_space_is_kept_where_the_document_says_so() -> None:
    unit = '<xliff><trans-unit xml:space="preserve"><source>One\n  two</source></trans-unit></xliff>'

    assert [block.text for block in read_xliff(unit).blocks] == ["One\n  two"]


@pytest.mark.parametrize(
    "document", ["<a>", "</a>", "<a></b>", "<a", "a < b", '<a b="></a>', "<!-- a", "<a><b></a></b>"]
)
def test_what_is_no_xml_is_refused(document: str) -> None:
    with pytest.raises(MalformedDocument, match=r"^must be well-formed XML, but at character \d+ "):
        read_xliff(document)


def test_references_are_those_of_xml_and_others_are_kept_as_words() -> None:
    source = "A &product; &#x9F;&#65;&amp; &eacute; dog &#xD800;&#000000000065;."
    document = read_xliff(
        f'<!DOCTYPE x [<!ENTITY product "b">]><xliff><trans-unit><source>{source}</source></trans-unit></xliff>'
    )

    (block,) = document.blocks
    assert block.text == "A \U000f0000 \x9fA& \U000f0001 dog \ufffdA."
    assert list(block.kept.values()) == ["&product;", "&eacute;"]
    assert ">A &product; \x9fA&amp; &eacute; dog \ufffdA.</target>" in identity(document)


def test_documents_without_units_come_back() -> None:
    document = '<?xml version="1.0"?>\r\n<!DOCTYPE xliff [<!ENTITY a "b">]>\n<xliff a = \'b > c\'>x</xliff >\n'

    assert identity(read_xliff(document)) == document


@pytest.mark.parametrize("document", ["", "hello", "<html><body>Hi there</body></html>"])
def test_what_is_no_xliff_is_refused(document: str) -> None:
    with pytest.raises(MalformedDocument, match="has no element <xliff>"):
        read_xliff(document)


def test_random_documents_come_back_or_are_refused() -> None:
    choose = random.Random(0)
    pieces = (
        "<a> </a> <source> </source> <segment> </segment> <target/> <target> </target> <pc> </pc> <ph/> One < <!-- -->"
    )
    num_read = 0
    for _ in range(5000):
        document = f"<xliff>{''.join(choose.choices(pieces.split(' '), k=choose.randrange(1, 8)))}</xliff>"
        try:
            read = read_xliff(document)
        except MalformedDocument:
            continue
        num_read += 1
        assert identity(read_xliff(identity(read))) == identity(read)  # finds the targets that it made

    assert num_read > 100


def test_plain_text_is_escaped() -> None:
    assert escape('a < b & "c" > d') == 'a &lt; b &amp; "c" &gt; d'
