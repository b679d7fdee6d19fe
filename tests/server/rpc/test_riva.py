"""Riva's service behind a real gRPC server; the engine echoes."""

import grpc

from server.fronts.v1 import riva_pb2 as riva
from tests.server.rpc.parts import Public, told

SERVICE = "/nvidia.riva.nmt.RivaTranslation"


async def test_texts_are_translated_and_their_phrases_kept(public: Public) -> None:
    request = riva.RivaTranslateTextRequest(
        texts=["A dog runs.", "A man."], source_language="en-US", target_language="de-DE", dnt_phrases=["dog##dog"]
    )

    answer = await public.ask(f"{SERVICE}/TranslateText", request, riva.RivaTranslateTextResponse)

    assert [(each.text, each.language) for each in answer.translations] == [
        ("A dog runs.", "de-DE"),
        ("A man.", "de-DE"),
    ]


async def test_languages_are_listed(public: Public) -> None:
    answer = await public.ask(
        f"{SERVICE}/ListSupportedLanguagePairs", riva.RivaLanguagesRequest(), riva.RivaLanguagesResponse
    )

    assert {name: (list(pair.src_lang), list(pair.tgt_lang)) for name, pair in answer.languages.items()} == {
        "echo": (["en"], ["de"])
    }


async def test_errors_name_rivas_fields(public: Public) -> None:
    request = riva.RivaTranslateTextRequest(texts=["a"], source_language="en", target_language="xx")

    code, words = await told(public.ask(f"{SERVICE}/TranslateText", request, riva.RivaTranslateTextResponse))

    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert words.startswith("target_language: must be ")
