"""Texts over a pivot, and texts whose language nobody names, through a real server."""

import importlib.util
import json
import math
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from babelserve.v1 import translation_pb2 as pb
from export.subject import DevSet
from server.bundle.bundle import Bundle
from server.models.loading import needed_bytes
from tests.acceptance.calls import open_stub
from tests.acceptance.model_swaps import put_pair
from tests.acceptance.server_process import ServerProcess, running_server
from tests.e2e.conftest import metric, wait_until

TIMEOUT = 200.0
TOLERANCE = 1e-4  # of scores: sums in other orders
HAS_DETECTOR = importlib.util.find_spec("py3langid") is not None
needs_detector = pytest.mark.skipif(not HAS_DETECTOR, reason="py3langid is not installed: the extra `detect`")


@pytest.fixture(scope="module")
def server(tiny_bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """English into German and German into French, by the same tiny weights, and French to German."""
    models = tmp_path_factory.mktemp("models")
    for source, target, version in (("en", "de", "1"), ("de", "fr", "4"), ("fr", "de", "2")):
        (models / f"{source}-{target}").mkdir()
        put_pair(tiny_bundle.directory, models / f"{source}-{target}" / version, source, target)
    flags = ["--models", str(models), "--variant", "cpu-fp32", "--lanes", "1", "--pivot", "en,de"]
    with running_server(flags) as server:
        yield server


def request(*contents: str, source: str, target: str, **more: object) -> pb.TranslateRequest:
    codes = {"source_language_code": source, "target_language_code": target}
    return pb.TranslateRequest(contents=contents, **codes, **more)  # type: ignore[arg-type]


def legs(route: object) -> list[tuple[str, str, str, str]]:
    return [
        (leg.model, leg.model_version, leg.source_language_code, leg.target_language_code)
        for leg in route  # type: ignore[attr-defined]
    ]


ROUTE = [("en-de", "1", "en", "de"), ("de-fr", "4", "de", "fr")]


def test_a_text_by_way_of_german_is_what_two_requests_by_hand_make_of_it(
    server: ServerProcess, dev_set: DevSet
) -> None:
    sources = dev_set.sources[:60]
    decoding = pb.DecodingOptions(beam_size=4, num_hypotheses=3)
    with open_stub(server.address) as stub:
        answer = stub.Translate(request(*sources, source="en", target="fr", decoding=decoding), timeout=TIMEOUT)
        between = stub.Translate(request(*sources, source="en", target="de"), timeout=TIMEOUT)
        by_hand = stub.Translate(
            request(*(each.text for each in between.translations), source="de", target="fr", decoding=decoding),
            timeout=TIMEOUT,
        )

    for one, first, second in zip(answer.translations, between.translations, by_hand.translations, strict=True):
        assert [each.text for each in one.hypotheses] == [each.text for each in second.hypotheses]
        scores = [first.score + each.score for each in second.hypotheses]
        assert [each.score for each in one.hypotheses] == pytest.approx(scores, abs=TOLERANCE)
        assert (one.source_tokens, one.target_tokens) == (first.source_tokens, second.target_tokens)
        assert legs(one.route) == ROUTE
    assert (answer.model, answer.model_version) == ("de-fr", "4")
    assert (answer.source_language_code, answer.target_language_code) == ("en", "fr")
    assert any(one.text != first.text for one, first in zip(answer.translations, between.translations, strict=True))


def test_sentences_are_sent_on_as_they_come_and_keep_their_white_space(server: ServerProcess, dev_set: DevSet) -> None:
    text = f"  {dev_set.sources[0]}\n\n***\t{dev_set.sources[1]} {dev_set.sources[2]}\n"
    asked = request(text, "42", source="en", target="fr", output=pb.OutputOptions(include_sentences=True))
    with open_stub(server.address) as stub:
        answer = stub.Translate(asked, timeout=TIMEOUT)
        stream = list(stub.TranslateStream(pb.TranslateStreamRequest(request=asked), timeout=TIMEOUT))

    sentences = answer.translations[0].sentences
    assert [each.source_text for each in sentences] == [dev_set.sources[0], "***", *dev_set.sources[1:3]]
    assert answer.translations[0].text == "  " + "".join(each.text + each.separator for each in sentences)
    assert [each.separator for each in sentences] == ["\n\n", "\t", " ", "\n"]
    streamed = sorted((each for each in stream if each.content_index == 0), key=lambda each: each.sentence_index)
    for each in sentences:  # which a stream does not have, since it has no whole text
        each.ClearField("begin")
        each.ClearField("end")
    assert [each.sentence for each in streamed] == pytest.approx(list(sentences))
    assert legs(streamed[0].route) == ROUTE
    assert not streamed[1].route
    assert answer.translations[1].text == "42"


def test_only_what_the_operator_allows_goes_by_way_of_another_language(server: ServerProcess) -> None:
    with open_stub(server.address) as stub:
        listed = stub.ListModels(pb.ListModelsRequest(), timeout=TIMEOUT)
        with pytest.raises(grpc.RpcError, match="source_language_code: must be one of de for this target, not en"):
            stub.Translate(request("Hi.", source="en", target="fr", model="de-fr"), timeout=TIMEOUT)
        with pytest.raises(grpc.RpcError, match="for this target must be one of de, en, not it"):
            stub.Translate(request("Ciao.", source="it", target="fr"), timeout=TIMEOUT)

    assert list(listed.pivot_language_codes) == ["en", "de"]


def test_both_models_count_what_they_did(server: ServerProcess, dev_set: DevSet) -> None:
    def counted() -> list[float]:
        """Sentences of each model, without those that it was asked for again."""
        return [
            metric(server, "sentences_total", model=name, outcome="ok")
            - metric(server, "repeated_sentences_total", model=name)
            for name in ("en-de", "de-fr")
        ]

    before = counted()
    with open_stub(server.address) as stub:
        stub.Translate(request(dev_set.sources[0], source="en", target="fr"), timeout=TIMEOUT)

    wait_until(lambda: counted() == [count + 1 for count in before])  # a lane counts once it has answered
    wait_until(lambda: '"model": "en-de,de-fr", "model_version": "1,4"' in server.stderr())


@needs_detector
def test_each_text_goes_the_way_of_its_own_language(server: ServerProcess) -> None:
    english, french = "Two dogs are running through the snow.", "Deux chiens courent dans la neige."
    spanish = "Dos perros corren por la nieve."
    with open_stub(server.address) as stub:
        answer = stub.Translate(request(english, french, spanish, "42", source="", target="de"), timeout=TIMEOUT)
        one = stub.Translate(request(english, source="auto", target="de"), timeout=TIMEOUT)
        told = [
            stub.Translate(request(text, source=code, target="de"), timeout=TIMEOUT)
            for text, code in ((english, "en"), (french, "fr"))
        ]
        by_pivot = stub.Translate(request(english, source="", target="fr"), timeout=TIMEOUT)
        with pytest.raises(grpc.RpcError, match="detected language es") as refusal:
            stub.Translate(request(spanish, source="", target="de"), timeout=TIMEOUT)
        stream = list(
            stub.TranslateStream(
                pb.TranslateStreamRequest(request=request(french, spanish, source="", target="de")), timeout=TIMEOUT
            )
        )

    found = [(each.detected_language_code, each.detection_confidence > 0.9) for each in answer.translations]
    assert found == [("en", True), ("fr", True), ("", False), ("", False)]
    assert [each.text for each in answer.translations[:2]] == [each.translations[0].text for each in told]
    assert "detected language es (probability" in answer.translations[2].status.message
    assert "is not served for this target, only en, fr are" in answer.translations[2].status.message
    assert answer.translations[3].text == "42"
    assert [legs(each.route)[:1] for each in answer.translations[:2]] == [[ROUTE[0]], [("fr-de", "2", "fr", "de")]]
    assert (answer.model, answer.source_language_code, answer.target_language_code) == ("", "", "de")
    assert (one.model, one.source_language_code, one.translations[0].route) == ("en-de", "en", [])
    assert (by_pivot.translations[0].detected_language_code, legs(by_pivot.translations[0].route)) == ("en", ROUTE)
    assert refusal.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert [(each.content_index, each.detected_language_code, each.status.code) for each in stream] == [
        (1, "", grpc.StatusCode.INVALID_ARGUMENT.value[0]),
        (0, "fr", 0),
    ]


def test_a_pivot_that_nothing_passes_through_is_a_warning(server: ServerProcess) -> None:
    wait_until(lambda: '"level": "warning"' in server.stderr())  # a thread of its own writes the log
    warnings = [line for line in server.stderr().splitlines() if '"level": "warning"' in line]

    assert [json.loads(line)["event"] for line in warnings] == [
        "--pivot: no text can pass through en: models translate from de, en, fr into de, fr"
    ]


def test_both_models_of_a_way_are_loaded_on_demand_if_there_is_room(tiny_bundle: Bundle, tmp_path: Path) -> None:
    needed = needed_bytes(tiny_bundle.manifest, "cpu-fp32") / 2**20
    for source, target in (("en", "de"), ("de", "fr"), ("fr", "de")):
        put_pair(tiny_bundle.directory, tmp_path / f"{source}-{target}", source, target)
    flags = ["--models", str(tmp_path), "--variant", "cpu-fp32", "--lanes", "1", "--load", "on-demand", "--pivot", "de"]
    with running_server([*flags, "--models-memory", str(math.ceil(2 * needed))]) as server:
        with open_stub(server.address) as stub:
            answers = [
                stub.Translate(request("A dog runs.", source=source, target=target), timeout=TIMEOUT)
                for source, target in (("fr", "de"), ("en", "fr"), ("fr", "de"), ("en", "fr"))
            ]
        evictions = metric(server, "model_unloads_total", reason="evicted")

    assert [len(answer.translations[0].route) for answer in answers] == [0, 2, 0, 2]
    assert answers[1].translations[0].text == answers[3].translations[0].text
    assert evictions >= 2
