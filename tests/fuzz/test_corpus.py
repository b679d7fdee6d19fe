"""The kept inputs as plain tests, and some hundred that Hypothesis makes; neither needs atheris."""

import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from babelserve.v1 import translation_pb2 as pb
from server.fronts.v1 import google_pb2, kserve_pb2, riva_pb2
from server.settings.settings import Settings
from tests.fuzz import corpus
from tests.fuzz.odd_texts import UNITS, odd_texts
from tests.fuzz.targets import TARGETS

texts = st.lists(st.sampled_from(UNITS) | st.text(max_size=20), max_size=30).map("".join)
names = st.sampled_from(["en", "de", "DE", "text/plain", "en-de-small", "\u2622 no name"]) | texts
numbers = st.integers(0, 20) | st.integers(0, 2**32 - 1)
decodings = st.builds(
    pb.DecodingOptions,
    beam_size=numbers,
    num_hypotheses=numbers,
    length_penalty=st.floats(width=32),
    max_output_tokens=numbers,
    use_shortlist=st.booleans(),
)
messages = st.builds(
    pb.TranslateRequest,
    contents=st.lists(texts, max_size=4),
    target_language_code=st.just("de") | names,
    source_language_code=st.just("") | names,
    model=st.just("") | names,
    mime_type=st.just("") | names,
    decoding=st.none() | decodings,
)
KEYS = ["name", "variants", "cpu-fp32", "files", "sha256", "bytes", "extra_files", "a\x00", "..", "limits", "\ud800"]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
)
FLAGS = [f"--{each.name.replace('_', '-')}" for each in dataclasses.fields(Settings)] + ["--check", "--no-such-flag"]
VALUES = ["0", "-1", "1e9", "nan", "\u0661", "true", "auto", "cpu-fp32", "x" * 300, ""]
words = st.sampled_from(FLAGS) | st.builds("{}={}".format, st.sampled_from(FLAGS), st.sampled_from(VALUES) | st.text())


def documents(pieces: list[str]) -> st.SearchStrategy[bytes]:
    """Texts of pieces of a format, and of words."""
    return st.lists(st.sampled_from([*pieces, "a ", "Dog. ", " ", "\n"]), max_size=20).map("".join).map(str.encode)


FIELDS = ["q", "source", "target", "format", "alternatives", "api_key", "contents", "targetLanguageCode", "decoding"]
field_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | texts
    | st.sampled_from(["en", "de", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3),
)
JSON = st.dictionaries(st.sampled_from(FIELDS), field_values).map(lambda value: json.dumps(value).encode())
FORMS = documents(
    ["q=", "&", "%", "%41", "%ff", "=", "+", "source=en&target=de&", "--b\r\n", "\r\n", "--b--", 'name="q"']
)
foreign = {"contents": st.lists(texts, max_size=3), "source_language_code": names, "target_language_code": names}
parameters = st.builds(kserve_pb2.InferParameter, string_param=texts) | st.builds(
    kserve_pb2.InferParameter, int64_param=st.integers(-(2**63), 2**63 - 1)
)
tensors = st.builds(
    kserve_pb2.ModelInferRequest.InferInputTensor,
    name=st.just("text") | names,
    datatype=st.just("BYTES") | names,
    shape=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3),
)

