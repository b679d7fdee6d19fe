"""The models that come with the server, both in one."""

from babelserve import Client
from tests.acceptance.server_process import running_server


def test_they_translate_both_ways_and_keep_what_is_no_language() -> None:
    with running_server(["--models", "builtin"]) as server, Client(server.address) as client:
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


def test_words_that_belong_together_are_linked() -> None:
    source = "The small cat with {name} drinks milk."
    with running_server(["--models", "builtin"]) as server, Client(server.address) as client:
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
