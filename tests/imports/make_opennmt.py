"""Makes the tiny model of OpenNMT-py anew: `python -m tests.imports.make_opennmt`; needs OpenNMT-py 3.5 and pyonmttok.

OpenNMT-py builds the network from the options of its own parser, and its own translator makes the expected ids.
"""

import importlib.metadata
import itertools
import json
import random
import sys
import types
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence

from tests.imports import expected
from tests.imports.expected import Expected, Run, Sentence
from tests.imports.opennmt import DIRECTORY, EXPECTED, SPECIAL
from tests.imports.text import checked_pairs, training_pairs
from tests.imports.vocabulary import by_frequency, train_pieces

MAX_TOKENS = 24
STEPS, BATCH, LEARNING_RATE = 400, 64, 4e-3
RUNS = [Run(beam, True, False, penalty, MAX_TOKENS) for beam, penalty in ((1, 1.0), (4, 0.0))]
OPTIONS = """
    --data {} --src_vocab x --tgt_vocab x --save_model x --transforms sentencepiece
    --src_subword_model sentencepiece.model --tgt_subword_model sentencepiece.model
    --encoder_type transformer --decoder_type transformer --position_encoding --enc_layers 2 --dec_layers 1
    --hidden_size 32 --word_vec_size 32 --heads 4 --transformer_ff 64 --dropout 0.1 --add_ffnbias
    --self_attn_type scaled-dot --max_relative_positions 0
"""


class _Anything(types.ModuleType):
    """Stands in for a package that some transform of OpenNMT-py asks for, and that no network needs."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(1)
    for name in ("ahocorasick", "fasttext", "rapidfuzz", "spacy"):
        sys.modules.setdefault(name, _Anything(name))
    DIRECTORY.mkdir(exist_ok=True)
    vocabularies, processor = make_vocabularies()
    options = parse_options()
    model, vocabs = build(options, vocabularies)
    train(model, vocabs, processor)
    state = {name: tensor.half().float() for name, tensor in model.state_dict().items() if not name.endswith(".pe")}
    torch.nn.Module.load_state_dict(model, state, strict=False)  # its own wants a checkpoint
    arrays: dict[str, Any] = {name: tensor.half().numpy() for name, tensor in state.items()}
    np.savez_compressed(DIRECTORY / "weights.npz", **arrays)
    for name, content in (("options.json", vars(options)), ("vocabularies.json", vocabularies)):
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        (DIRECTORY / name).write_text(f"{text}\n", encoding="utf-8")
    result = expect(model.eval(), vocabs, processor)
    expected.write(EXPECTED, result)
    for run, counts in expected.report(result).items():
        print(f"{run}: {counts}")


def make_vocabularies() -> tuple[dict[str, list[str]], Any]:
    """Writes a SentencePiece model of both languages, and returns the pieces of each side in an order of their own."""
    texts = {code: [pair.in_language(code) for pair in training_pairs()] for code in ("en", "de")}
    processor = train_pieces(DIRECTORY / "sentencepiece.model", [*texts["en"], *texts["de"]], 320, model_type="unigram")
    sides = {"src": by_frequency(processor, texts["en"], drop=3), "tgt": by_frequency(processor, texts["de"], drop=3)}
    return {side: [*SPECIAL, *pieces] for side, pieces in sides.items()}, processor


def parse_options() -> Any:
    """Returns all options of training, as OpenNMT-py puts them into its checkpoints."""
    from onmt import opts  # noqa: PLC0415
    from onmt.utils.parse import ArgumentParser  # noqa: PLC0415

    parser = ArgumentParser()
    opts.train_opts(parser)
    options, _ = parser.parse_known_args(OPTIONS.split())
    ArgumentParser.update_model_opts(options)
    ArgumentParser.validate_model_opts(options)
    return options


def build(options: Any, vocabularies: dict[str, list[str]]) -> tuple[Any, Any]:
    """Returns OpenNMT-py's model with random weights, and its vocabularies."""
    from onmt.inputters.inputter import dict_to_vocabs  # noqa: PLC0415
    from onmt.model_builder import build_base_model  # noqa: PLC0415

    vocabs = dict_to_vocabs({**vocabularies, "data_task": "seq2seq", "decoder_start_token": "<s>"})
    model = build_base_model(options, vocabs)
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5)
        elif "norm" not in name:
            torch.nn.init.normal_(parameter, std=0.1)
    return model, vocabs


def encode(vocab: Any, processor: Any, text: str) -> list[int]:
    return [vocab[piece] for piece in processor.encode(text, out_type=str)]


def train(model: Any, vocabs: Any, processor: Any) -> None:
    """Trains for some seconds, until sentences end."""
    examples = [
        (
            encode(vocabs["src"], processor, pair.english),
            [2, *encode(vocabs["tgt"], processor, pair.german), 3],
        )
        for pair in training_pairs()
    ]
    random.Random(1).shuffle(examples)
    stream = itertools.cycle(examples)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=STEPS, pct_start=0.2)
    model.train()
    for step in range(STEPS):
        batch = list(itertools.islice(stream, BATCH))
        source, target = (_pad([example[side] for example in batch]) for side in (0, 1))
        lengths = torch.tensor([len(source) for source, _ in batch])
        output, _ = model(source[..., None], target[..., None], lengths)
        logits = model.generator(output)
        loss = cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=1)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        if step % 50 == 0 or step == STEPS - 1:
            print(f"step {step}, loss {loss.item():.3f}", flush=True)


def _pad(rows: list[list[int]]) -> Tensor:
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=1)


def expect(model: Any, vocabs: Any, processor: Any) -> Expected:
    """Returns what OpenNMT-py's translator makes of all test sentences, each alone."""
    for module in model.modules():
        if hasattr(module, "dropout_p"):
            module.dropout_p = 0.0
    asked = [(pair.english, encode(vocabs["src"], processor, pair.english)) for pair in checked_pairs()]
    answers: list[list[list[int]]] = [[] for _ in asked]
    for run in RUNS:
        for i, (_, ids) in enumerate(asked):
            answers[i].append(translate(model, vocabs, ids, run))
    target = vocabs["tgt"].ids_to_tokens
    sentences = []
    for (text, ids), answer in zip(asked, answers, strict=True):
        outputs = [list(row) for row in dict.fromkeys(map(tuple, answer))]
        texts = [processor.decode_pieces([target[token] for token in row if token > 3]) for row in outputs]
        chosen = [outputs.index(row) for row in answer]
        sentences.append(Sentence(text, None, None, ids, None, outputs, texts, chosen))
    versions = {name: importlib.metadata.version(name) for name in ("OpenNMT-py", "torch", "sentencepiece")}
    return Expected(versions, 3, RUNS, sentences)


def translate(model: Any, vocabs: Any, ids: list[int], run: Run) -> list[int]:
    """Returns the ids of a translation, with eos if it ended."""
    from onmt.translate import GNMTGlobalScorer, Translator  # noqa: PLC0415

    scorer = GNMTGlobalScorer(0.0, 0.0, "avg" if run.length_penalty else "none", "none")
    translator = Translator(
        model,
        vocabs,
        beam_size=run.beam_size,
        max_length=run.max_tokens,
        max_length_ratio=0,
        global_scorer=scorer,
        report_score=False,
    )
    batch = {"src": torch.tensor([ids])[..., None], "srclen": torch.tensor([len(ids)]), "ind_in_bucket": [0]}
    row: list[int] = translator.translate_batch(batch, attn_debug=False)["predictions"][0][0].tolist()
    return row


if __name__ == "__main__":
    main()
