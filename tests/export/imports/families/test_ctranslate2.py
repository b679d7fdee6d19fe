import copy
import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from export.imports.detect import opened, read_model
from export.imports.languages import GivenLanguages
from export.imports.report import ImportFault, Report
from export.imports.subject import build_subject
from model.config import TransformerConfig
from model.transformer import Transformer
from server.bundle.shortlist import Shortlist
from tests.export.imports.parity import read_whole
from tests.imports.families import MODELS

conversion = pytest.importorskip("tests.bench.conversion", reason="needs ctranslate2, of `make bench`")
GIVEN = GivenLanguages(source=("en",), target=("de",))


def build(norm: str) -> Transformer:
    torch.manual_seed(0)
    config = TransformerConfig(
        vocab_size=40,
        d_model=32,
        num_heads=2,
        ffn_dim=24,
        encoder_layers=2,
        decoder_layers=1,
        max_positions=16,
        norm=norm,  # type: ignore[arg-type]
        layer_norm_eps=1e-6,
    )
    model = Transformer(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def convert(model: Transformer, directory: Path, quantization: str = "float32") -> Path:
    """Writes what CTranslate2 does of a model, with some SentencePiece model beside it."""
    tokens = np.zeros((40, 1), np.int32)
    # A copy, since CTranslate2 quantises the very arrays that it is given.
    conversion.convert(copy.deepcopy(model), directory, quantization, Shortlist(tokens, tokens[0]))
    (directory / "vmap.txt").unlink()
    shutil.copy(MODELS / "marian-shared" / "source.spm", directory / "sentencepiece.model")
    return directory


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize(("quantization", "tolerance"), [("float32", 1e-5), ("int8", 0.5), ("float16", 0.05)])
def test_a_converted_model_computes_what_the_original_does(
    tmp_path: Path, norm: str, quantization: str, tolerance: float
) -> None:
    original = build(norm)
    model, report = read_whole(convert(original, tmp_path / "model", quantization), GIVEN)

    imported = build_subject(model, report).model

    source, target = torch.tensor([[5, 9, 11, 3]]), torch.tensor([[2, 7, 30, 8]])
    logits = imported(source, target)
    assert torch.isneginf(logits[..., 40:]).all()
    np.testing.assert_allclose(logits[..., :40].numpy(), original(source, target).detach().numpy(), atol=tolerance)
    assert (model.config.bos_id, model.config.eos_id, model.config.unk_id, model.config.pad_id) == (2, 3, 1, 40)


def test_an_argos_package_is_unpacked_and_read(tmp_path: Path) -> None:
    package = tmp_path / "translate-en_de"
    directory = convert(build("pre"), package / "model")
    (directory / "sentencepiece.model").rename(package / "sentencepiece.model")
    metadata = {"from_code": "en", "to_code": "de", "package_version": "1.0", "argos_version": "1.5"}
    (package / "metadata.json").write_text(json.dumps(metadata), encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "x.argosmodel", "w") as archive:
        for path in package.rglob("*"):
            archive.write(path, path.relative_to(tmp_path))
    report = Report()

    with opened(tmp_path / "x.argosmodel") as found:
        model = read_model(found, GivenLanguages(), report)
        assert model is not None
        model.check(report)
        report.check()
        assert len(dict(model.weights(report))) > 10

    assert (model.family, model.name) == ("Argos", "argos-en-de")
    assert [(pair.source, pair.target) for pair in model.language_pairs] == [("en", "de")]
    assert (model.search.beam_size, model.search.length_penalty) == (4, 0.2)


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        ("sentencepiece.model", None, "put the SentencePiece model that it was trained with there"),
        ("shared_vocabulary.json", '["a"]', "1 pieces; expected 40, rows of model.bin"),
        ("shared_vocabulary.json", None, "source_vocabulary.json: missing"),
        (
            "config.json",
            '{"eos_token": "</s>", "bos_token": "t2", "unk_token": "t1"}',
            "eos_token: </s>; expected a piece",
        ),
        ("config.json", '{"rope": true}', "rope: True; expected nothing that is not known"),
        ("model.bin", "x", "ends within its header"),
    ],
)
def test_what_is_missing_or_wrong_is_named(tmp_path: Path, file: str, content: str | None, expected: str) -> None:
    directory = convert(build("post"), tmp_path / "model")
    (directory / file).unlink()
    if content is not None:
        (directory / file).write_text(content, encoding="utf-8")

    with pytest.raises(ImportFault) as caught:
        read_whole(directory, GIVEN)

    assert expected in str(caught.value)