GENERATED: dict[str, st.SearchStrategy[bytes]] = {
    "request": messages.map(pb.TranslateRequest.SerializeToString),
    "split": st.builds(lambda choice, text: bytes([choice]) + text.encode(), st.integers(0, 17), texts),
    "tokenizer": texts.map(str.encode) | st.binary(max_size=200),
    "tokenizer_file": st.binary(max_size=40),
    "bundle": st.dictionaries(st.sampled_from(KEYS), json_values).map(lambda patch: json.dumps(patch).encode()),
    "shortlist": st.binary(max_size=40).map(lambda data: data.join(corpus.read_inputs("shortlist")[0].split(b"<i4"))),
    "settings": st.lists(words, max_size=6).map(lambda given: "\0".join(given).encode()),
    "html": documents(["<b>", "</b>", "<img>", "<p>", "<code>", "</code>", "<br>", "&amp;", "&#xF0000;", "<a", "'"]),
    "markdown": documents(["*", "**", "[", "](x)", "`", "> ", "- ", "|", "\\", "<b>", "&amp;", "\n\n", "# ", "~~"]),
    "xliff": documents(
        [
            "<g>",
            "</g>",
            "<x/>",
            "<ph>a</ph>",
            "<mrk>",
            "</mrk>",
            "&amp;",
            "&b;",
            "&#x9f;",
            "<bx",
            'id="1"/>',
            "<ex",
            'id="1"/>',
        ]
    ),
    "xml": documents(["<b>", "</b>", "<x/>", "<p>", "</p>", "<![CDATA[<]]>", "&amp;", "&b;", "<!-- -->", "\0b"]),
    "lines": documents(["\r", "\n\n", "\t", "|", "\u2028", "\U000f0000"]),
    "placing": documents(["<b>", "</b>", "<img>", "<i>", "</i>", "\x00", "."]),
    "icu": documents(["{a,plural,", "one{", "other{", "{", "}", "#", "'", "{y}", "<br>", "\\n", "{%", "%}", "|"]),
    "own_parts": documents(["\0", "{", "}", "$", "{{", "}}"]),
    "libretranslate": st.builds(lambda kind, body: bytes([kind]) + body, st.integers(0, 3), FORMS | JSON),
    "own": JSON,
    "google": st.builds(google_pb2.TranslateTextRequest, **foreign, mime_type=names, glossary_config=st.none()).map(
        google_pb2.TranslateTextRequest.SerializeToString
    )
    | st.binary(max_size=60),
    "riva": st.builds(
        riva_pb2.RivaTranslateTextRequest, texts=foreign["contents"], dnt_phrases=foreign["contents"]
    ).map(riva_pb2.RivaTranslateTextRequest.SerializeToString)
    | st.binary(max_size=60),
    "kserve": st.builds(
        kserve_pb2.ModelInferRequest,
        model_name=names,
        parameters=st.dictionaries(names, parameters, max_size=3),
        inputs=st.lists(tensors, max_size=2),
        raw_input_contents=st.lists(st.binary(max_size=20), max_size=2),
    ).map(kserve_pb2.ModelInferRequest.SerializeToString)
    | st.binary(max_size=60),
    "request_id": st.text("aZ9._- \n\u0661", max_size=70).map(str.encode),
}


@pytest.mark.parametrize("target", TARGETS)
def test_every_kept_input_is_handled(target: str) -> None:
    for data in (b"", *corpus.read_inputs(target)):
        try:
            TARGETS[target](data)
        except BaseException as error:
            error.add_note(f"the input: {data!r}")
            raise


@pytest.mark.parametrize("target", TARGETS)
def test_every_generated_input_is_handled(target: str) -> None:
    @settings(
        max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
    )
    @given(GENERATED[target])
    def check(data: bytes) -> None:
        TARGETS[target](data)

    check()


ODD = odd_texts(100)


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_an_odd_text_comes_back_whole(text: str) -> None:
    request = pb.TranslateRequest(contents=[text, f"A dog runs. {text} A man sits."], target_language_code="de")

    TARGETS["request"](request.SerializeToString())
    TARGETS["tokenizer"](text.encode())
    for choice in (0, 7, 14):  # every limit, each with another language
        TARGETS["split"](bytes([choice]) + text.encode())


def test_a_message_that_is_cut_anywhere_is_handled() -> None:
    for data in corpus.read_inputs("request")[:4]:
        for end in range(len(data)):
            TARGETS["request"](data[:end])


def test_inputs_are_kept_as_they_are_and_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = [b"# no comment", bytes(range(256)), "\u2028\\n\n".encode(), b"a"]
    monkeypatch.setattr(corpus, "CORPUS", tmp_path)
    (tmp_path / "split.txt").write_text("# why it is here\na\n", encoding="ascii")

    assert corpus.add_inputs("split", [*inputs, b""]) == 3
    assert corpus.add_inputs("split", inputs) == 0

    assert sorted(corpus.read_inputs("split")) == sorted(inputs)
    assert (tmp_path / "split.txt").read_text(encoding="ascii").startswith("# why it is here\na\n")
