import pytest

from babelserve.formats.inline import Format, Group, Point, Span, Text, units

BOLD, PLAIN = Format("<r b>", "</r>"), Format("<r>", "</r>")
SOURCE = "0123456789"


def standing(begin: int, end: int) -> str:
    return f"[{SOURCE[begin:end]}]"


def test_the_commonest_format_has_no_tag_and_others_are_spans() -> None:
    pieces = [Text("A ", PLAIN), Text("red", BOLD), Text(" ", PLAIN), Text("car", BOLD), Text(" stops here", PLAIN)]
    (unit,) = units([Group(0, 9, pieces)])

    assert unit.text == 'A <span id="1">red car</span> stops here'
    written = unit.render('Ein <span id="1">rotes</span> Auto &lt; &nbsp;hält', standing)
    assert written == "<r>Ein </r><r b>rotes</r><r> Auto &lt; \u00a0hält</r>"


def test_elements_and_points_are_numbered_and_put_back() -> None:
    link = Span("<a h>", "</a>", [Text("b"), Point(3, 5)], "a")
    (unit,) = units([Group(0, 9, [Text("A "), link, Text("c"), Point(7, 8, tag="br"), Text("d")])])

    assert unit.text == 'A <a id="1">b<wbr id="2"></a>c<br id="3">d'
    written = unit.render('<a id="1"><wbr id="2">B</a> A<br id="3"/>', standing)
    assert written == "<a h>[34]B</a> A[7]"


def test_ordered_points_stay_in_their_order() -> None:
    begin, end = Point(1, 2, is_ordered=True), Point(3, 4, is_ordered=True)
    (unit,) = units([Group(0, 9, [Text("a"), begin, Text("b"), end, Text("c")])])

    assert unit.render('b<wbr id="2">a<wbr id="1">c', standing) == "b[1]a[3]c"


@pytest.mark.parametrize(
    "answer",
    [
        f"&#{'9' * 5000};",
        'a<i id="1">b</i>',  # one is missing
        'a<i id="1">b</i><wbr id="2"><wbr id="2">',
        'a<i id="1">b<wbr id="2">',
        'a<i id="1">b</b><wbr id="2">',
        '</i><i id="1">b</i><wbr id="2">',
        'a<b id="1">b</b><wbr id="2">',
        'a<i>b</i><wbr id="2">',
        'a<i id="3">b</i><wbr id="2">',
        'a<i id="1">b</i><wbr id="2">\x02',  # no XML
    ],
)
def test_a_translation_with_other_tags_is_refused(answer: str) -> None:
    (unit,) = units([Group(0, 9, [Text("a"), Span("<i>", "</i>", [Text("b")], "i"), Point(3, 4), Text(".")])])

    assert unit.render('<i id="1">b</i><wbr id="2">', standing) == "<i>b</i>[3]"
    assert unit.render(answer, standing) is None


def test_a_unit_reaches_from_the_first_text_to_the_last_between_groups_that_end_one() -> None:
    def text(begin: int, words: str) -> Group:
        return Group(begin, begin + 1, [Text(words)])

    point = Group(1, 2, [Point(1, 2)])
    groups = [point, text(2, "one"), point, text(4, "two"), point, text(5, " "), Group(6, 7, None), text(8, "three")]

    found = list(units([*groups, Group(9, 10, None), text(11, "4 &amp; 5")]))

    assert [(unit.text, unit.begin, unit.end) for unit in found] == [('one<wbr id="1">two', 2, 5), ("three", 8, 9)]
