import dataclasses
import json
import random

import pytest
import sentencepiece
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from server.bundle.languages import LanguagePair, Languages, SourceLanguage, TargetLanguage
from server.bundle.manifest import TOKENIZER_FILE, Manifest, SpecialIds
from server.bundle.masking import Masking
from server.bundle.tokenizer import Tokenizer
from tests.server.bundle.conftest import TYPED, open_tokenizer, train, with_vocab
from tests.server.conftest import EOS, VOCAB_SIZE

PIECES_AHEAD = ["<pad>", "", "</s>", "<unk>", "__de__", "__en__", "<mask>"]  # of a table like those of others' models


@pytest.fixture(scope="module")
def table(foreign_model: bytes) -> list[str]:
    """A pieces table in an order of its own, its special tokens elsewhere than SentencePiece's."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=foreign_model)
    pieces = [processor.IdToPiece(i) for i in range(processor.vocab_size())]
    own = [piece for piece in pieces if piece not in PIECES_AHEAD]
    random.Random(1).shuffle(own)
    return [*PIECES_AHEAD, *own]


@pytest.fixture(scope="module")
def tabled(manifest: Manifest, foreign_model: bytes, table: list[str]) -> Tokenizer:
    """A tokenizer by that table, of a model that is told the target by a token ahead of the source."""
    described = dataclasses.replace(
        manifest,
        special_ids=SpecialIds(pad=0, unk=3, bos=0, eos=2),
        language_pairs=(LanguagePair(source="en", target="de", source_prefix=(5,), target_prefix=(4,)),),
    )
    return open_tokenizer(described, {"source.spm": foreign_model, "source_pieces.json": json.dumps(table).encode()})


def test_ids_end_with_eos(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("A dog runs.")

    assert ids[-1] == EOS
    assert EOS not in ids[:-1]


def test_a_prefix_comes_first_and_is_counted_as_added(tokenizer: Tokenizer) -> None:
    plain = tokenizer.encode("A dog runs.")

    assert tokenizer.encode("A dog runs.", (7, 8)) == (7, 8, *plain)
    assert tokenizer.num_added() == 1
    assert tokenizer.num_added((7, 8)) == 3


def test_a_model_may_have_no_eos_behind_its_source(manifest: Manifest, tokenizer_model: bytes) -> None:
    bare = open_tokenizer(dataclasses.replace(manifest, source_eos=False), {TOKENIZER_FILE: tokenizer_model})
    usual = open_tokenizer(manifest, {TOKENIZER_FILE: tokenizer_model})

    assert bare.encode("A dog runs.") == usual.encode("A dog runs.")[:-1]
    assert bare.num_added((9,)) == 1
    assert bare.encode("") == ()


@pytest.mark.parametrize(
    "text",
    ["A dog runs.", "\U0001f600 \u4f60\u597d", "</s> <unk> <s>", "<0x41>", "\ue000 and \ue007", "a\x00b", "\u202etxt"],
)
def test_any_text_comes_back(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)[:-1]) == text


def test_control_symbols_typed_by_a_user_are_plain_text(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("</s><s><pad><unk>")

    assert not {0, 1, 2, 3} & set(ids[:-1])


def test_any_ids_become_text(manifest: Manifest, tokenizer_model: bytes) -> None:
    padded = dataclasses.replace(manifest, dimensions=with_vocab(manifest, VOCAB_SIZE + 8))
    tokenizer = open_tokenizer(padded, {TOKENIZER_FILE: tokenizer_model})
    source = random.Random(0)

    for _ in range(500):
        text = tokenizer.decode(source.choices(range(VOCAB_SIZE + 8), k=12))
        text.encode()  # no lone surrogate


def test_what_the_vocabulary_does_not_know_is_counted(tokenizer: Tokenizer) -> None:
    known, unknown = tokenizer.encode("A dog runs."), tokenizer.encode("\u4e16")

    assert tokenizer.num_unknown(known) == 0
    assert tokenizer.num_unknown(unknown) == 3  # one character, three bytes of UTF-8
    assert tokenizer.num_unknown([1]) == 1  # unk


def test_pieces_are_looked_up_in_the_table(tabled: Tokenizer, foreign_model: bytes, table: list[str]) -> None:
    processor = sentencepiece.SentencePieceProcessor(model_proto=foreign_model)
    text = "Two dogs are running."

    assert [table[token] for token in tabled.encode(text, (5,))] == ["__en__", *processor.EncodeAsPieces(text), "</s>"]
    assert tabled.decode(tabled.encode(text)[:-1]) == text


def test_a_piece_that_is_not_in_the_table_is_unk(tabled: Tokenizer) -> None:
    ids = tabled.encode("A \u4e16 dog")

    assert ids.count(3) == 1
    assert tabled.num_unknown(ids) == 1
    assert "\u2047" in tabled.decode(ids)  # SentencePiece's mark


def test_ids_that_stand_for_no_text_show_none(tabled: Tokenizer) -> None:
    dog = tabled.encode("dog")[:-1]

    assert tabled.decode([0, 4, *dog, 1, 2, 5]) == "dog"


def test_a_target_may_have_a_model_and_a_table_of_its_own(
    manifest: Manifest, foreign_model: bytes, tokenizer_model: bytes, table: list[str]
) -> None:
    sides = dataclasses.replace(
        manifest,
        dimensions=with_vocab(manifest, vocab_size=VOCAB_SIZE, source_vocab_size=len(table)),
        special_ids=SpecialIds(pad=0, unk=1, bos=2, eos=EOS),
    )
    source = json.dumps(["", "<unk>", "", "", *table[len(PIECES_AHEAD) :]]).encode()
    target_model = sentencepiece.SentencePieceProcessor(model_proto=tokenizer_model)
    target_table = [target_model.IdToPiece(i) if i > EOS else "" for i in range(VOCAB_SIZE)]
    target_table[4:] = target_table[:3:-1]
    files = {
        "source.spm": foreign_model,
        "source_pieces.json": source,
        "target.spm": tokenizer_model,
        "target_pieces.json": json.dumps(target_table).encode(),
    }
    by_tables = open_tokenizer(sides, files)
    by_ids = open_tokenizer(manifest, {"source.spm": tokenizer_model, "target.spm": train([])})

    ids = [VOCAB_SIZE + EOS - token for token in target_model.encode("Two dogs")]
    assert by_tables.decode(ids) == "Two dogs"
    assert by_tables.encode("Two dogs")[-1] == EOS
    assert by_ids.encode("Two dogs") == (*target_model.encode("Two dogs"), EOS)
    assert by_ids.decode(by_ids.encode("Two dogs")[:-1]) != "Two dogs"  # ids of the other side


def typed_text() -> st.SearchStrategy[str]:
    """Text with what looks like control and language tokens, alone and amid other characters."""
    return st.lists(st.sampled_from(TYPED) | st.text(max_size=5), max_size=8).map("".join)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=typed_text())
def test_no_text_becomes_a_token_of_the_table_that_is_not_text(tabled: Tokenizer, text: str) -> None:
    ids = tabled.encode(text)

    assert ids[-1] == 2
    assert not {0, 1, 2, 4, 5} & set(ids[:-1])


@pytest.fixture(scope="module")
def tongued(manifest: Manifest, foreign_model: bytes) -> tuple[Tokenizer, frozenset[int]]:
    """A tokenizer whose model would cut language tokens out of text, and those tokens."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=foreign_model)
    to_german, de = processor.PieceToId("<2de>"), processor.PieceToId("__de__")
    assert {to_german, de} < set(processor.encode("a<2de>b__de__"))
    languages = Languages(
        source={"en": SourceLanguage()}, target={"de": TargetLanguage(source_prefix=(to_german,), prefix=(de,))}
    )
    described = dataclasses.replace(manifest, language_pairs=(), languages=languages)
    return open_tokenizer(described, {TOKENIZER_FILE: foreign_model}), frozenset({0, EOS, to_german, de})


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=typed_text())
def test_no_text_becomes_a_language_even_if_the_model_would_cut_it_so(
    tongued: tuple[Tokenizer, frozenset[int]], text: str
) -> None:
    tokenizer, control = tongued

    ids = tokenizer.encode(text)

    assert not control & set(ids[:-1])
    assert "<2de>" not in tokenizer.decode([*control])


