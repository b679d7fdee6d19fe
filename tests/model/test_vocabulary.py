import dataclasses
import io
import random
import unicodedata

import pytest
import sentencepiece

from export.subject import DevSet
from model.config import TransformerConfig
from model.recipe import AugmentationConfig, Recipe, TokenizerConfig
from model.verbatim import PLACEHOLDER_START
from model.vocabulary import learn_vocabulary, vocabulary_faults
from tests.expanding import expanding, wordy_about_the_unknown

VOCAB_SIZE = 500
NUM_PLACEHOLDERS = 5


def recipe(model_type: str = "unigram", vocab_size: int = VOCAB_SIZE, **tokenizer: str | float) -> Recipe:
    return Recipe(
        name="test",
        source_language="en",
        target_language="de",
        model=TransformerConfig(vocab_size=vocab_size),
        tokenizer=TokenizerConfig(model_type=model_type, num_placeholders=NUM_PLACEHOLDERS, **tokenizer),  # type: ignore[arg-type]
    )


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def tokenizer(request: pytest.FixtureRequest, dev_set: DevSet) -> sentencepiece.SentencePieceProcessor:
    """A vocabulary learned from both sides of the dev slice."""
    proto = learn_vocabulary(dev_set.sources + dev_set.references, recipe(request.param))
    return sentencepiece.SentencePieceProcessor(model_proto=proto)


def test_the_vocabulary_has_exactly_the_size_asked_for(tokenizer: sentencepiece.SentencePieceProcessor) -> None:
    assert tokenizer.vocab_size() == VOCAB_SIZE


def test_special_ids_are_those_of_the_model(tokenizer: sentencepiece.SentencePieceProcessor) -> None:
    config = recipe().model

    found = tokenizer.pad_id(), tokenizer.unk_id(), tokenizer.bos_id(), tokenizer.eos_id()

    assert found == (config.pad_id, config.unk_id, config.bos_id, config.eos_id)


@pytest.mark.parametrize(
    "text",
    ["Ein Hund läuft.", "你好，世界", "😀👍🏽", "Žluťoučký kůň", "a\u200db", "½ ™ …", "</s> <unk>", "\U0010fffd"],
)
def test_any_text_comes_back_in_normal_form_and_nothing_is_unknown(
    tokenizer: sentencepiece.SentencePieceProcessor, text: str
) -> None:
    ids = tokenizer.encode(text)

    assert tokenizer.decode(ids) == unicodedata.normalize("NFKC", text)
    assert not set(ids) & {0, 1, 2, 3}


def test_random_characters_of_all_planes_come_back(tokenizer: sentencepiece.SentencePieceProcessor) -> None:
    rng = random.Random(0)
    planes = [*range(0x4E00, 0x9FFF), *range(0x1F300, 0x1F5FF), *range(0x0400, 0x0450), *range(0x05D0, 0x05EA)]

    for _ in range(200):
        text = "".join(chr(rng.choice(planes)) for _ in range(10))
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_the_dev_sentences_come_back(tokenizer: sentencepiece.SentencePieceProcessor, dev_set: DevSet) -> None:
    texts = dev_set.sources + dev_set.references

    assert [tokenizer.decode(ids) for ids in tokenizer.encode(texts)] == texts


def test_each_placeholder_is_one_token_wherever_it_stands(tokenizer: sentencepiece.SentencePieceProcessor) -> None:
    symbols = [chr(PLACEHOLDER_START + i) for i in range(NUM_PLACEHOLDERS)]
    ids = [tokenizer.piece_to_id(symbol) for symbol in symbols]

    assert len(set(ids)) == NUM_PLACEHOLDERS
    for symbol, token in zip(symbols, ids, strict=True):
        for text in (f"A {symbol} runs.", f"{symbol}", f"x{symbol}y", f"{symbol}{symbol}"):
            encoded = tokenizer.encode(text)
            assert encoded.count(token) == text.count(symbol)
            assert tokenizer.decode(encoded) == text


def test_no_other_text_gives_a_placeholder(tokenizer: sentencepiece.SentencePieceProcessor, dev_set: DevSet) -> None:
    placeholders = {tokenizer.piece_to_id(chr(PLACEHOLDER_START + i)) for i in range(NUM_PLACEHOLDERS)}
    beyond = chr(PLACEHOLDER_START + NUM_PLACEHOLDERS)

    ids = {token for text in [*dev_set.sources, beyond, "\uf8ff"] for token in tokenizer.encode(text)}

    assert not ids & placeholders


def test_the_same_text_gives_the_same_vocabulary(dev_set: DevSet) -> None:
    first, second = (learn_vocabulary(iter(dev_set.sources), recipe()) for _ in range(2))

    assert first == second


@pytest.mark.parametrize(
    ("vocab_size", "expected"),
    [
        (50_000, r"^\[model\]: vocab_size must be at most 1\d\d\d for so little text, not 50000$"),
        (100, r"^\[model\]: vocab_size must be at least 3\d\d for the characters of this text, not 100; "),
    ],
)
def test_a_size_that_does_not_fit_the_text_is_told_with_what_would(
    dev_set: DevSet, vocab_size: int, expected: str
) -> None:
    with pytest.raises(ValueError, match=expected):
        learn_vocabulary(dev_set.sources + dev_set.references, recipe(vocab_size=vocab_size))


