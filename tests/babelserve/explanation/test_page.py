"""The page without a browser: that it is whole, that it loads and runs nothing foreign, and what it says."""

import base64
import dataclasses
import hashlib
import re

import grpc

from babelserve.explanation.page import page
from babelserve.results import DetectedLanguage, FinishReason, Hypothesis, KeptPart, Placement, RouteLeg, TextError
from tests.babelserve.explanation.sentences import Reader, line, node, sentence, token

HOSTILE = "</p><script>alert(1)</script><img src=x onerror=alert(1)> & \"quoted\" 'so' ]]> <!-- \u202e"


def text_of(reader: Reader) -> str:
    return " ".join("".join(text for tag, text in reader.texts if tag not in ("style", "script")).split())


def test_a_text_can_bring_no_markup_into_the_page() -> None:
    hostile = sentence(source_text=HOSTILE, text=HOSTILE, kept=(KeptPart(text=HOSTILE, placement=Placement.BY_MODEL),))
    reader = Reader(
        page(
            [
                line(hostile, hypotheses=(Hypothesis(text=f"{HOSTILE}!", score=-1.0),)),
                line(error=TextError(code=grpc.StatusCode.INVALID_ARGUMENT, message=HOSTILE)),
            ],
            'de" onload="alert(1)',
            "en",
        )
    )

    assert (len(reader.all_of("script")), reader.all_of("img")) == (1, [])
    assert not any(name.startswith("on") for _, attributes in reader.elements for name in attributes)
    assert text_of(reader).count(" ".join(HOSTILE.split())) == 5


def test_the_page_loads_nothing_and_runs_only_its_own_script() -> None:
    reader = Reader(page([line(sentence())], "de"))

    assert not any({"src", "href", "style", "action"} & attributes.keys() for _, attributes in reader.elements)
    (policy,) = [each["content"] for each in reader.all_of("meta") if "http-equiv" in each]
    hashes = {}
    for tag in ("style", "script"):
        content = "".join(text for name, text in reader.texts if name == tag)
        assert not re.search(r"url\(|@import|https?:", content)
        hashes[tag] = f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
    assert policy == f"default-src 'none'; style-src {hashes['style']}; script-src {hashes['script']}"


def test_words_name_words_that_are_there() -> None:
    reader = Reader(page([line(sentence())], "de"))

    words = reader.words()
    assert len(words) == 7 + 4
    for own, num_others in ((words[:7], 4), (words[7:], 7)):
        assert all(int(place) < num_others for each in own for place in (each.get("data-l") or "").split())
    assert [each["tabindex"] for each in reader.all_of("p") if "tabindex" in each] == ["0", "0"]


def test_a_sentence_says_how_it_ended_and_what_became_of_its_terms() -> None:
    reasons = [FinishReason.LENGTH, FinishReason.REPETITION, FinishReason.COPIED, FinishReason.UNSPECIFIED]
    text = text_of(Reader(page([line(*(sentence(finish_reason=each) for each in reasons))], "de")))

    assert "cut off by the limit on tokens" in text
    assert "because it repeated itself" in text
    assert "there was nothing to translate" in text
    assert "does not say why it ended" in text
    assert "confidence 0.75" in text
    assert "term dog became Hund; term runs is missing in the translation" in text
    assert "-1.50 Ein Kater the model ended it" in re.sub(r"(?<=\d)(?=Ein)|(?=the model)", " ", text)


def test_a_text_says_its_route_and_what_failed() -> None:
    legs = [RouteLeg(model=name, model_version="1", source=name[:2], target=name[3:]) for name in ("fr-en", "en-de")]
    text = text_of(
        Reader(
            page(
                [
                    line(sentence(), route=tuple(legs), detected=DetectedLanguage(code="fr", confidence=0.9)),
                    line(),
                    line(error=TextError(code=grpc.StatusCode.INVALID_ARGUMENT, message="too long")),
                ],
                "de",
            )
        )
    )

    assert "over fr-en (fr to en) and en-de (en to de); detected language: fr" in text
    assert "it has no sentence" in text
    assert "It has no translation: too long" in text


def test_what_a_server_does_not_say_is_said() -> None:
    whole = text_of(Reader(page([line(sentence())], "de")))
    bare = text_of(Reader(page([line(sentence(links=(), search=(), confidence=None))], "de")))

    assert "The server does not say" not in whole
    assert "does not say which words belong together; nor how sure the model was of sentences; nor how" in bare


def test_a_page_of_twenty_sentences_is_small() -> None:
    long = " ".join(["Wort"] * 25)
    tokens = tuple(token("\u2581Wort", 5 * place, 5 * place + 4, -0.5) for place in range(25))
    tree = [*sentence().search]
    while len(tree) < 4 * 36:
        tree.append(dataclasses.replace(tree[1], parent=len(tree) - 4))
    lines = [line(sentence(source_text=long, text=long, tokens=tokens, search=tuple(tree))) for _ in range(20)]

    assert len(page(lines, "de").encode()) < 500_000


def test_a_table_has_a_bound() -> None:
    ends = [node(number, "x", -1.0, score=-number) for number in range(149)]
    shown = page([line(sentence(search=(node(None, "x", -1.0), *ends)))], "de")

    assert shown.count("<tr><td>") == 101
    assert "and 49 more with lower scores" in shown
    assert ">-99.00<" in shown
    assert ">-100.00</td>" not in shown
