"""The ladder of parity for a whole bundle: torch, the engine with one sentence, with many, and a server agree."""

import gzip
from pathlib import Path

import sentencepiece

from babelserve.v1 import translation_pb2 as pb
from model.checkpoint import Checkpoint
from model.search import default_max_tokens, search
from server.bundle.bundle import Bundle
from tests.acceptance.calls import open_stub
from tests.acceptance.server_process import running_server
from tests.parity.test_continuous_batching import Ids, Stepper, best

NUM_SENTENCES = 320
_CAPTIONS = Path(__file__).parents[1] / "data" / "multi30k_val.en.gz"
_BATCH = 40  # sentences that torch translates at once


def captions(checkpoint: Checkpoint, limit: int) -> tuple[list[str], list[list[int]]]:
    """Returns sentences of fewer than `limit` tokens, and their ids with eos."""
    pieces = sentencepiece.SentencePieceProcessor(model_proto=checkpoint.tokenizer)
    chosen: dict[str, list[int]] = {}
    for text in gzip.decompress(_CAPTIONS.read_bytes()).decode("utf-8").splitlines():
        ids = pieces.encode(text)
        # A server splits texts into sentences, and copies words with characters that the vocabulary lacks.
        is_one = text.count(".") == 1 and text.endswith(".")
        if is_one and len(ids) < limit and not any(map(pieces.is_byte, ids)) and len(chosen) < NUM_SENTENCES:
            chosen[text] = [*ids, checkpoint.config.eos_id]
    return list(chosen), list(chosen.values())


def of_torch(checkpoint: Checkpoint, sources: list[list[int]], beam_size: int, limit: int) -> list[Ids]:
    """Returns what the oracle finds with whole prefixes, without states."""
    model, found = checkpoint.build_model(), []
    for start in range(0, len(sources), _BATCH):
        some = sources[start : start + _BATCH]
        limits = [default_max_tokens(len(source), limit) for source in some]
        found += [tuple(each[0].ids) for each in search(model, some, beam_size=beam_size, max_tokens=limits)]
    return found


def alone(bundle: Bundle, variant: str, sources: list[list[int]], beam_size: int) -> list[Ids]:
    """Returns what the engine finds step by step, one sentence after the other."""
    stepper = Stepper(bundle, variant)
    return [stepper.alone(source, beam_size) for source in sources]


def together(bundle: Bundle, variant: str, sources: list[list[int]], beam_size: int) -> list[Ids]:
    """Returns what the engine finds for sentences that join and leave the same batch."""
    stepper = Stepper(bundle, variant)
    futures = []
    for i, source in enumerate(sources):
        futures.append(stepper.submit(source, beam_size))
        stepper.step(i % 3)
    stepper.finish()
    return [best(future) for future in futures]


def served(bundle: Bundle, variant: str, texts: list[str], beam_size: int) -> list[list[str]]:
    """Returns the pieces of each translation that a server in a process of its own answers."""
    flags = ["--bundle", str(bundle.directory), "--variant", variant]
    options = pb.DecodingOptions(beam_size=beam_size, end_loops=False)
    pieces = []
    with running_server(flags) as server, open_stub(server.address) as stub:
        for start in range(0, len(texts), _BATCH):
            request = pb.TranslateRequest(
                contents=texts[start : start + _BATCH],
                target_language_code="de",
                decoding=options,
                output=pb.OutputOptions(include_tokens=True),
            )
            pieces += [
                [token.text for each in translation.sentences for token in each.tokens if token.text]
                for translation in stub.Translate(request, timeout=50).translations
            ]
    return pieces


def spelled(checkpoint: Checkpoint, translations: list[Ids]) -> list[list[str]]:
    """Returns the pieces of translations."""
    pieces = sentencepiece.SentencePieceProcessor(model_proto=checkpoint.tokenizer)
    return [[pieces.id_to_piece(token) for token in ids] for ids in translations]
