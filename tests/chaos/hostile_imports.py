"""Inputs that `babelserve-import` must refuse: files damaged on their way, and files that were made to harm."""

import json
import math
import pickle
import stat
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from tests.chaos.hostile_marian import bergamot, native
from tests.chaos.import_spoils import (
    FORGED,
    Made,
    Spoil,
    changed,
    damaged,
    endless,
    expanded,
    flagged,
    header,
    legacy,
    option,
    overlapping,
    packed,
    pickled,
    renamed,
    saved,
    sharded,
    told,
    weighted,
    written,
)

_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
_PAGE = b"<!DOCTYPE html>\n<html><head><title>404</title></head></html>\n"
_WEIGHTS = ("model.safetensors", "pytorch_model.bin", "model.npz", "model.ende.bin", "model.bin", ".pt")
_ONE = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


@dataclass(frozen=True, slots=True)
class Input:
    """One import that must be refused: of which family's model, how what spoils it is made, and what is to be said."""

    name: str
    family: str
    make: Callable[[], Spoil]
    expected: str


def inputs() -> Iterator[Input]:
    """Yields all of them."""
    for family, files in _FILES.items():
        for file in files.split():
            for name, content, expected in (("pointer", _POINTER, "pointer of git-lfs"), ("page", _PAGE, "web page")):
                spoil = partial(written, file, content)
                yield Input(f"{family}: a {name} for {file}", family, spoil, f"{file}: is a {expected}")
            if file.endswith(_WEIGHTS):
                for how in ("half", "empty", "hollow", "zeros", "flipped"):
                    yield Input(f"{family}: {file}, {how}", family, partial(damaged, file, how), file)
    for family, made in _MADE.items():
        for name, (make, expected) in made().items():
            yield Input(f"{family}: {name}", family, make, expected)


_FILES = {
    "marian-shared": "generation_config.json vocab.json target.spm model.safetensors",
    "marian-separate": "target_vocab.json",
    "marian-eos-first": "tokenizer_config.json pytorch_model.bin",
    "m2m100": "sentencepiece.bpe.model model.safetensors",
    "nllb": "tokenizer.json model.safetensors",
    "mbart50": "tokenizer.json",
    "fsmt": "merges.txt vocab-src.json pytorch_model.bin",
    "native": "opus.vocab.yml decoder.yml source.spm model.npz",
    "bergamot": "vocab.ende.spm lex.ende.bin model.ende.bin",
    "ctranslate2": "config.json shared_vocabulary.json model.bin",
    "argos": "metadata.json sentencepiece.model",
    "fairseq": "dict.en.txt bpecodes checkpoint_best.pt",
    "opennmt": "sentencepiece.model model_step_400.pt",
}


class _Touches:
    def __reduce__(self) -> Any:
        return print, ("this must not be printed",)


