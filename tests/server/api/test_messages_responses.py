"""Responses made of a job's answers, without a server."""

import dataclasses

import grpc
import pytest

from babelserve.v1 import translation_pb2 as pb
from server.access.tenants import ANONYMOUS
from server.api.messages import model_info, opening_responses, read_request, response, stream_response
from server.bundle.languages import LanguagePair
from server.decoding.options import DecodingOptions
from server.decoding.result import FinishReason, Timings
from server.engine.flow import ANYONE
from server.errors import EngineFailed, InvalidRequest
from server.models.model import Model
from server.text.masked import KeptPart, Placement
from server.text.source import SourceSentence, SplitText
from server.text.splitter import MAX_TEXT_BYTES
from server.translation.answer import Candidate, TextAnswer, TranslatedSentence
from server.translation.detection import DetectedLanguage
from server.translation.job import Job
from server.translation.legs import Leg
from server.translation.mailbox import Doorbell
from server.translation.submission import Place
from server.translation.translator import Translator

INVALID, INTERNAL = (code.value[0] for code in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.INTERNAL))


async def finished(translator: Translator, *contents: str, num_hypotheses: int = 1) -> tuple[Job, float]:
    """A job that has its answers, and the instant of its request."""
    decoding = pb.DecodingOptions(num_hypotheses=num_hypotheses)
    request = read_request(
        pb.TranslateRequest(contents=contents, target_language_code="de", decoding=decoding), None, ANONYMOUS
    )
    with await translator.accept(request) as job:
        await job.finish()
    return job, request.arrived


async def test_a_response_names_the_model_and_the_longest_times(translator: Translator) -> None:
    job, arrived = await finished(translator, "A dog runs. A man sits.")

    message = response(job, arrived - 2.0, pb.OutputOptions())

    assert (message.model, message.model_version) == ("echo", "7")
    times = message.timings
    assert (times.queue_seconds, times.encode_seconds, times.decode_seconds) == (0.25, 0.5, 1.0)
    assert times.total_seconds >= 2.0


async def test_sentences_are_in_a_response_if_they_were_asked_for(translator: Translator) -> None:
    job, arrived = await finished(translator, " A dog runs.\n***")

    (without,) = response(job, arrived, pb.OutputOptions()).translations
    (with_sentences,) = response(job, arrived, pb.OutputOptions(include_sentences=True)).translations

    assert without.text == with_sentences.text == " A dog runs.\n***"
    assert not without.sentences
    assert [(s.source_text, s.text, s.separator) for s in with_sentences.sentences] == [
        ("A dog runs.", "A dog runs.", "\n"),
        ("***", "***", ""),
    ]


async def test_a_translation_has_as_many_hypotheses_as_were_asked_for(translator: Translator) -> None:
    job, arrived = await finished(translator, "A dog runs.", "", num_hypotheses=2)

    whole, empty = response(job, arrived, pb.OutputOptions()).translations

    assert [(h.text, h.score) for h in whole.hypotheses] == [("A dog runs.", -1.0), ("A dog runs", -2.0)]
    assert (whole.text, whole.score) == (whole.hypotheses[0].text, whole.hypotheses[0].score)
    assert [(h.text, h.score) for h in empty.hypotheses] == [("", 0.0)] * 2


@pytest.mark.parametrize("num_hypotheses", [1, 2])
async def test_the_best_translation_is_sent_once_if_that_is_asked_for(
    translator: Translator, num_hypotheses: int
) -> None:
    job, arrived = await finished(translator, "A dog runs.", "", num_hypotheses=num_hypotheses)

    twice = response(job, arrived, pb.OutputOptions()).translations
    once = response(job, arrived, pb.OutputOptions(text_once=True)).translations

    assert [each.text for each in once] == ["A dog runs.", ""]
    assert once[0].hypotheses[0] == pb.Hypothesis(score=-1.0)
    for short, long in zip(once, twice, strict=True):
        short.hypotheses[0].text = short.text
        assert short == long


async def test_a_text_that_failed_has_its_status_and_nothing_else(translator: Translator) -> None:
    job, arrived = await finished(translator, "x " * MAX_TEXT_BYTES, "A dog runs.")

    failed, whole = response(job, arrived, pb.OutputOptions(include_sentences=True)).translations

    assert failed.status.code == INVALID
    assert failed.status.message.startswith("contents[0]: must be at most")
    assert failed == pb.Translation(status=failed.status)
    assert not whole.HasField("status")


def job_of(model: Model, *answers: TextAnswer) -> Job:
    """A job whose answers are put in by hand."""
    (pair,) = model.manifest.language_pairs
    for answer in answers:
        answer.legs = (Leg(model=model, pair=pair, options=DecodingOptions(beam_size=1)),)
    return Job(answers, [], deadline=0.0, arrived=0.0, flow=ANYONE, doorbell=Doorbell())


