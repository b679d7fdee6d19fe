"""The ladder of parity for a whole bundle: torch, the engine with one sentence, with many, and a server say the same."""

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
    texts = gzip.decompress(_CAPTIONS.read_bytes()).decode("utf-8").splitlines()
    # A server splits texts into sentences and gives end marks back: these are one sentence each, and end with their own.
    texts = [text for text in texts if text.count(".") == 1 and text.endswith(".") and len(pieces.encode(text)) < limit]
    chosen = texts[:NUM_SENTENCES]
    return chosen, [[*ids, checkpoint.config.eos_id] for ids in pieces.encode(chosen)]


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


def served(bundle: Bundle, variant: str, texts: list[str], beam_size: int) -> list[str]:
    """Returns the texts that a server of its own process answers."""
    flags = ["--bundle", str(bundle.directory), "--variant", variant]
    with running_server(flags) as server, open_stub(server.address) as stub:
        options = pb.DecodingOptions(beam_size=beam_size)
        answers = []
        for start in range(0, len(texts), _BATCH):
            request = pb.TranslateRequest(
                contents=texts[start : start + _BATCH], target_language_code="de", decoding=options
            )
            answers += [each.text for each in stub.Translate(request, timeout=50).translations]
    return answers


def decoded(checkpoint: Checkpoint, translations: list[Ids]) -> list[str]:
    """Returns translations as texts."""
    pieces = sentencepiece.SentencePieceProcessor(model_proto=checkpoint.tokenizer)
    return [pieces.decode(list(ids)) for ids in translations]
