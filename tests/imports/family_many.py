"""The many-to-many models: M2M100, NLLB and mBART-50, whose decoder must begin with the target language's token."""

from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE, Unigram
from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES as M2M_CODES
from transformers.models.mbart50.tokenization_mbart50 import FAIRSEQ_LANGUAGE_CODES as MBART_CODES
from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES as NLLB_CODES
from transformers.tokenization_utils_base import generate_merges

from tests.imports.families import Direction, Family, write_json
from tests.imports.text import training_pairs
from tests.imports.vocabulary import by_frequency, read_proto, train_pieces

SPECIAL = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "sep_token": "</s>",
    "pad_token": "<pad>",
}
FAIRSEQ_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
MASK = {
    "__type": "AddedToken",
    "content": "<mask>",
    "lstrip": True,
    "normalized": True,
    "rstrip": False,
    "single_word": False,
}


def _write_m2m(directory: Path) -> None:
    texts = _texts()
    pieces = train_pieces(directory / "sentencepiece.bpe.model", texts, 300, model_type="bpe")
    vocabulary = [*FAIRSEQ_SPECIAL, *by_frequency(pieces, texts, drop=5)]
    write_json(directory / "vocab.json", {piece: i for i, piece in enumerate(vocabulary)})
    languages = [f"__{code}__" for code in M2M_CODES["m2m100"]]
    config = _config(len(vocabulary) + len(languages) + 8) | {
        "architectures": ["M2M100ForConditionalGeneration"],
        "decoder_attention_heads": 6,
        "decoder_ffn_dim": 80,
        "decoder_layerdrop": 0.05,
        "decoder_layers": 2,
        "early_stopping": True,
        "encoder_attention_heads": 3,
        "encoder_ffn_dim": 112,
        "encoder_layerdrop": 0.05,
        "encoder_layers": 1,
        "model_type": "m2m_100",
        "num_beams": 5,
        "num_hidden_layers": 1,
        "transformers_version": "4.4.0.dev0",
    }
    write_json(directory / "config.json", config)
    write_json(directory / "generation_config.json", _generation() | {"early_stopping": True, "num_beams": 5})
    special = SPECIAL | {"additional_special_tokens": languages}
    write_json(directory / "special_tokens_map.json", special, indent=None)
    tokenizer = SPECIAL | {
        "src_lang": None,
        "tgt_lang": None,
        "additional_special_tokens": languages,
        "special_tokens_map_file": "m2m_100_1.2B_v2/special_tokens_map.json",
        "tokenizer_file": None,
        "tokenizer_class": "M2M100Tokenizer",
    }
    write_json(directory / "tokenizer_config.json", tokenizer, indent=None)


def _write_nllb(directory: Path) -> None:
    pieces = train_pieces(directory / "sentencepiece.bpe.model", _texts(), 300, model_type="bpe")
    vocabulary = _shifted(pieces, NLLB_CODES)
    merges = generate_merges({pieces.id_to_piece(i): i for i in range(pieces.get_piece_size())})
    ids = {piece: i for i, piece in enumerate(vocabulary)}
    model = BPE(vocab=ids, merges=merges, unk_token="<unk>", fuse_unk=True)
    _write_tokenizer_json(directory, model, NLLB_CODES, "eng_Latn")
    config = _config(len(vocabulary) + 2) | {
        "architectures": ["M2M100ForConditionalGeneration"],
        "decoder_attention_heads": 2,
        "decoder_ffn_dim": 64,
        "decoder_layerdrop": 0,
        "decoder_layers": 1,
        "encoder_attention_heads": 6,
        "encoder_ffn_dim": 96,
        "encoder_layerdrop": 0,
        "encoder_layers": 3,
        "model_type": "m2m_100",
        "num_hidden_layers": 3,
        "tokenizer_class": "NllbTokenizer",
        "torch_dtype": "float32",
        "transformers_version": "4.21.0.dev0",
    }
    write_json(directory / "config.json", config)
    write_json(directory / "generation_config.json", _generation())
    special = SPECIAL | {"cls_token": "<s>", "additional_special_tokens": NLLB_CODES}
    plain_mask = {key: value for key, value in MASK.items() if key != "__type"}
    write_json(directory / "special_tokens_map.json", special | {"mask_token": plain_mask}, indent=None)
    tokenizer = special | {
        "legacy_behaviour": False,
        "mask_token": MASK,
        "model_max_length": 1024,
        "name_or_path": "facebook/nllb-200-distilled-600M",
        "sp_model_kwargs": {},
        "src_lang": None,
        "tgt_lang": None,
        "special_tokens_map_file": None,
        "tokenizer_class": "NllbTokenizer",
    }
    write_json(directory / "tokenizer_config.json", tokenizer, indent=None)