def test_a_stream_opens_with_what_will_have_no_sentence(model: Model) -> None:
    sentence = SourceSentence("A dog runs.", "", (5, 3))
    answers = [
        TextAnswer(SplitText(" ", (sentence,))),
        TextAnswer(SplitText(" \n", ())),
        TextAnswer(SplitText("", (), InvalidRequest("contents[2]", "is too long"))),
    ]

    empty, failed = opening_responses(job_of(model, *answers))

    assert empty == pb.TranslateStreamResponse(content_index=1, leading=" \n", model="echo", model_version="7")
    assert (failed.content_index, failed.status.code) == (2, INVALID)
    assert failed.status.message == "contents[2]: is too long"


REASONS = {
    FinishReason.STOP: pb.FINISH_REASON_STOP,
    FinishReason.LENGTH: pb.FINISH_REASON_LENGTH,
    FinishReason.COPIED: pb.FINISH_REASON_COPIED,
    FinishReason.REPETITION: pb.FINISH_REASON_REPETITION,
}


@pytest.mark.parametrize("reason", FinishReason)
def test_a_sentence_in_a_stream_has_its_place_and_how_it_ended(reason: FinishReason, model: Model) -> None:
    one, two = SourceSentence("one", " ", (5, 6, 3)), SourceSentence("two", "\n", (7, 3))
    answer = TextAnswer(SplitText("\t", (one, two)))
    answer.sentences[0] = TranslatedSentence(one, (Candidate("eins", -1.5, 4, reason),), Timings(queue_seconds=1.0))
    answer.sentences[1] = TranslatedSentence(two, (Candidate("zwei", -0.5, 1, reason),))

    job = job_of(model, answer)
    first, second = (stream_response(job, Place(0, index), pb.OutputOptions()) for index in range(2))

    assert (first.content_index, first.sentence_index, first.sentence_count, first.leading) == (0, 0, 2, "\t")
    assert first.sentence == pb.Sentence(
        source_text="one",
        text="eins",
        separator=" ",
        score=-1.5,
        finish_reason=REASONS[reason],
        source_tokens=2,
        target_tokens=4,
        source_begin=1,
        source_end=4,
    )
    assert (second.sentence_index, second.leading, second.sentence.text) == (1, "", "zwei")
    assert [(each.model, each.model_version) for each in (first, second)] == [("echo", "7")] * 2


def test_a_text_that_fails_in_a_stream_sends_its_status(model: Model) -> None:
    answer = TextAnswer(SplitText("\t", (SourceSentence("one", "", (5, 3)),)))
    answer.error = EngineFailed("translation failed")

    fine = TextAnswer(SplitText("", ()))
    message = stream_response(job_of(model, fine, answer), Place(1, 0), pb.OutputOptions())

    assert (message.status.code, message.status.message) == (INTERNAL, "translation failed")
    assert message == pb.TranslateStreamResponse(
        content_index=1, status=message.status, model="echo", model_version="7"
    )


def test_a_model_is_described_by_its_manifest(model: Model) -> None:
    limits = model.manifest.limits

    info = model_info(model)

    assert (info.name, info.version, info.variant, info.has_shortlist) == ("echo", "7", "cpu-fp32", False)
    assert [(pair.source_language_code, pair.target_language_code) for pair in info.language_pairs] == [("en", "de")]
    assert (info.max_beam_size, info.max_source_tokens, info.max_target_tokens) == (
        limits.max_beam_size,
        limits.max_source_tokens,
        limits.max_target_tokens,
    )


def leg(model: Model, name: str, version: str, source: str, target: str) -> Leg:
    manifest = dataclasses.replace(model.manifest, name=name, version=version)
    pair = LanguagePair(source=source, target=target)
    return Leg(model=dataclasses.replace(model, manifest=manifest), pair=pair, options=DecodingOptions())


def job_of_ways(model: Model, num_texts: int = 3) -> Job:
    """Of texts that were found to be in English and German, and of one that goes nowhere; each has a sentence."""
    first, second = leg(model, "ende", "1", "en", "de"), leg(model, "defr", "4", "de", "fr")
    sentence = SourceSentence("one", "", (5, 3))
    answers = [
        TextAnswer(SplitText("", (sentence, sentence)), (first, second), DetectedLanguage("en", 0.75)),
        TextAnswer(SplitText("", (sentence,)), (second,), DetectedLanguage("de", 0.5)),
        TextAnswer(SplitText("", (), InvalidRequest("contents[2]", "detected language es"))),
    ]
    for answer in answers:
        made = TranslatedSentence(sentence, (Candidate("un", -1.0, 1, FinishReason.STOP),))
        answer.sentences = dict.fromkeys(range(len(answer.split.sentences)), made)
    return Job(answers[:num_texts], [], deadline=0.0, arrived=0.0, flow=ANYONE, doorbell=Doorbell())


FIRST, SECOND = (
    pb.RouteLeg(model=model, model_version=version, source_language_code=source, target_language_code=target)
    for model, version, source, target in (("ende", "1", "en", "de"), ("defr", "4", "de", "fr"))
)


