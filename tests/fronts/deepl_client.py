"""Every call of deepl, DeepL's Python client, that is served; run in its own environment, with address and key."""

import io
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deepl
from deepl import DeepLClient, TextResult
from deepl.api_data import MultilingualGlossaryDictionaryEntries

XML = "<doc><par>A <b>red</b> dog runs.</par><raw>x = 1</raw></doc>"
NOBODYS = "96ab91fd-e715-41a1-adeb-5d701f84a483"


def main(address: str, key: str) -> None:
    """Makes the calls. Raises AssertionError."""
    for url in (f"{address}/", f"{address}/deepl/"):
        client = DeepLClient(key, server_url=url)
        translate(client)
        translate_further(client)
        refuse(client)
        describe(client)
        keep_one(client)
        keep_many(client)
        translate_files(client)
    wrong = DeepLClient("wrong", server_url=address)
    assert "Authorization" in raised(deepl.AuthorizationException, wrong.get_usage)
    assert "Authorization" in raised(deepl.AuthorizationException, wrong.translate_text, "A dog.", target_lang="DE")


def raised(kind: type[Exception], call: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """Returns the words of the exception that a call raises."""
    try:
        call(*arguments, **options)
    except kind as error:
        return str(error)
    raise AssertionError


def translate(client: DeepLClient) -> None:
    """Translates texts in each way."""
    one = client.translate_text("A dog runs.", target_lang="DE", model_type="prefer_quality_optimized")
    assert isinstance(one, TextResult)
    assert (one.text, one.detected_source_lang, one.billed_characters) == ("Ein Hund läuft.", "EN", 11)
    assert one.model_type_used == "quality_optimized"
    two = client.translate_text(
        ["A dog runs.", "A dog runs."],
        source_lang="EN",
        target_lang="de",
        formality="prefer_more",
        preserve_formatting=True,
        context="A story.",
    )
    assert [each.text for each in two] == ["Ein Hund läuft."] * 2
    back = client.translate_text("Der Hund läuft.", source_lang="DE", target_lang="EN-US")
    assert "dog" in back.text.lower()
    assert back.detected_source_lang == "DE"
    joined = client.translate_text("A dog\nruns.", target_lang="DE", split_sentences="nonewlines")
    assert joined.text == "Ein Hund läuft."
    html = client.translate_text("<p>A <b>dog</b> runs.</p>", target_lang="DE", tag_handling="html")
    assert html.text == "<p>Ein <b>Hund</b> läuft.</p>"
    xml = client.translate_text(
        XML, target_lang="DE", tag_handling="xml", ignore_tags=["raw"], splitting_tags="par", outline_detection=False
    )
    assert xml.text.endswith("</par><raw>x = 1</raw></doc>")
    assert "<b>" in xml.text
    assert "Hund" in xml.text


def translate_further(client: DeepLClient) -> None:
    """Translates with what DeepL's own documentation shows beside."""

    def told(text: str, target: Any = "DE", **options: Any) -> str:
        result = client.translate_text(text, target_lang=target, **options)
        assert isinstance(result, TextResult)
        return str(result)

    assert told("How are you?", formality=deepl.Formality.MORE) == "Wie geht es Ihnen?"
    assert told("How are you?", formality="less") == "Wie geht es dir?"
    assert told("Wie geht es dir?", "EN-GB", formality="prefer_more").startswith("How are you")
    assert told("A dog runs.", "EN-US", source_lang="EN") == "A dog runs."
    assert told("A dog runs.", deepl.Language.GERMAN, source_lang=deepl.Language.ENGLISH) == "Ein Hund läuft."
    german = next(each for each in client.get_target_languages() if each.code == "DE")
    assert told("A dog runs.", german, extra_body_parameters={"debug": "1"}) == "Ein Hund läuft."
    for model in deepl.ModelType:
        result = client.translate_text("A dog runs.", target_lang="DE", model_type=model)
        assert isinstance(result, TextResult)
        assert result.model_type_used in ("quality_optimized", "latency_optimized")
    lines = "A dog runs.\nA man sits."
    assert told(lines, split_sentences=deepl.SplitSentences.ALL) == "Ein Hund läuft.\nEin Mann sitzt."
    assert told(lines, split_sentences="0") == "Ein Hund läuft. Ein Mann sitzt."
    page = '<p translate="no">A dog.</p><p class="notranslate">A dog.</p><p>A dog runs.</p>'
    for version in ("v1", "v2"):
        html = told(page, tag_handling="html", tag_handling_version=version)
        assert html == page.replace("A dog runs.", "Ein Hund läuft.")
    kept = told("<a>A dog <x>A dog</x> runs.</a>", tag_handling="xml", ignore_tags="x,y", non_splitting_tags=["b"])
    assert "<x>A dog</x>" in kept
    assert [each.text for each in client.translate_text(iter(["A dog runs.", " "]), target_lang="DE")] == [
        "Ein Hund läuft.",
        " ",
    ]
    glossary = client.create_glossary("One", "EN", "DE", {"dog": "Dackel"})
    assert "Dackel" in str(client.translate_text_with_glossary("A dog runs.", glossary))
    tagged = told("<p>A <b>dog</b> runs.</p>", source_lang="EN", tag_handling="html", glossary=glossary.glossary_id)
    assert "Dackel" in tagged
    client.delete_glossary(glossary)


def refuse(client: DeepLClient) -> None:
    """Asks for what is not served."""

    def told(text: str = "A dog.", **options: Any) -> str:
        return raised(deepl.DeepLException, client.translate_text, text, **({"target_lang": "DE"} | options))

    assert "Value for 'target_lang' not supported." in told(target_lang="XX")
    assert "Value for 'source_lang' not supported." in told(source_lang="XX")
    assert "Target language 'EN-US' doesn't support formality." in told(formality="more", target_lang="EN-US")
    assert "Value for 'formality' not supported." in told(formality="rude")
    assert "Value for 'translation_memory_id' not supported." in told(translation_memory=NOBODYS)
    assert "Value for 'split_sentences' not supported." in told(split_sentences="none")
    assert "Value for 'tag_handling' not supported." in told(tag_handling="json")
    assert "Value for 'custom_instructions' not supported." in told(custom_instructions=["Be brief."])
    assert "Value for 'style_id' not supported." in told(style_rule=NOBODYS)
    assert "must be well-formed XML" in told("<p>A dog.", tag_handling="xml", tag_handling_version="v2")
    assert "Glossary not found" in told(source_lang="EN", glossary=NOBODYS)
    assert "Not found" in raised(deepl.DeepLException, client.rephrase_text, "A dog.", target_lang="EN-US")
    rule, memory = (NOBODYS,), (NOBODYS,)
    for call, arguments in (
        (client.correct_text, ("A dog.",)),
        (client.create_style_rule, ("a", "en")),
        (client.get_style_rule, rule),
        (client.update_style_rule_name, (*rule, "a")),
        (client.update_style_rule_configured_rules, (*rule, {})),
        (client.delete_style_rule, rule),
        (client.create_style_rule_custom_instruction, (*rule, "a", "b")),
        (client.get_style_rule_custom_instruction, (*rule, NOBODYS)),
        (client.update_style_rule_custom_instruction, (*rule, NOBODYS, "a", "b")),
        (client.delete_style_rule_custom_instruction, (*rule, NOBODYS)),
        (client.get_translation_memory, memory),
        (client.list_translation_memory_segments, memory),
        (client.create_translation_memory_export, memory),
        (client.get_translation_memory_job, memory),
        (client.delete_translation_memory, memory),
    ):
        assert "Not found: this server translates texts and documents" in raised(deepl.DeepLException, call, *arguments)
    assert client.get_all_style_rules() == []
    assert client.list_translation_memories() == []


def describe(client: DeepLClient) -> None:
    """Asks what there is."""
    assert [each.code for each in client.get_source_languages()] == ["DE", "EN"]
    assert [each.code for each in client.get_target_languages()] == ["DE", "EN-GB", "EN-US"]
    pairs = {(each.source_lang, each.target_lang) for each in client.get_glossary_languages()}
    assert {(source.upper(), target.upper()) for source, target in pairs} == {("EN", "DE"), ("DE", "EN")}
    usage = client.get_usage()
    assert not usage.any_limit_reached
    assert (usage.character.count, usage.document.valid, usage.team_document.valid) == (0, False, False)
    assert [each.supports_formality for each in client.get_target_languages()] == [True, False, False]


def translate_files(client: DeepLClient) -> None:
    """Translates documents by path, open, and step by step."""
    with tempfile.TemporaryDirectory() as folder:
        page, german, wrong = (Path(folder, name) for name in ("a.html", "b.html", "a.invalid"))
        page.write_text("<p>A <b>dog</b> runs.</p>")
        wrong.write_text("A dog runs.")
        status = client.translate_document_from_filepath(page, german, source_lang="EN", target_lang="DE")
        assert german.read_text() == "<p>Ein <b>Hund</b> läuft.</p>"
        assert (status.done, status.billed_characters) == (True, 25)
        told = raised(deepl.DeepLException, client.translate_document_from_filepath, wrong, german, target_lang="DE")
        assert "Invalid file extension" in told
    glossary = client.create_glossary("One", "EN", "DE", {"dog": "Dackel"})
    output = io.BytesIO()
    client.translate_document(
        io.BytesIO(b"A dog runs."), output, source_lang="EN", target_lang="DE", glossary=glossary, filename="a.txt"
    )
    assert b"Dackel" in output.getvalue()
    client.delete_glossary(glossary)
    for formality, expected in (("more", b"Ihnen"), ("prefer_less", b"dir")):
        output = io.BytesIO()
        asked = {"source_lang": "EN", "target_lang": "DE", "formality": formality, "filename": "a.txt"}
        client.translate_document(io.BytesIO(b"How are you?"), output, output_format="txt", timeout_s=60, **asked)
        assert expected in output.getvalue()
    told = raised(deepl.DeepLException, client.translate_document_upload, b"A", **(asked | {"output_format": "pdf"}))
    assert "output_format" in told
    handle = client.translate_document_upload(b"A dog runs.", target_lang="DE", filename="a.txt", source_lang="EN")
    assert client.translate_document_wait_until_done(deepl.DocumentHandle(handle.document_id, handle.document_key)).done
    assert client.translate_document_download(handle).content == "Ein Hund läuft.".encode()
    nobodys = deepl.DocumentHandle("0" * 32, handle.document_key)
    assert "Not found" in raised(deepl.DeepLException, client.translate_document_get_status, nobodys)
    failed = client.translate_document_upload("no archive", target_lang="DE", filename="a.docx")
    status = client.translate_document_wait_until_done(failed)
    assert not status.ok
    assert "is no ZIP archive" in status.error_message
    told = raised(
        deepl.DocumentTranslationException,
        client.translate_document,
        io.BytesIO(b"Der Hund schl\xc3\xa4ft, und die Katze sitzt auf dem Dach."),
        io.BytesIO(),
        target_lang="DE",
    )
    assert "Source and target language are equal" in told


def keep_one(client: DeepLClient) -> None:
    """Keeps glossaries of version 2."""
    entries = {"artist": "Maler", 'the "prize"': "Gewinn, groß"}
    glossary = client.create_glossary("One", "EN", "DE", entries)
    table = client.create_glossary_from_csv("Two", "EN", "DE", 'prize,Gewinn,en,de\n"a ""b""","c,d",en,de\n')
    assert (glossary.name, glossary.source_lang, glossary.target_lang) == ("One", "EN", "DE")
    assert (glossary.ready, glossary.entry_count, table.entry_count) == (True, 2, 2)
    assert client.get_glossary(glossary.glossary_id).creation_time == glossary.creation_time
    assert client.get_glossary_entries(glossary) == entries
    assert {each.glossary_id for each in client.list_glossaries()} >= {glossary.glossary_id, table.glossary_id}
    told = client.translate_text_with_glossary("The artist is here.", glossary)
    assert "Maler" in told.text
    both = client.translate_text(
        "The artist was awarded a prize.", source_lang="EN", target_lang="DE", glossary_ids=[glossary, table]
    )
    assert "Maler" in both.text
    assert "Gewinn" in both.text
    for each in (glossary, table):
        client.delete_glossary(each)
    assert "not" in raised(deepl.GlossaryNotFoundException, client.get_glossary, glossary.glossary_id)
    assert "glossary_id" in raised(deepl.DeepLException, client.get_glossary, "invalid")
    assert "pair" in raised(deepl.DeepLException, client.create_glossary, "One", "EN", "XX", {"a": "b"})


def keep_many(client: DeepLClient) -> None:
    """Keeps glossaries of version 3."""
    there = MultilingualGlossaryDictionaryEntries("EN", "DE", {"artist": "Maler"})
    back = MultilingualGlossaryDictionaryEntries("DE", "EN", {"Maler": "artist"})
    glossary = client.create_multilingual_glossary("Many", [there, back])
    identity = glossary.glossary_id
    table = client.create_multilingual_glossary_from_csv("Table", "EN", "DE", "prize,Gewinn\n")
    assert [each.entry_count for each in glossary.dictionaries] == [1, 1]
    assert client.update_multilingual_glossary_name(glossary, "More").name == "More"
    more = MultilingualGlossaryDictionaryEntries("EN", "DE", {"prize": "Gewinn"})
    changed = client.update_multilingual_glossary_dictionary(glossary, more)
    assert sorted(each.entry_count for each in changed.dictionaries) == [1, 2]
    client.update_multilingual_glossary_dictionary_from_csv(identity, "EN", "DE", "cat,Katze\n")
    (found,) = client.get_multilingual_glossary_entries(identity, "EN", "DE").dictionaries
    assert deepl.convert_tsv_to_dict(found.entries) == {"artist": "Maler", "prize": "Gewinn", "cat": "Katze"}
    told = client.translate_text("The artist is here.", source_lang="EN", target_lang="DE", glossary=glossary)
    assert "Maler" in told.text
    assert client.replace_multilingual_glossary_dictionary(identity, more).entry_count == 1
    assert client.replace_multilingual_glossary_dictionary_from_csv(identity, "EN", "DE", "a,b\nc,d").entry_count == 2
    client.delete_multilingual_glossary_dictionary(identity, source_lang="DE", target_lang="EN")
    assert [each.source_lang for each in client.get_multilingual_glossary(identity).dictionaries] == ["EN"]
    assert {each.glossary_id for each in client.list_multilingual_glossaries()} >= {identity, table.glossary_id}
    for each in (identity, table.glossary_id):
        client.delete_multilingual_glossary(each)
    assert "not" in raised(deepl.GlossaryNotFoundException, client.delete_multilingual_glossary, identity)


main(*sys.argv[1:])