def _write_mbart(directory: Path) -> None:
    pieces = train_pieces(directory / "sentencepiece.bpe.model", _texts(), 280, model_type="unigram")
    vocabulary = _shifted(pieces, MBART_CODES)
    scores = {pieces.id_to_piece(i): pieces.get_score(i) for i in range(3, pieces.get_piece_size())}
    model = Unigram([(piece, scores.get(piece, 0.0)) for piece in vocabulary], unk_id=3, byte_fallback=False)
    _write_tokenizer_json(directory, model, MBART_CODES, "en_XX")
    config = _config(len(vocabulary)) | {
        # relu in Facebook's own mBART-50, gelu in what was trained on from mBART-25.
        "activation_function": "gelu",
        "_num_labels": 3,
        "add_bias_logits": False,
        "add_final_layer_norm": True,
        "architectures": ["MBartForConditionalGeneration"],
        "classif_dropout": 0.0,
        "classifier_dropout": 0.0,
        "decoder_attention_heads": 3,
        "decoder_ffn_dim": 112,
        "decoder_layerdrop": 0.0,
        "decoder_layers": 2,
        "early_stopping": True,
        "encoder_attention_heads": 2,
        "encoder_ffn_dim": 64,
        "encoder_layerdrop": 0.0,
        "encoder_layers": 1,
        "forced_eos_token_id": 2,
        "id2label": {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"},
        "label2id": {"LABEL_0": 0, "LABEL_1": 1, "LABEL_2": 2},
        "max_position_embeddings": 128,
        "model_type": "mbart",
        "normalize_before": True,
        "normalize_embedding": True,
        "num_beams": 5,
        "num_hidden_layers": 1,
        "output_past": True,
        "static_position_embeddings": False,
        "tokenizer_class": "MBart50Tokenizer",
        "transformers_version": "4.4.0.dev0",
    }
    write_json(directory / "config.json", config)
    generation = _generation() | {"early_stopping": True, "forced_eos_token_id": 2, "num_beams": 5}
    write_json(directory / "generation_config.json", generation)
    special = SPECIAL | {"cls_token": "<s>", "mask_token": "<mask>", "additional_special_tokens": MBART_CODES}
    write_json(directory / "special_tokens_map.json", special, indent=None)
    tokenizer = special | {
        "src_lang": None,
        "tgt_lang": None,
        "mask_token": MASK,
        "language_codes": "ML50",
        "tokenizer_class": "MBart50Tokenizer",
    }
    write_json(directory / "tokenizer_config.json", tokenizer, indent=None)


def _texts() -> list[str]:
    return [pair.in_language(code) for code in ("en", "de") for pair in training_pairs()]


def _shifted(pieces: Any, languages: list[str]) -> list[str]:
    """Returns the vocabulary in fairseq's order: SentencePiece's ids plus one, then the languages and <mask>."""
    ordinary = [pieces.id_to_piece(i) for i in range(3, pieces.get_piece_size())]
    return [*FAIRSEQ_SPECIAL, *ordinary, *languages, "<mask>"]


def _write_tokenizer_json(directory: Path, model: Any, languages: list[str], first: str) -> None:
    proto = read_proto(directory / "sentencepiece.bpe.model")
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace("▁", prepend_scheme="always")
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in [*FAIRSEQ_SPECIAL, *languages]])
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=True)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single=[first, "$A", "</s>"],
        pair=[first, "$A", "$B", "</s>"],
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in (first, "</s>")],
    )
    tokenizer.save(str(directory / "tokenizer.json"))


def _config(vocab_size: int) -> dict[str, Any]:
    return {
        "activation_dropout": 0.0,
        "activation_function": "relu",
        "attention_dropout": 0.1,
        "bos_token_id": 0,
        "d_model": 48,
        "decoder_start_token_id": 2,
        "dropout": 0.1,
        "eos_token_id": 2,
        "gradient_checkpointing": False,
        "init_std": 0.02,
        "is_encoder_decoder": True,
        "max_length": 200,
        "max_position_embeddings": 1024,
        "pad_token_id": 1,
        "scale_embedding": True,
        "use_cache": True,
        "vocab_size": vocab_size,
    }


def _generation() -> dict[str, Any]:
    return {
        "_from_model_config": True,
        "bos_token_id": 0,
        "decoder_start_token_id": 2,
        "eos_token_id": 2,
        "max_length": 200,
        "pad_token_id": 1,
        "transformers_version": "4.27.0.dev0",
    }


def _encode(tokenizer: Any, text: str, direction: Direction) -> list[int]:
    tokenizer.src_lang = direction.source_name
    ids: list[int] = tokenizer(text)["input_ids"]
    return ids


def _labels(tokenizer: Any, text: str, direction: Direction) -> list[int]:
    tokenizer.tgt_lang = direction.target_name
    ids: list[int] = tokenizer(text_target=text)["input_ids"]
    return ids


def _directions(names: dict[str, str]) -> tuple[Direction, ...]:
    ways = (("en", "de"), ("de", "en"), ("en", "nl"), ("de", "nl"))
    return tuple(Direction(source, target, names[source], names[target]) for source, target in ways)


def _language_id(tokenizer: Any, direction: Direction) -> int:
    language: int = tokenizer.convert_tokens_to_ids(direction.target_name)
    return language


M2M100 = Family(
    name="m2m100",
    write=_write_m2m,
    directions=_directions({"en": "en", "de": "de", "nl": "nl"}),
    encode=_encode,
    labels=_labels,
    forced_bos=lambda tokenizer, direction: tokenizer.get_lang_id(direction.target_name),
    half=True,
    duplicated=("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"),
)
NLLB = Family(
    name="nllb",
    write=_write_nllb,
    directions=_directions({"en": "eng_Latn", "de": "deu_Latn", "nl": "nld_Latn"}),
    encode=_encode,
    labels=_labels,
    forced_bos=_language_id,
    half=True,
)
MBART50 = Family(
    name="mbart50",
    write=_write_mbart,
    directions=_directions({"en": "en_XX", "de": "de_DE", "nl": "nl_XX"}),
    encode=_encode,
    labels=_labels,
    forced_bos=_language_id,
    half=True,
)
