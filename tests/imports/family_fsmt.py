"""FSMT, fairseq's WMT models: Moses and BPE, a vocabulary for each side, untied output, in pytorch_model.bin."""

import functools
from collections import Counter
from pathlib import Path
from typing import Any

import sacremoses
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer
from transformers import FSMTTokenizer

from tests.imports.families import Direction, Family, write_json
from tests.imports.text import training_pairs

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


def _write(directory: Path) -> None:
    words = {code: _words(code) for code in ("en", "de")}
    _write_merges(directory / "merges.txt", [line for lines in words.values() for line in lines])
    for name in ("vocab-src.json", "vocab-tgt.json"):
        write_json(directory / name, {token: i for i, token in enumerate(SPECIAL)})
    vocabularies = {}
    for name, code in (("vocab-src.json", "en"), ("vocab-tgt.json", "de")):
        bpe = _tokenizer(directory, "vocab-src.json", "vocab-tgt.json", (code, code))
        counts = Counter(token for line in words[code] for word in line for token in bpe.bpe(word).split())
        tokens = sorted(counts, key=lambda token: (-counts[token], token))
        vocabularies[name] = [*SPECIAL, *tokens[: len(tokens) - 5]]
    for name, vocabulary in vocabularies.items():
        write_json(directory / name, {token: i for i, token in enumerate(vocabulary)})
    write_json(directory / "config.json", _config(*map(len, vocabularies.values())))
    # config.json says nowhere that the start is </s>. Without this file transformers 5.23 would begin with <s>.
    generation = {
        "_from_model_config": True,
        "bos_token_id": 0,
        "decoder_start_token_id": 2,
        "early_stopping": False,
        "eos_token_id": 2,
        "forced_eos_token_id": 2,
        "length_penalty": 1.15,
        "max_length": 200,
        "num_beams": 5,
        "pad_token_id": 1,
        "transformers_version": "4.27.0.dev0",
    }
    write_json(directory / "generation_config.json", generation)
    tokenizer = {
        "langs": ["en", "de"],
        "do_lower_case": False,
        "model_max_length": 1024,
        "special_tokens_map_file": None,
        "full_tokenizer_file": None,
    }
    write_json(directory / "tokenizer_config.json", tokenizer, indent=None)


def _words(code: str) -> list[list[str]]:
    normalizer, moses = sacremoses.MosesPunctNormalizer(lang=code), sacremoses.MosesTokenizer(lang=code)
    texts = [normalizer.normalize(pair.in_language(code)) for pair in training_pairs()]
    return [moses.tokenize(text, aggressive_dash_splits=True, escape=True) for text in texts]


def _write_merges(path: Path, lines: list[list[str]]) -> None:
    tokenizer = Tokenizer(BPE(end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.train_from_iterator(
        (" ".join(line) for line in lines),
        BpeTrainer(vocab_size=460, end_of_word_suffix="</w>", show_progress=False),
    )
    tokenizer.model.save(str(path.parent))
    (path.parent / "vocab.json").unlink()
    merges = path.read_text(encoding="utf-8").splitlines()
    path.write_text("".join(f"{line}\n" for line in merges if not line.startswith("#version")), encoding="utf-8")


def _config(source_size: int, target_size: int) -> dict[str, Any]:
    return {
        "activation_dropout": 0.0,
        "activation_function": "relu",
        "architectures": ["FSMTForConditionalGeneration"],
        "attention_dropout": 0.1,
        "bos_token_id": 0,
        "d_model": 48,
        "decoder": {"bos_token_id": 2, "model_type": "fsmt_decoder", "vocab_size": target_size},
        "decoder_attention_heads": 2,
        "decoder_ffn_dim": 64,
        "decoder_layerdrop": 0,
        "decoder_layers": 1,
        "dropout": 0.2,
        "early_stopping": False,
        "encoder_attention_heads": 3,
        "encoder_ffn_dim": 96,
        "encoder_layerdrop": 0,
        "encoder_layers": 2,
        "eos_token_id": 2,
        "init_std": 0.02,
        "is_encoder_decoder": True,
        "langs": ["en", "de"],
        "length_penalty": 1.15,
        "max_length": 200,
        "max_position_embeddings": 1024,
        "model_type": "fsmt",
        "num_beams": 5,
        "num_hidden_layers": 2,
        "pad_token_id": 1,
        "scale_embedding": True,
        "src_vocab_size": source_size,
        "tgt_vocab_size": target_size,
        "tie_word_embeddings": False,
    }


@functools.lru_cache
def _tokenizer(directory: Path, source: str, target: str, languages: tuple[str, str]) -> Any:
    return FSMTTokenizer(
        langs=list(languages),
        src_vocab_file=str(directory / source),
        tgt_vocab_file=str(directory / target),
        merges_file=str(directory / "merges.txt"),
    )


def _encode(tokenizer: Any, text: str, direction: Direction) -> list[int]:
    ids: list[int] = tokenizer(text)["input_ids"]
    return ids


def _labels(tokenizer: Any, text: str, direction: Direction) -> list[int]:
    # The tokenizer itself knows sources only; that of the other direction knows our targets.
    other = _tokenizer(Path(tokenizer.merges_file).parent, "vocab-tgt.json", "vocab-src.json", ("de", "en"))
    ids: list[int] = other(text)["input_ids"]
    return ids


FSMT = Family(
    name="fsmt",
    write=_write,
    directions=(Direction("en", "de"),),
    encode=_encode,
    labels=_labels,
    half=True,
    pickled=True,
    absent=("embed_positions",),
)