def test_no_text_is_told_in_the_words_of_the_library() -> None:
    with pytest.raises(ValueError, match=r"^the vocabulary cannot be learned: "):
        learn_vocabulary([], recipe())


class TestVocabularyFaults:
    def test_one_that_was_learned_for_the_recipe_has_none(
        self, tokenizer: sentencepiece.SentencePieceProcessor
    ) -> None:
        assert vocabulary_faults(tokenizer.serialized_model_proto(), recipe()) == []

    def test_what_is_no_sentencepiece_model_is_said_to_be_none(self) -> None:
        assert vocabulary_faults(b"no model", recipe()) == ["is no SentencePiece model"]
        assert vocabulary_faults(b"", recipe()) == ["is no SentencePiece model"]

    @pytest.mark.parametrize("spec", ["normalizer_spec", "denormalizer_spec"])
    def test_one_that_writes_a_long_text_in_place_of_a_character_is_refused(
        self, tokenizer: sentencepiece.SentencePieceProcessor, spec: str
    ) -> None:
        model = tokenizer.serialized_model_proto()

        assert vocabulary_faults(expanding(64, model, spec), recipe()) == []
        fault = "writes 65 bytes in place of a character, at most 64 are taken"
        assert vocabulary_faults(expanding(65, model, spec), recipe()) == [fault]
        assert vocabulary_faults(wordy_about_the_unknown(65), recipe()) == [fault]

    def test_size_special_ids_and_placeholders_of_a_foreign_one_are_told_at_once(self, dev_set: DevSet) -> None:
        output = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(dev_set.sources), model_writer=output, vocab_size=400, minloglevel=2
        )
        rewriting = dataclasses.replace(recipe(), augmentation=AugmentationConfig(placeholder=0.1))

        faults = vocabulary_faults(output.getvalue(), rewriting)

        assert faults == [
            "has 400 pieces; the recipe's model.vocab_size is 500",
            "its pad id is none; the recipe's model.pad_id is 0",
            "its unk id is 0; the recipe's model.unk_id is 1",
            "its bos id is 1; the recipe's model.bos_id is 2",
            "its eos id is 2; the recipe's model.eos_id is 3",
            "lacks U+E000 and others of the recipe's tokenizer.num_placeholders, 5",
        ]
        assert vocabulary_faults(output.getvalue(), recipe()) == faults[:-1]  # which pairs are not rewritten with


@pytest.fixture(scope="module")
def plain_tokenizer(dev_set: DevSet) -> sentencepiece.SentencePieceProcessor:
    how = recipe(normalization="invisible", split_digits=True)
    return sentencepiece.SentencePieceProcessor(
        model_proto=learn_vocabulary([*dev_set.references, *["12 34567890"] * 100], how)
    )


class TestInvisibleNormalization:
    @pytest.mark.parametrize(
        "text",
        [
            "m² H₂O ½ ™ ℃",
            "Moment … … bitte",
            "ＡＢＣ １２３ ｱ ﷺ",
            "ﬁn Straße STRASSE ẞ",
            "10\u00a0000 € und z.\u202fB. £5",
            '„Zitat“ »x« ‚y‘ ’s "z"',
            "a–b—c−d\u2011e",
            "👍🏽 🇩🇪 👨\u200d👩\u200d👧 ❤\ufe0f",
            "https://a.de/x?y=%20&z=#1 %1$s {name} ${x} \\n",
            "</s> <unk> <pad>",
            "\ue000 x \ue004\ue005",
            "你好，世界 İ ı Ǆ \u212b",
            "Aa ÄÖÜ äöü é ñ ﻿".strip("\ufeff "),
        ],
    )
    def test_all_that_a_reader_sees_comes_back(
        self, plain_tokenizer: sentencepiece.SentencePieceProcessor, text: str
    ) -> None:
        assert plain_tokenizer.decode(plain_tokenizer.encode(text)) == text

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("  a  b ", "a b"),
            ("a\tb\nc\r\nd\x85e\u2028f", "a b c d e f"),
            ("a\u3000b\u2009c", "a b c"),
            ("so\u00adft\u200b, \ufeffx\u2060y", "soft, xy"),
            ("a\x07b\x1bc\x7fd\x9fe", "abcde"),
            ("u\u0308ber E\u0301tude e\u0323\u0302", "über Étude ệ"),
            ("\t \n", ""),
        ],
    )
    def test_what_no_reader_sees_is_made_plain(
        self, plain_tokenizer: sentencepiece.SentencePieceProcessor, text: str, expected: str
    ) -> None:
        assert plain_tokenizer.decode(plain_tokenizer.encode(text)) == expected

    def test_each_digit_is_a_token(self, plain_tokenizer: sentencepiece.SentencePieceProcessor) -> None:
        assert plain_tokenizer.encode("1234,50", out_type=str) == ["▁", *"1234,50"]
