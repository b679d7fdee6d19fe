"""The models that come with the server, both in one."""

import re
from collections.abc import Iterator

import pytest

from babelserve import Client, InvalidRequest
from babelserve.messages import TranslateOptions
from tests.acceptance.server_process import running_server


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Of one server for all tests, none of which changes it."""
    with running_server(["--models", "builtin"]) as server, Client(server.address) as client:
        yield client


def test_they_translate_both_ways_and_keep_what_is_no_language(client: Client) -> None:
    there = client.translate(["Where is the station, {name}?"], target="de")
    back = client.translate(["Wo ist der Bahnhof, {name}?", "WO IST DER BAHNHOF?"], target="en")
    pairs = {model.name: model.language_pairs for model in client.list_models()}

    assert pairs == {"de-en": (("de", "en"),), "en-de": (("en", "de"),)}
    assert (there.model, back.model) == ("en-de", "de-en")
    assert "Bahnhof" in there.translations[0].text
    assert "{name}" in there.translations[0].text
    assert "station" in back.translations[0].text
    assert "{name}" in back.translations[0].text
    assert back.translations[1].text.isupper()


def test_words_that_belong_together_are_linked(client: Client) -> None:
    source = "The small cat with {name} drinks milk."
    for beam_size in (1, 4):
        answer = client.translate([source], target="de", beam_size=beam_size, include_alignment=True)
        (sentence,) = answer.translations[0].sentences
        words = {
            source[link.source_begin : link.source_end]: sentence.text[link.target_begin : link.target_end]
            for link in sentence.links
        }
        assert words.items() >= {"cat": "Katze", "drinks": "trinkt", "milk": "Milch", "{name}": "{name}"}.items()
    plain = client.translate([source], target="de", include_sentences=True)
    has_alignment = {model.name: model.has_alignment for model in client.list_models()}

    assert plain.translations[0].sentences[0].links == ()
    assert has_alignment == {"en-de": True, "de-en": True}


def test_answers_say_how_sure_the_model_was_and_score_given_translations(client: Client) -> None:
    text = "The small cat drinks milk. We met {name} at the old station."
    for beam_size in (1, 4):
        (sure,) = client.translate(
            [text], target="de", beam_size=beam_size, include_tokens=True, include_confidence=True
        ).translations
        assert sure.confidence is not None
        assert 0.3 < sure.confidence <= 1
        for sentence in sure.sentences:
            assert text[sentence.source_begin : sentence.source_end] == sentence.source_text
            assert sure.text[sentence.begin : sentence.end] == sentence.text
            assert "".join(sentence.text[token.begin : token.end] for token in sentence.tokens) == (
                sentence.text.replace(" ", "")
            )
        log_probs = [token.log_prob for token in sure.sentences[0].tokens]
        assert sure.sentences[0].score == pytest.approx(sum(log_probs) / len(log_probs), abs=1e-3)
    (streamed,) = client.translate_stream(["Hello."], target="de", include_confidence=True)
    with pytest.raises(InvalidRequest, match=r"decoding\.with_scores: must be true for output\.include_tokens"):
        client.translate(["Hello."], target="de", beam_size=1, with_scores=False, include_tokens=True)

    source = "The small cat drinks milk."
    own = client.translate([source], target="de", beam_size=1, include_tokens=True).translations[0].sentences[0]
    pairs = [(source, own.text), (source, "Die kleine Katze fährt Auto."), (source, "und " * 3000)]
    result = client.score(pairs, target="de")
    with pytest.raises(InvalidRequest, match="source_language_code"):
        client.score(pairs, target="de", source="fr")
    has_confidence = {model.has_confidence for model in client.list_models()}

    assert streamed.sentence is not None
    assert streamed.sentence.confidence is not None
    assert has_confidence == {True}
    mine, other, long = result.scores
    assert result.model == "en-de"
    assert mine.score == pytest.approx(own.score, abs=1e-3)
    assert [token.log_prob for token in mine.tokens] == pytest.approx([t.log_prob for t in own.tokens], abs=2e-2)
    assert other.score < mine.score - 0.5
    assert long.error is not None
    assert "pairs[2].target" in long.error.message


def test_answers_say_how_translations_were_searched_for(client: Client) -> None:
    of_beams: list[tuple[TranslateOptions, bool]] = [
        ({}, True),
        ({"beam_size": 1}, False),
        ({"beam_size": 8, "glossary": {"cat": "Kater"}}, True),
        ({"sampling_seed": 3}, False),
    ]
    asked: TranslateOptions = {"include_tokens": True, "include_search": True}
    for options, has_others in of_beams:
        answer = client.translate(["The small cat drinks milk."], target="de", **(asked | options))
        (sentence,) = answer.translations[0].sentences
        chosen = [node for node in sentence.search if node.is_chosen]
        assert [node.text for node in chosen] == [token.text for token in sentence.tokens]
        assert chosen[-1].score == sentence.score
        before = [0.0, *(node.log_prob for node in chosen)]
        own = [node.log_prob - last for node, last in zip(chosen, before, strict=False)]
        assert own == pytest.approx([token.log_prob for token in sentence.tokens], abs=1e-4)
        assert (len(sentence.search) > len(chosen)) == has_others
    plain = client.translate(["The small cat drinks milk."], target="de", include_sentences=True)
    with pytest.raises(InvalidRequest, match=r"output\.include_search: must be false if .* over 65536"):
        client.translate(["The cat drinks. " * 1000], target="de", **asked)

    assert plain.translations[0].sentences[0].search == ()


def test_tags_move_with_the_words_that_they_enclose(client: Client) -> None:
    page = '<p>The <b>red car</b> was not bought by <a href="/x">my friend</a>.<br>\n<code>a  b</code></p>'
    marked = client.translate([page], source="en", target="de", mime_type="text/html").translations[0].text
    plain = client.translate(["The red car was not bought by my friend."], source="en", target="de")

    sentence = plain.translations[0].text
    assert marked.endswith("<br>\n<code>a  b</code></p>")
    assert re.sub(r"<[^>]+>", "", marked.partition("<br>")[0]) == sentence
    assert re.search(r"<b>rote \w+</b>", marked)
    assert re.search('<a href="/x">[^<]*Freund[^<]*</a>', marked)


def test_attributes_are_translated_and_what_the_caller_names_is_kept(client: Client) -> None:
    page = "<p title='The small cat'>Blue Moon is <b title='The dog'>old</b>.</p><img alt=Welcome>"
    (whole,) = client.translate(
        [page], target="de", mime_type="text/html", translate_attributes=True, keep=["Blue Moon"]
    ).translations
    (plain,) = client.translate(["Buy << green houses. Now >> today."], target="de", keep=[("<<", ">>")]).translations
    with pytest.raises(InvalidRequest, match=r"text\.translate_attributes: must be false unless mime_type"):
        client.translate(["a"], target="de", translate_attributes=True)
    with pytest.raises(InvalidRequest, match=r"text\.keep\[0\]\.literal: must have 1 to 100 characters"):
        client.translate(["a"], target="de", keep=["x" * 101])

    assert re.fullmatch(
        r"<p title='[^']*Katze'>[^<]*Blue Moon[^<]*<b title='Der Hund'>[^<]+</b>[^<]*</p><img alt=Willkommen>",
        whole.text,
    )
    assert "<< green houses. Now >>" in plain.text


def test_quotations_are_translated_and_keep_their_marks(client: Client) -> None:
    (there,) = client.translate(["'I can't come,' he said."], target="de").translations
    back = client.translate(["„Geh nicht“, sagte sie.", "Die „Freiheit“ ist wichtig."], target="en").translations

    assert re.fullmatch(r"'[^']* kommen', .*sagte.*\.", there.text)
    assert re.fullmatch(r"“Don't \w+,” she said\.", back[0].text)
    assert "“freedom”" in back[1].text.lower()