def test_what_looks_like_a_language_is_still_there_as_text(tongued: tuple[Tokenizer, frozenset[int]]) -> None:
    tokenizer, _ = tongued
    ids = tokenizer.encode("a man de")[:-1]
    typed = tokenizer.encode("__de__")[:-1]

    assert tokenizer.decode(ids) == "a man de"
    assert "de" in tokenizer.decode(typed)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=typed_text())
def test_no_text_becomes_a_control_token_of_our_own_models(tokenizer: Tokenizer, text: str) -> None:
    assert not {0, 1, 2, EOS} & set(tokenizer.encode(text)[:-1])


def test_a_character_is_known_if_it_reaches_the_network_as_itself(tokenizer: Tokenizer) -> None:
    assert all(map(tokenizer.knows, "aA."))
    assert not any(map(tokenizer.knows, "\u4f60\u2192\u0141"))  # bytes
    assert not tokenizer.knows("\ufb01")  # normalised to "fi"


def test_a_symbol_of_the_models_is_no_character_of_a_text(tokenizer: Tokenizer) -> None:
    assert not tokenizer.knows("\ue000")


def test_a_character_that_a_trial_has_lost_is_not_known(manifest: Manifest, tokenizer_model: bytes) -> None:
    tried = dataclasses.replace(manifest, masking=Masking(unknown_characters="xy"))

    tokenizer = open_tokenizer(tried, {TOKENIZER_FILE: tokenizer_model})

    assert [tokenizer.knows(each) for each in "wxyz"] == [True, False, False, True]


def test_a_table_knows_what_it_has(tabled: Tokenizer) -> None:
    assert tabled.knows("a")
    assert not tabled.knows("\u4f60")


def test_the_sources_pieces_are_told(tokenizer: Tokenizer, tabled: Tokenizer, table: list[str]) -> None:
    pieces = tokenizer.source_pieces()
    assert {"\ue000", "\u2581dog"} <= set(pieces)
    assert not {"<pad>", "<unk>", "<s>", "</s>", "<0x41>"} & set(pieces)
    assert set(table[7:]) <= set(tabled.source_pieces())


def test_a_given_translation_becomes_ids_with_eos(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode_target("A dog </s> runs.")

    assert ids is not None
    assert ids.index(EOS) == len(ids) - 1
    assert tokenizer.decode(ids) == "A dog </s> runs."
