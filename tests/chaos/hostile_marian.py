"""Models of Marian, its own and Bergamot's, that `babelserve-import` must refuse (`hostile_imports` has the others)."""

import json
import struct
from functools import partial

import numpy as np

from tests.chaos.import_spoils import FORGED, Made, arrays, entry, multiplied, replaced, written

_VOCABULARY = "opus.vocab.yml"


def native() -> Made:
    """Returns what spoils it, and what is said of it, by name."""
    vocabularies: Made = {
        name: (partial(written, _VOCABULARY, data), f"{_VOCABULARY}: {said}")
        for name, (data, said) in _vocabularies().items()
    }
    return vocabularies | _settings() | _weights()


def _vocabularies() -> dict[str, tuple[bytes, str]]:
    return {
        "deep lists": (b"a: " + b"[" * 600_000, "is nested"),
        "deep lists, a line each": (b"a: " + b"[\n" * 300_000, "is nested"),
        "deep sequences": (b"- " * 300_000, "is nested"),
        "deep objects": (b"{a: " * 150_000, "is nested"),
        "keys of keys": (b"? " * 300_000, "has a key that is no plain text"),
        "aliases": (b"a: &a [1]\nb: [*a, *a]\n", "has YAML aliases"),
        "merged keys": (b"a: &a {x: 1}\n<<: *a\n", "has YAML aliases"),
        "a class": (b"a: !!python/object/apply:os.system [ls]\n", "has YAML aliases, anchors or tags"),
        "directives": (b"".join(b"%%TAG !%d! x\n" % i for i in range(100_000)), "has YAML directives"),
        "8 MB of values": (b"a: [" + b"a," * 4_000_000, "holds more than"),
        "a number of 60 bases": (b"a: " + b":".join([b"59"] * 500_000), "holds no pieces"),
        "a million digits": (b"a: " + b"9" * 1_000_000, "holds no pieces"),
        "documents": (b"---\na: 1\n" * 100_000, "holds"),
        "a piece twice": (b"no: 0\nyes: 1\n'no': 2\n", "has the key 'no' twice"),
        "a forged piece": (b'"' + json.dumps(FORGED)[1:-1].encode() + b'": 0\n', "1 pieces"),
    }


def _settings() -> Made:
    return {
        "deep settings": (lambda: written("decoder.yml", b"a: " + b"{a: " * 100_000), "decoder.yml: is nested"),
        "deep own settings": (lambda: arrays(settings="a: " + "[" * 600_000), "special:model.yml: is nested"),
        "own settings of 256 MB": (
            lambda: arrays(**{"special:model.yml": np.zeros(2**28, np.int8)}),
            "special:model.yml",
        ),
        "a forged setting": (lambda: written("decoder.yml", f"{json.dumps(FORGED)}: 1".encode()), "decoder.yml: x"),
        "models that are lists": (lambda: written("decoder.yml", b"models: [[a]]"), "decoder.yml: models: [['a']]"),
        "a penalty of 1e300": (
            lambda: written("decoder.yml", b"normalize: 1.0e+300"),
            "decoder.yml: normalize: 1e+300",
        ),
    }


def _weights() -> Made:
    return {
        "weights of 256 MB in 256 KB": (lambda: entry("Wemb.npy", bytes(2**28)), "model.npz"),
        "a header of 256 MB": (
            lambda: entry("a.npy", b"\x93NUMPY\x02\0" + struct.pack("<I", 2**28) + bytes(2**28)),
            "a.npy",
        ),
        "40,000 arrays": (
            lambda: arrays(**{f"a{i}": np.zeros(1, np.float32) for i in range(40_000)}),
            "tensors, at most",
        ),
        "NaN": (lambda: arrays(Wemb=np.full((64, 16), np.nan, np.float32)), "Wemb: numbers from nan"),
        "objects": (lambda: arrays(Wemb=np.array([{}], dtype=object)), "an array of object"),
        "complex numbers": (lambda: arrays(Wemb=np.zeros((64, 16), np.complex64)), "complex64, which is not read"),
        "dates": (lambda: arrays(Wemb=np.zeros((64, 16), "datetime64[s]")), "datetime64"),
        "records": (lambda: arrays(Wemb=np.zeros((64, 16), [("a", "f4")])), "which is not read"),
    }


def bergamot() -> Made:
    """Returns what spoils it, and what is said of it, by name."""
    return {
        "candidates of 4 TB": (
            lambda: replaced("lex.ende.bin", struct.pack("<QQ", 65, 64), struct.pack("<QQ", 65, 2**40)),
            "lex",
        ),
        "a multiplier of nothing": (lambda: multiplied(0.0), "Wemb: numbers from nan"),
        "2^60 tensors": (lambda: written("model.ende.bin", struct.pack("<QQ", 1, 2**60)), "tensors, at most"),
    }
