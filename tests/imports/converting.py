"""The tiny models as CTranslate2's own converter writes them, and what CTranslate2 makes of them.

`python -m tests.imports.converting NAME OUT TYPE` writes such a directory, in int8 or float16; it needs `transformers`
and `ctranslate2`.
"""

import json
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tests.imports.expected import Sentence
from tests.imports.families import MODELS, write_json

CONVERTED = Path(__file__).with_name("converted")
_POSITIONS = 120  # of the 1,024: they are computed, and the converter stores all


def convert(name: str, out: Path, quantization: str | None = None) -> Path:
    """Writes the files of CTranslate2, and beside them the SentencePiece models of the original.

    Its converter takes the encoder's number of heads for both sides; here the decoder has its own, which all that reads
    such files can take.
    """
    from ctranslate2.converters import TransformersConverter  # noqa: PLC0415  # which asks for transformers

    with TemporaryDirectory() as directory:
        short = Path(shutil.copytree(MODELS / name, Path(directory) / name))
        config = json.loads((short / "config.json").read_text(encoding="utf-8"))
        if config["model_type"] != "mbart":  # whose positions are learned
            write_json(short / "config.json", {**config, "max_position_embeddings": _POSITIONS})
        spec = TransformersConverter(str(short))._load()
        spec.decoder.num_heads = np.int16(config["decoder_attention_heads"])
        spec.validate()
        spec.optimize(quantization=quantization)
        out.mkdir(parents=True)
        spec.save(str(out))
    vocabulary = out / "shared_vocabulary.json"
    pieces = json.loads(vocabulary.read_text(encoding="utf-8"))
    vocabulary.write_text(json.dumps(pieces, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    return with_tokenizer(name, out)


def with_tokenizer(name: str, directory: Path) -> Path:
    """Adds the original's SentencePiece models to a directory, as users do."""
    for pattern in ("*.spm", "*.bpe.model"):
        for file in (MODELS / name).glob(pattern):
            shutil.copy(file, directory / file.name)
    return directory


def ask_ctranslate2(
    directory: Path, sentences: list[Sentence], prefixes: list[tuple[int, ...]], max_tokens: int
) -> list[list[int]]:
    """Returns the ids that CTranslate2 translates sentences to, greedily and in float32: without prefix and eos."""
    import ctranslate2  # noqa: PLC0415  # not needed to import models

    pieces = json.loads((directory / "shared_vocabulary.json").read_text(encoding="utf-8"))
    ids = {piece: token for token, piece in enumerate(pieces)}
    translator: Any = ctranslate2.Translator(str(directory), compute_type="float32", intra_threads=1)
    results = translator.translate_batch(
        [[pieces[token] for token in sentence.source_ids] for sentence in sentences],
        target_prefix=[[pieces[token] for token in prefix] for prefix in prefixes],
        beam_size=1,
        max_decoding_length=max_tokens,
    )
    pairs = zip(results, prefixes, strict=True)
    return [[ids[piece] for piece in result.hypotheses[0][len(prefix) :]] for result, prefix in pairs]


if __name__ == "__main__":
    out = convert(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
    for model in (*out.glob("*.spm"), *out.glob("*.bpe.model")):
        model.unlink()  # they are in the original's folder