def _marian_shared() -> Made:
    return {
        "an axis 100,000 times": (lambda: header({"a": {**_ONE, "shape": [2] * 100_000}}), "none of a model's"),
        "150,000 tensors": (lambda: header({f"a{i}": _ONE for i in range(150_000)}, bytes(4)), "model.safetensors"),
        "a type that is a list": (lambda: header({"a": {**_ONE, "dtype": ["F32"]}}, bytes(4)), "describes a in no way"),
        "float8": (lambda: header({"a": {**_ONE, "dtype": "F8_E4M3"}}, bytes(4)), "holds F8_E4M3, which is not read"),
        "a deep header": (lambda: header(b"[" * 1_000_000), "model.safetensors: "),
        "a header of empty lists": (lambda: header(b"[" + b"[]," * 4_000_000 + b"[]]"), "values, at most"),
        "a header of 2^62 bytes": (lambda: written("model.safetensors", struct.pack("<Q", 2**62)), "its header has"),
        "a name twice": (lambda: header(b'{"a": 1, "a": 2}'), "has a key twice"),
        "a forged tensor": (lambda: header({FORGED: _ONE}, bytes(4)), "missing"),
        "256 layers of the same bytes": (lambda: overlapping, "bytes for a network of"),
        "a forged setting": (lambda: changed("config.json", **{FORGED: 1}), "config.json: x"),
        "a forged language": (lambda: changed("tokenizer_config.json", source_lang=FORGED), "source language x"),
        "a million languages": (
            lambda: changed("tokenizer_config.json", source_lang="aq+" * 1_000_000),
            "sample sentences",
        ),
        "a table of 16384 by 8192": (
            lambda: changed("config.json", d_model=16384, max_position_embeddings=8192),
            "d_model is 16384",
        ),
        "sizes of floats": (lambda: changed("config.json", d_model=1e300, encoder_layers=1e18), "config.json: d_model"),
        "a number of 5,000 digits": (
            lambda: written("config.json", b'{"d_model": ' + b"9" * 5000 + b"}"),
            "config.json: ",
        ),
        "settings 900 deep": (
            lambda: written("config.json", b'{"x": ' + b"[" * 900 + b"]" * 900 + b"}"),
            "config.json: ",
        ),
        "a vocabulary of lists": (lambda: written("vocab.json", b"[" + b"[]," * 5_000_000 + b"[]]"), "values, at most"),
        "a SentencePiece model of noise": (
            lambda: written("source.spm", bytes(range(256)) * 999),
            "source.spm: is no SentenceP",
        ),
        "a letter that becomes 2 MB": (lambda: expanded("source.spm"), "source.spm: writes 2000000 bytes in place of"),
        "a letter that becomes 2 MB at the end": (
            lambda: expanded("target.spm", "denormalizer_spec"),
            "target.spm: writes 2000000 bytes in place of",
        ),
        "a file by 1000 names": (lambda: sharded, "by a second name"),
        "a target that is none": (lambda: told("--target", "a;b"), "--target: a;b; expected a BCP-47 code"),
        "a version with escapes": (lambda: told("--version", "\x1b[2J"), "argument --version"),
        "a name of 5,000 characters": (lambda: told("--name", "x" * 5000), "argument --name"),
        "a threshold that is no number": (lambda: told("--min-chrf", "nan"), "argument --min-chrf"),
        "a text that is missing": (lambda: told("--text", "/nowhere/text"), "/nowhere/text"),
        "a directory with escapes": (lambda: renamed("opus\x1b]0;owned\x07\n-en-de"), "the model's name"),
    }


def _marian_eos_first() -> Made:
    return {
        **{
            f"a weight of {value}": (partial(weighted, value), "numbers from")
            for value in (math.nan, math.inf, -math.inf, 1e30)
        },
        "a weight of 1e300": (lambda: weighted(1e300, torch.float64), "numbers from"),
        "a sparse tensor": (lambda: saved(torch.eye(3).to_sparse()), "sparse_coo, which is not read"),
        "a sparse tensor, older": (
            lambda: saved(torch.eye(3).to_sparse(), is_new=False),
            "sparse_coo, which is not read",
        ),
        "a tensor without data": (lambda: saved(torch.ones(3, device="meta")), "without data"),
        "a complex tensor": (lambda: saved(torch.ones(3, dtype=torch.complex64)), "torch.complex64, which is not read"),
        "a float8 tensor": (lambda: saved(torch.ones(3).to(torch.float8_e5m2)), "torch.float8_e5m2, which is not read"),
        "an expanded tensor": (lambda: saved(torch.ones(1).expand(2**30)), "claims that"),
        "no tensor": (lambda: saved("text"), "fc1.weight: missing"),
        "code": (lambda: saved(_Touches()), "which could run code"),
        "code, older": (lambda: saved(_Touches(), is_new=False), "which could run code"),
        "a list in itself": (lambda: pickled(pickle.dumps({"a": endless(is_doubled=False)}, 2)), "no tensors"),
        "5 million lists": (lambda: pickled(b"\x80\x02(" + b"]" * 5_000_000 + b"l."), "pytorch_model.bin"),
        "a pickle of 20 MB": (
            lambda: pickled(b"\x80\x02(" + b"]" * 20_000_000 + b"l."),
            "bytes of archive/data.pkl, at most",
        ),
        "5 million lists, older": (
            lambda: legacy(b"\x80\x02(" + b"]" * 20_000_000 + b"l."),
            "parts, which no model has",
        ),
        "an array of 64 GB": (
            lambda: pickled(b"\x80\x02cbuiltins\nbytearray\n\x8a\x05\0\0\0\0\x10\x85R."),
            "pytorch_model.bin",
        ),
    }


