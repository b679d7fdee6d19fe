"""Asks `generate` of `transformers`; needs it installed."""

import importlib.metadata
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from tests.imports.expected import Expected, Run, Sentence, by_length, runs, trim
from tests.imports.families import Family
from tests.imports.text import checked_pairs


def load(directory: Path) -> tuple[Any, Any]:
    """Returns model, in float32, and tokenizer of a directory as on the hub; nothing may be missing or left over.

    Of what the file does not have, positions are computed; `transformers` says so for FSMT only.
    """
    model, info = AutoModelForSeq2SeqLM.from_pretrained(directory, dtype=torch.float32, output_loading_info=True)
    info["missing_keys"] = {name for name in info["missing_keys"] if "embed_positions" not in name}
    faults = {key: value for key, value in info.items() if value}
    if faults:
        raise ValueError(f"{directory.name}: {faults}")
    return model.eval(), AutoTokenizer.from_pretrained(directory)


def generate(model: Any, sources: list[list[int]], run: Run, forced_bos: int | None = None) -> list[list[int]]:
    """Returns what `generate` makes of sources of equal length: ids with forced first token and eos, without start."""
    eos = model.generation_config.eos_token_id
    ids = torch.tensor(sources)
    output = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        num_beams=run.beam_size,
        early_stopping=run.early_stopping,
        forced_eos_token_id=eos if run.forced_eos else None,
        forced_bos_token_id=forced_bos,
        length_penalty=run.length_penalty,
        max_length=run.max_tokens + 1,
        do_sample=False,
    )
    return [trim(row, eos) for row in output.tolist()]


def expect(family: Family, directory: Path) -> Expected:
    """Returns what `generate` makes of all test sentences, which take turns in the family's directions."""
    model, tokenizer = load(directory)
    asked = []
    for i, pair in enumerate(checked_pairs()):
        direction = family.directions[i % len(family.directions)]
        text = pair.in_language(direction.source)
        ids = family.encode(tokenizer, text, direction)
        asked.append((text, direction, ids, family.forced_bos(tokenizer, direction)))
    answers: list[list[list[int]]] = [[] for _ in asked]
    all_runs = runs(family.max_tokens)
    for run in all_runs:
        for forced_bos in {bos for *_, bos in asked}:
            chosen = [i for i, (*_, bos) in enumerate(asked) if bos == forced_bos]
            for batch in by_length([asked[i][2] for i in chosen]):
                indices = [chosen[i] for i in batch]
                for i, ids in zip(
                    indices, generate(model, [asked[i][2] for i in indices], run, forced_bos), strict=True
                ):
                    answers[i].append(ids)
    sentences = []
    for (text, direction, source_ids, forced_bos), answer in zip(asked, answers, strict=True):
        outputs = [list(ids) for ids in dict.fromkeys(map(tuple, answer))]
        sentences.append(
            Sentence(
                text=text,
                source_language=direction.source_name,
                target_language=direction.target_name,
                source_ids=source_ids,
                forced_bos=forced_bos,
                outputs=outputs,
                texts=[tokenizer.decode(ids, skip_special_tokens=True) for ids in outputs],
                chosen=[outputs.index(ids) for ids in answer],
            )
        )
    versions = {
        name: importlib.metadata.version(name) for name in ("transformers", "torch", "tokenizers", "sentencepiece")
    }
    return Expected(versions, model.generation_config.eos_token_id, all_runs, sentences)
