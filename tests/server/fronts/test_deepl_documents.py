from typing import Any

import pytest

from babelserve.v1 import translation_pb2 as pb
from server.errors import InvalidRequest, TranslationError
from server.fronts.deepl import FRONT, NotHere, Refused
from server.fronts.deepl_documents import (
    check_key,
    no_file,
    read_output_format,
    read_upload,
    write_started,
    write_status,
    wrong_output_format,
)

GLOSSARY = "96ab91fd-e715-41a1-adeb-5d701f84a483"


def fields(**values: Any) -> dict[str, list[Any]]:
    return {name: [value] for name, value in ({"source_lang": "EN", "target_lang": "DE"} | values).items()}


def test_an_upload_is_ours_in_other_words() -> None:
    assert read_upload(fields(glossary_id=GLOSSARY, formality="prefer_more")) == pb.TranslateRequest(
        source_language_code="EN",
        target_language_code="DE",
        glossary=pb.Glossary(names=[f"{GLOSSARY}.en-de"]),
        formality=pb.FORMALITY_PREFER_MORE,
    )
    assert read_upload({"target_lang": ["de"]}) == pb.TranslateRequest(target_language_code="de")
    assert read_output_format(fields(output_format=".DOCX")) == "docx"
    assert read_output_format(fields()) == ""


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"target_lang": ""}, "Value for 'target_lang' not supported."),
        ({"target_lang": "en"}, "Source and target language are equal."),
        ({"formality": "rude"}, "Value for 'formality' not supported."),
        ({"source_lang": "", "glossary_id": GLOSSARY}, "Use of a glossary requires the source_lang parameter"),
        ({"style_id": GLOSSARY}, "Value for 'style_id' not supported."),
    ],
)
def test_what_is_wrong_is_refused_in_its_words(values: dict[str, str], words: str) -> None:
    with pytest.raises(Refused) as caught:
        read_upload(fields(**values))
    assert caught.value.words.startswith(words)


def test_a_document_has_a_key_in_any_case() -> None:
    assert write_started("ab" * 16, "cd" * 32) == {"document_id": "AB" * 16, "document_key": "CD" * 32}
    check_key(fields(document_key="CD" * 32), "cd" * 32)
    for wrong in ("", "CD" * 31):
        with pytest.raises(NotHere):
            check_key(fields(document_key=wrong), "cd" * 32)
    with pytest.raises(InvalidRequest):
        check_key(fields(document_key=1), "cd" * 32)


@pytest.mark.parametrize(
    ("state", "failure", "shown"),
    [
        ("queued", None, {}),
        ("translating", None, {"seconds_remaining": 7}),
        ("done", None, {"seconds_remaining": 7, "billed_characters": 11}),
        ("error", InvalidRequest("file", "no"), {"error_message": "file: no", "message": "file: no"}),
        (
            "error",
            TranslationError("internal error"),
            dict.fromkeys(("error_message", "message"), "internal error; request id my-id"),
        ),
    ],
)
def test_a_status_has_what_belongs_to_it(state: str, failure: TranslationError | None, shown: dict[str, Any]) -> None:
    value = write_status("ab", state, seconds_remaining=7, num_characters=11, failure=failure, request_id="my-id")

    assert value == {"document_id": "AB", "status": state} | shown


def test_errors_of_files_have_its_words() -> None:
    assert FRONT.body(no_file(), "", 400) == {"message": "Invalid file data."}
    assert FRONT.body(wrong_output_format(), "", 400) == {"message": "output_format not supported."}