def _ctranslate2() -> Made:
    return {
        "a scale that is no number": (
            lambda: flagged("encoder/scale_embeddings", struct.pack("<f", math.nan)),
            "scale_embeddings: nan",
        ),
        "an infinite scale": (
            lambda: flagged("encoder/scale_embeddings", struct.pack("<f", math.inf)),
            "scale_embeddings: inf",
        ),
        "no heads": (lambda: flagged("encoder/num_heads", struct.pack("<h", -7)), "encoder/num_heads: -7"),
        "2^32 variables": (lambda: written("model.bin", struct.pack("<IH", 6, 0) + b"\xff" * 8), "model.bin: "),
        "a forged piece": (lambda: written("shared_vocabulary.json", json.dumps([FORGED]).encode()), "1 pieces"),
    }


def _argos() -> Made:
    return {
        "an entry elsewhere": (lambda: packed("../../escaped", b"x"), "leads out of it"),
        "a link": (lambda: packed("translate-en_de/link", b"/etc/passwd", stat.S_IFLNK | 0o777), "is no plain file"),
        "an entry of 256 MB": (lambda: packed("translate-en_de/zeros", bytes(2**28)), "unpacks to"),
        **{
            f"damaged data, method {method}": (partial(packed, damage=method), "annot be unpacked")
            for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_STORED)
        },
        "a forged code": (lambda: changed("metadata.json", from_code=FORGED), "expected a BCP-47 code"),
        "a code of 1 MB": (lambda: changed("metadata.json", from_code="de-" * 300_000), "expected a BCP-47 code"),
    }


def _fairseq() -> Made:
    return {
        "an option in itself": (lambda: option("checkpoint_best.pt", "lr", endless(is_doubled=False)), "has options"),
        "2^60 options": (
            lambda: option("checkpoint_best.pt", "lr", endless(is_doubled=True)),
            "has options of more than",
        ),
        "an option that is a tensor": (lambda: option("checkpoint_best.pt", "task", torch.ones(2)), "task: Tensor"),
        "a forged option": (lambda: option("checkpoint_best.pt", FORGED, 1), "args: x"),
        "a dictionary of 8 MB": (lambda: written("dict.en.txt", b"a 1\n" * 2_000_000), "dict.en.txt: "),
        "merges of 4 MB": (lambda: written("bpecodes", b"a b\n" * 1_000_000 + b"c\n"), "bpecodes: "),
    }


def _opennmt() -> Made:
    return {
        "2^60 options": (lambda: option("model_step_400.pt", "num_experts", endless(is_doubled=True)), "num_experts: "),
        "an option by a number": (lambda: option("model_step_400.pt", 5, 1), "opt: 5: 1; expected nothing"),
        "a number of a million digits": (
            lambda: option("model_step_400.pt", "num_kv", 1 << 4_000_000),
            "no file of tensors",
        ),
    }


_MADE: dict[str, Callable[[], Made]] = {
    "native": native,
    "marian-shared": _marian_shared,
    "marian-eos-first": _marian_eos_first,
    "bergamot": bergamot,
    "ctranslate2": _ctranslate2,
    "argos": _argos,
    "fairseq": _fairseq,
    "opennmt": _opennmt,
}
