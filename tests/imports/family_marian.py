"""OPUS-MT: one vocabulary for both sides with swish, twice, and one for each side with target tokens and ReLU."""

from pathlib import Path
from typing import Any

from tests.imports.families import Direction, Family, write_json
from tests.imports.text import training_pairs
from tests.imports.vocabulary import by_frequency, train_pieces

TARGET_TOKENS = {"de": ">>deu<<", "en": ">>eng<<", "nl": ">>nld<<"}


def _write_shared(directory: Path) -> None:
    """Writes what an OPUS-MT model of 2020 has; its eos is not 0, as in models that others have trained on."""
    english, german = ([pair.in_language(code) for pair in training_pairs()] for code in ("en", "de"))
    source = train_pieces(directory / "source.spm", english, 280, model_type="unigram", rule="nmt_nfkc")
    target = train_pieces(directory / "target.spm", german, 300, model_type="unigram")
    pieces = list(dict.fromkeys([*by_frequency(source, english, drop=5), *by_frequency(target, german)]))
    vocabulary = [*pieces[:100], "</s>", *pieces[100:140], "<unk>", *pieces[140:], "<pad>"]
    write_json(directory / "vocab.json", {piece: i for i, piece in enumerate(vocabulary)})
    pad, eos = len(vocabulary) - 1, vocabulary.index("</s>")
    config = _config(pad, eos, len(vocabulary)) | {
        "activation_function": "swish",
        "bad_words_ids": [[pad]],
        "d_model": 48,
        "decoder_attention_heads": 3,
        "decoder_ffn_dim": 80,
        "decoder_layers": 2,
        "encoder_attention_heads": 6,
        "encoder_ffn_dim": 112,
        "encoder_layers": 1,
        "max_length": 512,
        "num_beams": 6,
        "num_hidden_layers": 1,
    }
    write_json(directory / "config.json", config)
    write_json(directory / "generation_config.json", _generation(pad, eos, num_beams=4) | {"renormalize_logits": True})
    write_json(directory / "tokenizer_config.json", {"target_lang": "de", "source_lang": "en"}, indent=None)


def _write_first(directory: Path) -> None:
    """Writes what most OPUS-MT models have: eos is 0, as bos would be, unknown 1, and <pad> comes last."""
    english, german = ([pair.in_language(code) for pair in training_pairs()] for code in ("en", "de"))
    source = train_pieces(directory / "source.spm", english, 150, model_type="unigram")
    target = train_pieces(directory / "target.spm", german, 160, model_type="unigram")
    pieces = dict.fromkeys([*by_frequency(source, english, drop=3), *by_frequency(target, german)])
    vocabulary = ["</s>", "<unk>", *pieces, "<pad>"]
    write_json(directory / "vocab.json", {piece: i for i, piece in enumerate(vocabulary)})
    pad = len(vocabulary) - 1
    config = _config(pad, 0, len(vocabulary)) | {
        "activation_function": "swish",
        "bad_words_ids": [[pad]],
        "d_model": 32,
        "decoder_attention_heads": 4,
        "decoder_ffn_dim": 64,
        "decoder_layers": 1,
        "encoder_attention_heads": 2,
        "encoder_ffn_dim": 48,
        "encoder_layers": 2,
        "max_length": 512,
        "num_beams": 4,
        "num_hidden_layers": 2,
    }
    write_json(directory / "config.json", config)
    write_json(directory / "generation_config.json", _generation(pad, 0, num_beams=4))
    write_json(directory / "tokenizer_config.json", {"target_lang": "de", "source_lang": "en"}, indent=None)


