"""What tests of whole bundles ask: what their check says, and what a server answers with them."""

import sentencepiece
from prometheus_client import CollectorRegistry

from babelserve.v1 import translation_pb2 as pb
from server.bundle.bundle import Bundle
from server.models.checking import check_bundle
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics
from tests.acceptance.calls import open_stub
from tests.acceptance.server_process import running_server


def check_lines(bundle: Bundle) -> list[str]:
    """Returns what the check of a bundle prints."""
    return list(check_bundle(bundle.directory, Settings(bundle=bundle.directory), Metrics(CollectorRegistry())))


def golden_texts(bundle: Bundle, variant: str, tokenizer: bytes) -> tuple[str, list[str]]:
    """Returns the golden translation of a variant, and what a server answers to its source, asked three times."""
    golden = bundle.manifest.golden
    pieces = sentencepiece.SentencePieceProcessor(model_proto=tokenizer)
    flags = ["--bundle", str(bundle.directory), "--variant", variant]
    with running_server(flags) as server, open_stub(server.address) as stub:
        request = pb.TranslateRequest(contents=[golden.source_text] * 3, target_language_code="de")
        texts = [each.text for each in stub.Translate(request, timeout=50).translations]
    return pieces.decode(list(golden.outputs[variant].ids)), texts
