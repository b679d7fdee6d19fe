"""That the maps have the sizes of real ones, and mean the same to CTranslate2; speeds are not tested."""

from pathlib import Path

import numpy as np
import pytest
import torch

from model.config import TransformerConfig
from model.transformer import Transformer
from server.bundle.manifest import TOKENIZER_FILE
from server.bundle.shortlist import Shortlist
from tests.acceptance.server_process import BUILTIN_BUNDLE
from tests.bench.shortlist import own_shortlist, random_shortlist
from tests.bench.systems import CTranslate2System, Settings
from tests.bench.text import DEFAULT_TEXT, Text, read_text
from tests.bench.weights import SHAPES

TINY = TransformerConfig(vocab_size=2000, d_model=16, num_heads=2, encoder_layers=1, decoder_layers=1, ffn_dim=32)
SOURCES = [(700, 800, 900, 3), (1000, 1100, 3), (1200, 3)]


def test_a_sentence_has_as_many_candidates_as_with_a_real_map_and_a_batch_far_fewer_than_its_sentences_add_up_to() -> (
    None
):
    text = read_text(DEFAULT_TEXT, (BUILTIN_BUNDLE / TOKENIZER_FILE).read_bytes())
    shortlist = random_shortlist(SHAPES["base"])

    alone = [len(shortlist.candidates(ids)) for ids in text.source_ids]
    batches = [text.source_ids[start : start + 32] for start in range(0, 480, 32)]
    together = [len(shortlist.candidates(sum(batch, ()))) for batch in batches]

    assert 1_000 < np.mean(alone) < 1_500
    assert 5_000 < np.mean(together) < 10_000


def test_a_random_map_is_the_same_for_the_same_seed_only() -> None:
    one, same, other = (random_shortlist(TINY, seed) for seed in (1, 1, 2))

    assert np.array_equal(one.by_token, same.by_token)
    assert not np.array_equal(one.by_token, other.by_token)


def test_every_sentence_can_end_and_can_copy_its_tokens() -> None:
    shortlist = random_shortlist(TINY)

    for ids in SOURCES:
        assert {TINY.eos_id, *ids} <= set(shortlist.candidates(ids).tolist())
        assert TINY.pad_id not in shortlist.candidates(ids)


def test_a_trained_model_gets_the_tokens_of_its_own_translations() -> None:
    torch.manual_seed(0)
    model = Transformer(TINY).eval()

    shortlist = own_shortlist(model, Text(["", "", ""], SOURCES, b""))

    assert len(shortlist.by_token) == TINY.vocab_size
    assert TINY.eos_id in shortlist.common


def test_ctranslate2_restricts_a_sentence_to_its_candidates_and_a_batch_to_all_of_its_sentences(tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2", reason="needs the dependency group bench")
    from tests.bench.conversion import convert  # noqa: PLC0415

    torch.manual_seed(0)
    tokens = np.arange(TINY.vocab_size, dtype=np.int32)
    shortlist = Shortlist(np.stack([tokens, tokens ^ 1], axis=1), np.array([1, 2, 3], np.int32))
    convert(Transformer(TINY).eval(), tmp_path / "model", "float32", shortlist)

    free, restricted = (
        CTranslate2System(
            Settings(system="ctranslate2", path=str(tmp_path / "model"), precision="float32", workers=1, shortlist=on)
        )
        for on in (False, True)
    )

    for source in SOURCES:
        assert not _is_within(free.translate([source], 1), shortlist, source)
        assert _is_within(restricted.translate([source], 1), shortlist, source)
    together = restricted.translate(SOURCES, 1)
    assert _is_within(together, shortlist, sum(SOURCES, ()))
    assert not all(_is_within([ids], shortlist, source) for ids, source in zip(together, SOURCES, strict=True))


def _is_within(translations: list[list[int]], shortlist: Shortlist, source: tuple[int, ...]) -> bool:
    return {token for ids in translations for token in ids} <= set(shortlist.candidates(source).tolist())
