import dataclasses
import json

import pytest

from server.bundle.manifest import TOKENIZER_FILE, Manifest
from server.bundle.masking import Masking
from tests.server.bundle.conftest import faults_of, open_tokenizer, train, with_vocab


@pytest.mark.parametrize("model", [b"", b"not a model"])
@pytest.mark.parametrize("file", [TOKENIZER_FILE, "source.spm"])
def test_what_is_no_tokenizer_is_a_fault(manifest: Manifest, model: bytes, file: str) -> None:
    assert faults_of(manifest, {file: model}) == [f"{file}: is no SentencePiece model"]


def test_a_tokenizer_that_does_not_fit_the_network_is_listed_with_all_faults(
    manifest: Manifest, tokenizer_model: bytes
) -> None:
    special_ids = dataclasses.replace(manifest.special_ids, eos=5)
    small = dataclasses.replace(manifest, dimensions=with_vocab(manifest, 100), special_ids=special_ids)

    assert faults_of(small, {TOKENIZER_FILE: tokenizer_model}) == [
        "tokenizer.model: has 600 ids, the network has 100",
        "tokenizer.model: ends sentences with id 3, the manifest with 5",
    ]


def test_a_byte_is_no_language(manifest: Manifest, tokenizer_model: bytes) -> None:
    pair = dataclasses.replace(manifest.language_pairs[0], target_prefix=(50,))
    spoken = dataclasses.replace(manifest, language_pairs=(pair,))

    assert faults_of(spoken, {TOKENIZER_FILE: tokenizer_model}) == [
        "tokenizer.model: its bytes have ids of special tokens or prefixes"
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[", "source_pieces.json: cannot be read: Expecting value: line 1 column 2 (char 1)"),
        ('{"a": 1}', "source_pieces.json: the table must be tuple[str, ...], not dict"),
        ('["a", 3]', "source_pieces.json: the table[1] must be str, not int"),
        ('["a", "b", "a", "", ""]', "source_pieces.json: has 'a' 2 times"),
        (json.dumps([str(i) for i in range(601)]), "source_pieces.json: has 601 ids, the network has 600"),
    ],
)
def test_a_table_that_is_none_is_a_fault(manifest: Manifest, foreign_model: bytes, text: str, fault: str) -> None:
    assert faults_of(manifest, {"source.spm": foreign_model, "source_pieces.json": text.encode()}) == [fault]


def test_faults_of_all_files_are_listed_at_once(manifest: Manifest) -> None:
    files = {"source.spm": b"", "source_pieces.json": b"{}", "target.spm": b"", "target_pieces.json": b"[1, 2, 3, 4]"}

    assert [fault.partition(":")[0] for fault in faults_of(manifest, files)] == [
        "source_pieces.json",
        "source.spm",
        "target_pieces.json",
        "target_pieces.json",
        "target_pieces.json",
        "target.spm",
    ]


def test_placeholders_that_the_vocabulary_lacks_are_a_fault(manifest: Manifest) -> None:
    model = train(["<s>", "\ue000"])
    both, one = Masking(num_placeholders=2), Masking(num_placeholders=1)

    assert faults_of(dataclasses.replace(manifest, masking=both), {TOKENIZER_FILE: model}) == [
        "masking.num_placeholders: the vocabulary lacks U+E001"
    ]
    open_tokenizer(dataclasses.replace(manifest, masking=one), {TOKENIZER_FILE: model})
