"""Every call of nvidia-riva-client that is served, and its nmt.py; run in its own environment, with the address."""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import riva.client
from riva.client.proto import riva_nmt_pb2 as riva_nmt

ADDRESS = sys.argv[1]


def nmt(*arguments: str) -> list[str]:
    """Returns the lines that NVIDIA's script prints."""
    command = [sys.executable, str(Path(__file__).with_name("riva_nmt.py")), "--server", ADDRESS, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def refused(call: Callable[[], Any], code: grpc.StatusCode, words: str) -> None:
    """Checks that a call fails."""
    try:
        call()
    except grpc.RpcError as error:
        failure: Any = error
        assert (failure.code(), words in failure.details()) == (code, True), failure.details()
    else:
        raise AssertionError(words)


def check_client() -> None:
    """Checks the calls of the client's class."""
    client = riva.client.NeuralMachineTranslationClient(riva.client.Auth(uri=ADDRESS))
    answer = client.translate(["A dog runs.", "A man sits."], "", "en-US", "de-DE")
    assert [each.text for each in answer.translations] == ["Ein Hund läuft.", "Ein Mann sitzt."]
    assert {each.language for each in answer.translations} == {"de-DE"}
    later = client.translate(["A dog runs."], "en-de", "en", "de", future=True, max_len_variation="20")
    assert later.result().translations[0].text == "Ein Hund läuft."
    kept = client.translate(["Apple sees a dog."], "", "en", "de", dnt_phrases_dict={"Apple": "", "dog": "Köter"})
    assert "Apple" in kept.translations[0].text
    assert "Köter" in kept.translations[0].text
    german = client.translate(["Das Haus."], "de-en", "de-DE", "en-US", dnt_phrases_dict={})
    assert [(each.text, each.language) for each in german.translations] == [("The house.", "en-US")]
    phrases = {f"word{n}": "" for n in range(1000)}
    many = client.translate(["A dog runs."] * 64, "", "en", "de", dnt_phrases_dict=phrases)
    assert [each.text for each in many.translations] == ["Ein Hund läuft."] * 64
    assert client.get_config("de-en", future=True).result().languages["de-en"].tgt_lang == ["en"]
    asked = riva_nmt.TranslateTextRequest(texts=["A dog runs."], source_language="en", target_language="de")
    asked.id.value = "my-id"
    asked.dnt_phrases.extend(["dog##Dackel", "runs"])
    known = client.stub.TranslateText(asked, metadata=[("authorization", "Bearer any")], timeout=30)
    assert (known.id.value, "Dackel" in known.translations[0].text) == ("my-id", True)
    languages = client.get_config("").languages
    assert {name: (list(each.src_lang), list(each.tgt_lang)) for name, each in languages.items()} == {
        "de-en": (["de"], ["en"]),
        "en-de": (["en"], ["de"]),
    }
    assert list(client.get_config("en-de").languages) == ["en-de"]

    invalid, missing = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND
    refused(lambda: client.translate([], "", "en", "de"), invalid, "texts: must be from 1 to 1024")
    refused(lambda: client.translate(["a"], "", "en", "zz"), invalid, "target_language: ")
    refused(lambda: client.translate(["a"], "", "fr", "de"), invalid, "source_language: ")
    refused(lambda: client.translate(["a"], "megatronnmt_any_any_1b", "en", "de"), missing, "model: ")
    refused(lambda: client.translate(["a"], "", "en", "de", max_len_variation="a"), invalid, "max_len_variation: ")
    refused(
        lambda: client.translate(["a"], "", "en", "de", dnt_phrases_dict={"a" * 300: ""}), invalid, "dnt_phrases[0]"
    )
    more = phrases | {"one": ""}
    refused(lambda: client.translate(["a"], "", "en", "de", dnt_phrases_dict=more), invalid, "dnt_phrases")
    refused(lambda: client.get_config("no"), missing, "model: ")
    spoken = riva_nmt.StreamingTranslateSpeechToSpeechConfig()
    refused(
        lambda: list(client.streaming_s2s_response_generator([b"a"], spoken)),
        grpc.StatusCode.UNIMPLEMENTED,
        "StreamingTranslateSpeechToSpeech is not served here",
    )
    speech = riva_nmt.StreamingTranslateSpeechToTextConfig()
    refused(
        lambda: list(client.streaming_s2t_response_generator([b"a"], speech)),
        grpc.StatusCode.UNIMPLEMENTED,
        "StreamingTranslateSpeechToText is not served here",
    )


def check_script() -> None:
    """Checks what a user of NVIDIA's script sees."""
    assert nmt("--text", "A dog runs.", "--target-language-code", "de-DE") == ["Ein Hund läuft."]
    with tempfile.TemporaryDirectory() as folder:
        texts, phrases = Path(folder, "texts"), Path(folder, "phrases")
        texts.write_text("A dog runs.\n\nA man sits.\n")
        phrases.write_text("Apple\ndog ## Köter\n")
        files = ["--text-file", str(texts), "--dnt-phrases-file", str(phrases), "--target-language-code", "de"]
        first, second = nmt(*files, "--batch-size", "1", "--max-len-variation", "20")
    assert ("Köter" in first, second) == (True, "Ein Mann sitzt.")
    assert 'key: "en-de"' in "".join(nmt("--list-models"))
    (line,) = nmt("--text", "A dog runs.", "--target-language-code", "zz")
    assert line.startswith("invalid arg error : target_language: ")


check_client()
check_script()