def test_texts_of_different_routes_name_each_their_own(model: Model) -> None:
    message = response(job_of_ways(model), 0.0, pb.OutputOptions())

    assert (message.model, message.model_version) == ("", "")
    assert (message.source_language_code, message.target_language_code) == ("", "fr")
    assert [[*each.route] for each in message.translations] == [[FIRST, SECOND], [SECOND], []]
    found = [(each.detected_language_code, each.detection_confidence) for each in message.translations]
    assert found == [("en", 0.75), ("de", 0.5), ("", 0.0)]


def test_one_route_over_two_models_is_that_of_the_whole_response(model: Model) -> None:
    message = response(job_of_ways(model, num_texts=1), 0.0, pb.OutputOptions())

    assert (message.model, message.model_version) == ("defr", "4")
    assert (message.source_language_code, message.target_language_code) == ("en", "fr")
    assert [*message.translations[0].route] == [FIRST, SECOND]


def test_a_stream_names_language_and_route_with_a_texts_first_sentence(model: Model) -> None:
    job = job_of_ways(model)
    (refused,) = opening_responses(job)
    first, second, german = (
        stream_response(job, place, pb.OutputOptions()) for place in (Place(0, 0), Place(0, 1), Place(1, 0))
    )

    assert [[*each.route] for each in (first, second, german)] == [[FIRST, SECOND], [], [SECOND]]
    assert [each.detected_language_code for each in (first, second, german)] == ["en", "", "de"]
    assert (first.detection_confidence, german.detection_confidence) == (0.75, 0.5)
    assert [(each.model, each.model_version) for each in (first, second, german)] == [("defr", "4")] * 3
    assert (refused.content_index, refused.status.code, refused.model) == (2, INVALID, "")


async def test_one_model_is_named_once(translator: Translator) -> None:
    job, arrived = await finished(translator, "A dog runs.")

    assert not response(job, arrived, pb.OutputOptions()).translations[0].route


PARTS = (
    KeptPart("a.txt", Placement.BY_MODEL),
    KeptPart("\u2192", Placement.BY_POSITION),
    KeptPart("5", Placement.MISSING),
)
KEPT = [
    pb.KeptPart(text="a.txt", placement=pb.PLACEMENT_BY_MODEL),
    pb.KeptPart(text="\u2192", placement=pb.PLACEMENT_BY_POSITION),
    pb.KeptPart(text="5", placement=pb.PLACEMENT_MISSING),
]


def test_what_was_kept_is_told_of_sentences_and_of_texts(model: Model) -> None:
    job = job_of_ways(model, num_texts=1)
    (answer,) = job.answers
    answer.sentences[1] = dataclasses.replace(answer.sentences[1], kept=PARTS)

    (translation,) = response(job, 0.0, pb.OutputOptions(include_sentences=True)).translations

    assert [*translation.kept] == KEPT
    assert [[*each.kept] for each in translation.sentences] == [[], KEPT]
    assert [*stream_response(job, Place(0, 1), pb.OutputOptions()).sentence.kept] == KEPT


async def test_a_text_with_a_script_that_the_model_does_not_know_is_copied_or_refused(translator: Translator) -> None:
    def asked(refuses: bool) -> pb.TranslateRequest:
        return pb.TranslateRequest(
            contents=["\u4f60\u597d", "A dog."],
            target_language_code="de",
            text=pb.TextOptions(refuse_unknown_scripts=refuses),
        )

    jobs = []
    for message in (asked(refuses=False), asked(refuses=True)):
        with await translator.accept(read_request(message, None, ANONYMOUS)) as job:
            await job.finish()
        jobs.append(response(job, 0.0, pb.OutputOptions()).translations)

    (copied, translated), (refused, beside) = jobs
    assert (copied.text, copied.finish_reason) == ("\u4f60\u597d", pb.FINISH_REASON_COPIED)
    assert refused.status.code == INVALID
    assert refused.status.message == (
        "contents[0]: has a sentence, number 0, in a script that the model does not know: CJK"
    )
    assert translated.text == beside.text == "A dog."


@pytest.mark.parametrize(("are_alternatives", "number"), [(True, 2), (False, 3)])
async def test_there_are_as_many_alternatives_as_were_found(
    translator: Translator, are_alternatives: bool, number: int
) -> None:
    job, arrived = await finished(translator, "A dog runs.", num_hypotheses=3)
    (answer,) = job.answers
    (leg,) = answer.legs
    options = dataclasses.replace(leg.options, return_alternatives=are_alternatives)
    answer.legs = (dataclasses.replace(leg, options=options),)
    sentence = answer.sentences[0]
    answer.sentences[0] = dataclasses.replace(sentence, candidates=sentence.candidates[:2])

    (translation,) = response(job, arrived, pb.OutputOptions()).translations

    assert len(translation.hypotheses) == number


def test_a_model_says_its_family_and_whether_it_obeys_lengths(model: Model) -> None:
    at_once = dataclasses.replace(model, manifest=dataclasses.replace(model.manifest, family="one_pass"))

    told = [(info.family, info.has_length_control, info.max_length_ratio) for info in map(model_info, (model, at_once))]

    assert told == [("transformer", False, 0.0), ("one_pass", True, 2.0)]
