import random

import pytest

from server.bundle.tokenizer import Tokenizer
from server.errors import BundleError
from tests.server.conftest import EOS, VOCAB_SIZE


def test_ids_end_with_eos(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("A dog runs.")

    assert ids[-1] == EOS
    assert EOS not in ids[:-1]


@pytest.mark.parametrize(
    "text",
    ["A dog runs.", "\U0001f600 \u4f60\u597d", "</s> <unk> <s>", "<0x41>", "\ue000 and \ue007", "a\x00b", "\u202etxt"],
)
def test_any_text_comes_back(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)[:-1]) == text


def test_control_symbols_typed_by_a_user_are_plain_text(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("</s><s><pad><unk>")

    assert not {0, 1, 2, 3} & set(ids[:-1])


def test_any_ids_become_text(tokenizer: Tokenizer) -> None:
    source = random.Random(0)

    for _ in range(500):
        text = tokenizer.decode(source.choices(range(VOCAB_SIZE + 8), k=12))
        text.encode()  # no lone surrogate


@pytest.mark.parametrize("model", [b"", b"not a model"])
def test_what_is_no_tokenizer_is_a_fault(model: bytes) -> None:
    with pytest.raises(BundleError, match=r"tokenizer\.model"):
        Tokenizer(model, vocab_size=VOCAB_SIZE, eos_id=EOS)


def test_a_tokenizer_that_does_not_fit_the_network_is_listed_with_all_faults(tokenizer_model: bytes) -> None:
    with pytest.raises(BundleError) as caught:
        Tokenizer(tokenizer_model, vocab_size=100, eos_id=5)

    assert len(caught.value.faults) == 2


def test_what_the_vocabulary_does_not_know_is_counted(tokenizer: Tokenizer) -> None:
    known, unknown = tokenizer.encode("A dog runs."), tokenizer.encode("\u4e16")

    assert tokenizer.num_unknown(known) == 0
    assert tokenizer.num_unknown(unknown) == 3  # one character, three bytes of UTF-8
    assert tokenizer.num_unknown([1]) == 1  # unk
