import dataclasses
import json
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from server.bundle.manifest import Manifest, SpecialIds
from server.bundle.tokenizer import Tokenizer
from tests.server.bundle.conftest import TYPED, faults_of, open_tokenizer

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
SOURCE = [
    *SPECIAL,
    "th",
    "e</w>",
    "the</w>",
    "dog</w>",
    ".</w>",
    "&lt;</w>",
    "/</w>",
    "s</w>",
    "&gt;</w>",
    "&quot;</w>",
]
TARGET = [*SPECIAL, "der</w>", "Hund</w>", ".</w>", "&quot;</w>", "Hu", "nd</w>", "&amp;</w>", "@-@</w>"]
MERGES = ["t h", "th e</w>", "o g</w>", "d og</w>", "& l", "&l t", "&lt ;</w>", "& g", "&g t", "&gt ;</w>"]


def files(merges: list[str] = MERGES, **changes: Any) -> dict[str, bytes]:
    moses = {"source_language": "en", "target_language": "de", "merges": merges, **changes}
    tables = {"source_pieces.json": SOURCE, "target_pieces.json": TARGET}
    shown = {name: [piece if piece not in SPECIAL else "" for piece in pieces] for name, pieces in tables.items()}
    return {name: json.dumps(content).encode() for name, content in {"moses.json": moses, **shown}.items()}


@pytest.fixture(scope="module")
def fairseq(manifest: Manifest) -> Manifest:
    sizes = dataclasses.replace(manifest.dimensions, vocab_size=len(TARGET), source_vocab_size=len(SOURCE))
    return dataclasses.replace(manifest, dimensions=sizes, special_ids=SpecialIds(pad=1, unk=3, bos=2, eos=2))


@pytest.fixture
def tokenizer(fairseq: Manifest) -> Tokenizer:
    pytest.importorskip("sacremoses", reason="needs sacremoses, of the extra moses")
    return open_tokenizer(fairseq, files())


def pieces_of(tokenizer: Tokenizer, text: str) -> list[str]:
    return [SOURCE[token] for token in tokenizer.encode(text)]


def test_words_are_cut_into_pieces_and_end_with_eos(tokenizer: Tokenizer) -> None:
    assert pieces_of(tokenizer, "the dog.") == ["the</w>", "dog</w>", ".</w>", "</s>"]
    assert pieces_of(tokenizer, "The") == ["<unk>", "<unk>", "e</w>", "</s>"]
    assert tokenizer.encode("") == tokenizer.encode(" \u200b") == (2,)


def test_a_source_may_be_made_lower_case(fairseq: Manifest) -> None:
    pytest.importorskip("sacremoses", reason="needs sacremoses, of the extra moses")
    tokenizer = open_tokenizer(fairseq, files(lower_case=True))

    assert pieces_of(tokenizer, "THE Dog") == ["the</w>", "dog</w>", "</s>"]


def test_argos_splits_no_hyphens_and_keeps_what_is_not_printable(fairseq: Manifest) -> None:
    pytest.importorskip("sacremoses", reason="needs sacremoses, of the extra moses")
    merges = ["a -", "a- b</w>", "@ -", "@- @</w>"]
    pieces = [*SPECIAL, "a-b</w>", "a</w>", "b</w>", "@-@</w>", "\ufeff</w>"]
    sizes = dataclasses.replace(fairseq.dimensions, source_vocab_size=len(pieces))
    manifest = dataclasses.replace(fairseq, dimensions=sizes)

    def cut(text: str, **changes: Any) -> list[str]:
        contents = files(merges, **changes)
        contents["source_pieces.json"] = json.dumps(["", "", "", "", *pieces[4:]]).encode()
        return [pieces[token] for token in open_tokenizer(manifest, contents).encode(text)[:-1]]

    assert cut("a-b \ufeff") == ["a</w>", "@-@</w>", "b</w>"]
    assert cut("a-b \ufeff", clean=False, dash_splits=False) == ["a-b</w>", "\ufeff</w>"]


def test_pieces_become_a_text_as_moses_joins_words(tokenizer: Tokenizer) -> None:
    ids = [TARGET.index(piece) for piece in ["&quot;</w>", "der</w>", "Hu", "nd</w>", "&quot;</w>", ".</w>"]]

    assert tokenizer.decode(ids) == '"der Hund".'
    assert tokenizer.decode([4, 11, 5, 0, 1, 2, 3, 10]) == "der-Hund &"
    assert tokenizer.decode([]) == tokenizer.decode([2, 99]) == ""


@pytest.mark.parametrize("typed", [*TYPED, "the</w>", "&lt;/s&gt;", "madeupword0000"])
def test_what_is_typed_is_never_a_control_token(tokenizer: Tokenizer, typed: str) -> None:
    for text in (typed, f"the {typed} dog", f"the{typed}"):
        ids = tokenizer.encode(text)
        assert not {0, 1, 2} & set(ids[:-1])
        assert ids[-1] == 2


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=60))
def test_any_text_has_ids_and_any_ids_a_text(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)

    assert all(3 <= token < len(SOURCE) for token in ids[:-1])
    tokenizer.decode([token % len(TARGET) for token in ids]).encode()


def test_without_the_package_one_line_names_the_extra(fairseq: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacremoses", None)  # as if it were not installed

    assert faults_of(fairseq, files()) == ["moses.json: needs sacremoses: pip install 'babelserve[moses]'"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"merges": ["a b c"]}, "moses.json: 1 merges are no two pieces with a space between, such as 'a b c'"),
        ({"merges": ["ab", "a "]}, "moses.json: 2 merges are no two pieces with a space between, such as 'ab'"),
        ({"merges": "ab"}, "moses.json: merges must be tuple[str, ...], not str"),
        ({"lang": "en"}, "moses.json: lang is unknown"),
    ],
)
def test_a_file_that_is_wrong_is_named(fairseq: Manifest, changes: dict[str, Any], expected: str) -> None:
    assert expected in faults_of(fairseq, files(**changes))


def test_vocabularies_that_do_not_fit_are_named(fairseq: Manifest) -> None:
    small = dataclasses.replace(fairseq.dimensions, vocab_size=4, source_vocab_size=5)

    faults = faults_of(dataclasses.replace(fairseq, dimensions=small), files() | {"moses.json": b"{"})

    assert faults[:2] == [
        "source_pieces.json: has 14 ids, the network has 5",
        "target_pieces.json: has 12 ids, the network has 4",
    ]
    assert faults[2].startswith("moses.json: cannot be read")