def _write_separate(directory: Path) -> None:
    """Writes what a model of the tc-big generation has, with a vocabulary for each side and three target languages."""
    english, german = ([pair.in_language(code) for pair in training_pairs()] for code in ("en", "de"))
    source = train_pieces(directory / "source.spm", english, 260, model_type="unigram")
    target = train_pieces(directory / "target.spm", [*german, *english], 320, model_type="unigram")
    source_pieces = by_frequency(source, english, drop=5)
    target_pieces = by_frequency(target, [*german, *english])
    # <pad>, which is the start too, and </s> have one id in both: config.json has no other place for them.
    sides = {
        "vocab.json": ["<unk>", *source_pieces[:60], "</s>", *TARGET_TOKENS.values(), *source_pieces[60:200], "<pad>"],
        "target_vocab.json": ["<unk>", *target_pieces[:60], "</s>", *target_pieces[60:203], "<pad>"],
    }
    sides["vocab.json"] += source_pieces[200:]
    sides["target_vocab.json"] += target_pieces[203:]
    for name, vocabulary in sides.items():
        write_json(directory / name, {piece: i for i, piece in enumerate(vocabulary)})
    pad, eos = (sides["vocab.json"].index(token) for token in ("<pad>", "</s>"))
    assert [sides["target_vocab.json"].index(token) for token in ("<pad>", "</s>")] == [pad, eos]
    config = _config(pad, eos, len(sides["vocab.json"])) | {
        "activation_function": "relu",
        "d_model": 48,
        "decoder_attention_heads": 6,
        "decoder_ffn_dim": 96,
        "decoder_layers": 2,
        "decoder_vocab_size": len(sides["target_vocab.json"]),
        "encoder_attention_heads": 2,
        "encoder_ffn_dim": 64,
        "encoder_layers": 3,
        "max_length": 512,
        "max_position_embeddings": 1024,
        "num_beams": 4,
        "num_hidden_layers": 3,
        "share_encoder_decoder_embeddings": False,
        "tie_word_embeddings": True,
        "torch_dtype": "float16",
    }
    write_json(directory / "config.json", config)
    write_json(directory / "generation_config.json", _generation(pad, eos, num_beams=4))
    special = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
    write_json(directory / "special_tokens_map.json", special, indent=None)
    tokenizer: dict[str, Any] = {
        "source_lang": "eng",
        "target_lang": "deu+eng+nld",
        **special,
        "model_max_length": 512,
        "sp_model_kwargs": {},
        "separate_vocabs": True,
        "special_tokens_map_file": None,
        "name_or_path": "marian-models/opusTCv20210807_transformer-big/eng-gmw",
        "tokenizer_class": "MarianTokenizer",
    }
    write_json(directory / "tokenizer_config.json", tokenizer, indent=None)


def _config(pad: int, eos: int, vocab_size: int) -> dict[str, Any]:
    """Returns the keys that the config of every OPUS-MT model has, those that mean nothing to it included."""
    return {
        "_num_labels": 3,
        "activation_dropout": 0.0,
        "add_bias_logits": False,
        "add_final_layer_norm": False,
        "architectures": ["MarianMTModel"],
        "attention_dropout": 0.0,
        "bos_token_id": 0,
        "classif_dropout": 0.0,
        "classifier_dropout": 0.0,
        "decoder_layerdrop": 0.0,
        "decoder_start_token_id": pad,
        "dropout": 0.1,
        "encoder_layerdrop": 0.0,
        "eos_token_id": eos,
        "forced_eos_token_id": eos,
        "extra_pos_embeddings": pad + 1,
        "id2label": {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"},
        "init_std": 0.02,
        "is_encoder_decoder": True,
        "label2id": {"LABEL_0": 0, "LABEL_1": 1, "LABEL_2": 2},
        "max_position_embeddings": 512,
        "model_type": "marian",
        "normalize_before": False,
        "normalize_embedding": False,
        "pad_token_id": pad,
        "scale_embedding": True,
        "static_position_embeddings": True,
        "transformers_version": "4.22.0.dev0",
        "use_cache": True,
        "vocab_size": vocab_size,
    }


def _generation(pad: int, eos: int, num_beams: int) -> dict[str, Any]:
    return {
        "bad_words_ids": [[pad]],
        "bos_token_id": 0,
        "decoder_start_token_id": pad,
        "eos_token_id": eos,
        "forced_eos_token_id": eos,
        "max_length": 512,
        "num_beams": num_beams,
        "pad_token_id": pad,
        "transformers_version": "4.32.0.dev0",
    }


def _encode(tokenizer: Any, text: str, direction: Direction) -> list[int]:
    prefix = f"{direction.target_name} " if direction.target_name else ""
    ids: list[int] = tokenizer(prefix + text)["input_ids"]
    return ids


def _labels(tokenizer: Any, text: str, direction: Direction) -> list[int]:
    ids: list[int] = tokenizer(text_target=text)["input_ids"]
    return ids


SHARED = Family(
    name="marian-shared",
    write=_write_shared,
    directions=(Direction("en", "de"),),
    encode=_encode,
    labels=_labels,
    absent=("embed_positions",),
)
FIRST = Family(
    name="marian-eos-first",
    write=_write_first,
    directions=(Direction("en", "de"),),
    encode=_encode,
    labels=_labels,
    half=True,
    pickled=True,
    steps=1200,
    absent=("embed_positions",),
)
SEPARATE = Family(
    name="marian-separate",
    write=_write_separate,
    directions=tuple(Direction("en", code, target_name=token) for code, token in TARGET_TOKENS.items()),
    encode=_encode,
    labels=_labels,
    half=True,
    absent=("embed_positions",),
)
