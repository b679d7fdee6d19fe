"""Models of Marian, its own and Bergamot's, that `babelserve-import` must refuse (`hostile_imports` has the others)."""

import json
import struct

import numpy as np

from tests.chaos.import_spoils import FORGED, Made, arrays, entry, multiplied, replaced, written


def native() -> Made:
    """Returns what spoils it, and what is said of it, by name."""
    return {
        "deep lists": (lambda: written("opus.vocab.yml", b"a: " + b"[" * 600_000), "opus.vocab.yml: is nested"),
        "deep lists, a line each": (
            lambda: written("opus.vocab.yml", b"a: " + b"[\n" * 300_000),
            "opus.vocab.yml: is nested",
        ),
        "deep sequences": (lambda: written("opus.vocab.yml", b"- " * 300_000), "opus.vocab.yml: is nested"),
        "deep objects": (lambda: written("opus.vocab.yml", b"{a: " * 150_000), "opus.vocab.yml: is nested"),
        "keys of keys": (
            lambda: written("opus.vocab.yml", b"? " * 300_000),
            "opus.vocab.yml: has a key that is no plain text",
        ),
        "aliases": (lambda: written("opus.vocab.yml", b"a: &a [1]\nb: [*a, *a]\n"), "opus.vocab.yml: has YAML aliases"),
        "merged keys": (
            lambda: written("opus.vocab.yml", b"a: &a {x: 1}\n<<: *a\n"),
            "opus.vocab.yml: has YAML aliases",
        ),
        "a class": (
            lambda: written("opus.vocab.yml", b"a: !!python/object/apply:os.system [ls]\n"),
            "opus.vocab.yml: has YAML aliases, anchors or tags",
        ),
        "directives": (
            lambda: written("opus.vocab.yml", b"".join(b"%%TAG !%d! x\n" % i for i in range(100_000))),
            "opus.vocab.yml: has YAML directives",
        ),
        "8 MB of values": (
            lambda: written("opus.vocab.yml", b"a: [" + b"a," * 4_000_000),
            "opus.vocab.yml: holds more than",
        ),
        "a number of 60 bases": (
            lambda: written("opus.vocab.yml", b"a: " + b":".join([b"59"] * 500_000)),
            "opus.vocab.yml: holds no pieces",
        ),
        "a million digits": (
            lambda: written("opus.vocab.yml", b"a: " + b"9" * 1_000_000),
            "opus.vocab.yml: holds no pieces",
        ),
        "documents": (lambda: written("opus.vocab.yml", b"---\na: 1\n" * 100_000), "opus.vocab.yml: holds"),
        "a piece twice": (
            lambda: written("opus.vocab.yml", b"no: 0\nyes: 1\n'no': 2\n"),
            "opus.vocab.yml: has the key 'no' twice",
        ),
        "a forged piece": (
            lambda: written("opus.vocab.yml", b'"' + json.dumps(FORGED)[1:-1].encode() + b'": 0\n'),
            "opus.vocab.yml: 1 pieces",
        ),
        "deep settings": (lambda: written("decoder.yml", b"a: " + b"{a: " * 100_000), "decoder.yml: is nested"),
        "deep own settings": (lambda: arrays(settings="a: " + "[" * 600_000), "special:model.yml: is nested"),
        "own settings of 256 MB": (
            lambda: arrays(**{"special:model.yml": np.zeros(2**28, np.int8)}),
            "special:model.yml",
        ),
        "a forged setting": (lambda: written("decoder.yml", f"{json.dumps(FORGED)}: 1".encode()), "decoder.yml: x"),
        "a penalty of 1e300": (
            lambda: written("decoder.yml", b"normalize: 1.0e+300"),
            "decoder.yml: normalize: 1e+300",
        ),
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
