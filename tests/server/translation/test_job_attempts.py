"""A job whose sentences come back without their parts: they are translated again, shown in another way."""

import dataclasses
import time
from collections.abc import Callable

import pytest

from server.bundle.masking import Masking
from server.decoding.options import DecodingOptions
from server.errors import DeadlineExceeded, EngineFailed, NotServing, Overloaded, TranslationError
from server.models.model import Model
from server.telemetry.metrics import Metrics
from server.text.glossary import Glossary
from server.text.masked import Placement
from server.text.sentences import split_text
from server.text.source import SplitText
from server.text.term_table import Term
from server.translation.answer import TextAnswer
from server.translation.job import Job
from server.translation.legs import Leg
from tests.server.echo_engine import EchoEngine
from tests.server.translation.parts import start_job

MASKING = Masking(num_placeholders=8, codes=("%{}",))
TEXT = "A dog a.txt runs."
Ids = tuple[int, ...]


@pytest.fixture
def masking_model(model: Model) -> Model:
    return dataclasses.replace(model, manifest=dataclasses.replace(model.manifest, masking=MASKING))


FAILURES = (
    Overloaded("the answer would have come after the deadline", "deadline"),
    Overloaded("there is no memory for this sentence", "memory"),
    EngineFailed("translation failed"),
    NotServing("the server has lost its device"),
)


async def start(model: Model, text: str, num_legs: int = 1, seconds: float = 60.0) -> Job:
    leg = Leg(model=model, pair=model.manifest.language_pairs[0], options=DecodingOptions())
    rules = leg.split_rules
    split = split_text(text, "en", rules.encode, rules.max_tokens, masker=rules.masker)
    return await start_job([TextAnswer(split, (leg,) * num_legs)], seconds)


def lost(model: Model, *carriers: str) -> Callable[[Ids], Ids]:
    """Returns a translation that lacks what some carriers are encoded as."""
    of_carriers = {tuple(model.tokenizer.encode(f"A {each}")[1:-1]) for each in carriers}

    def translate(source: Ids) -> Ids:
        for ids in of_carriers:
            for start in range(len(source)):
                if source[start : start + len(ids)] == ids:
                    return source[:start] + source[start + len(ids) :]
        return source

    return translate


@pytest.mark.parametrize(
    ("carriers", "num_attempts", "placement"),
    [
        ((), 1, Placement.BY_MODEL),
        (("\ue000",), 2, Placement.BY_MODEL),
        (("\ue000", "%1"), 3, Placement.BY_POSITION),
    ],
)
async def test_a_sentence_is_translated_again_until_it_is_whole(
    masking_model: Model, engine: EchoEngine, carriers: tuple[str, ...], num_attempts: int, placement: Placement
) -> None:
    engine.translates = lost(masking_model, *carriers)
    with await start(masking_model, TEXT) as job:
        await job.finish()

    (answer,) = job.answers
    assert answer.text(0) == TEXT
    assert [(part.text, part.placement) for part in answer.kept] == [("a.txt", placement)]
    assert len(engine.futures) == num_attempts
    assert all(flow.rank < engine.flows[0].rank for flow in engine.flows[1:]), "what is half done goes first"


@pytest.mark.parametrize("is_long", [False, True])
async def test_another_attempt_is_of_the_flow_of_its_request(
    masking_model: Model, engine: EchoEngine, is_long: bool
) -> None:
    engine.translates, engine.is_long = lost(masking_model, "\ue000"), is_long
    with await start(masking_model, TEXT) as job:
        await job.finish()

    assert [flow.is_long for flow in engine.flows] == [False, is_long], "the engine finds out about the first one"


async def test_attempts_and_parts_are_counted(masking_model: Model, engine: EchoEngine, metrics: Metrics) -> None:
    engine.translates = lost(masking_model, "\ue000")
    with await start(masking_model, TEXT) as job:
        await job.finish()

    labels = {"model": "echo", "version": "7"}
    get = metrics.registry.get_sample_value
    assert get("babelserve_repeated_sentences_total", labels) == 1
    assert get("babelserve_kept_parts_total", {**labels, "placement": "by_model"}) == 1


async def test_a_full_queue_has_the_part_put_by_its_position(masking_model: Model, engine: EchoEngine) -> None:
    translate = lost(masking_model, "\ue000")

    def refuse_what_follows(source: Ids) -> Ids:
        engine.refuses = Overloaded("full", "queue")
        return translate(source)

    engine.translates = refuse_what_follows
    with await start(masking_model, TEXT) as job:
        await job.finish()

    (answer,) = job.answers
    assert answer.error is None
    assert answer.text(0) == "A dog a.txt runs."
    assert [part.placement for part in answer.kept] == [Placement.BY_POSITION]


@pytest.mark.parametrize("error", FAILURES)
async def test_an_attempt_that_fails_leaves_the_one_before(
    masking_model: Model, engine: EchoEngine, error: TranslationError
) -> None:
    engine.translates = lost(masking_model, "\ue000")
    engine.fails = lambda _: error if len(engine.options) > 1 else None
    with await start(masking_model, TEXT) as job:
        await job.finish()

    (answer,) = job.answers
    assert answer.error is None
    assert answer.text(0) == TEXT
    assert [part.placement for part in answer.kept] == [Placement.BY_POSITION]
    assert len(engine.futures) == 2


async def test_a_request_that_is_late_fails_although_it_has_a_translation(
    masking_model: Model, engine: EchoEngine
) -> None:
    late = DeadlineExceeded("the deadline passed before the translation was done")

    def fail(_: Ids) -> Exception | None:
        if len(engine.options) == 1:
            return None
        time.sleep(1.0)  # until the deadline has passed
        return late

    engine.translates, engine.fails = lost(masking_model, "\ue000"), fail
    with await start(masking_model, TEXT, seconds=1.0) as job, pytest.raises(DeadlineExceeded):
        await job.finish()

    assert job.answers[0].error is late


async def test_either_leg_is_taken_again(masking_model: Model, engine: EchoEngine) -> None:
    engine.translates = lost(masking_model, "\ue000")
    with await start(masking_model, TEXT, num_legs=2) as job:
        await job.finish()

    (answer,) = job.answers
    assert answer.text(0) == TEXT
    assert [(part.text, part.placement) for part in answer.kept] == [("a.txt", Placement.BY_MODEL)]
    assert len(engine.futures) == 4


async def test_a_number_that_is_missing_is_shown_as_a_part(masking_model: Model, engine: EchoEngine) -> None:
    number = tuple(masking_model.tokenizer.encode("A 4711")[1:-1])

    def lose(source: Ids) -> Ids:
        places = (start for start in range(len(source)) if source[start : start + len(number)] == number)
        start = next(places, None)
        return source if start is None else source[:start] + source[start + len(number) :]

    engine.translates = lose
    with await start(masking_model, "A dog 4711 runs.") as job:
        await job.finish()

    (answer,) = job.answers
    assert answer.text(0) == "A dog 4711 runs."
    assert [(part.text, part.placement) for part in answer.kept] == [("4711", Placement.BY_MODEL)]


def with_term(model: Model, options: DecodingOptions | None = None, text: str = "A dog runs.") -> TextAnswer:
    """The answer to a sentence with a term that no translation has."""
    glossary = Glossary([Term(("dog",), ("Hund",))])
    options = options or DecodingOptions()
    leg = Leg(model=model, pair=model.manifest.language_pairs[0], options=options, glossary=glossary)
    rules = leg.split_rules
    split = split_text(text, "en", rules.encode, rules.max_tokens, masker=rules.masker)
    (sentence,) = split.sentences
    sentence = dataclasses.replace(sentence, terms=tuple(glossary.find(sentence.text)))
    return TextAnswer(SplitText("", (sentence,)), (leg,))


@pytest.mark.parametrize("choice", ["Der Hund rennt.", "Der Mann rennt."])
async def test_a_choice_that_has_lost_the_term_is_not_taken(model: Model, engine: EchoEngine, choice: str) -> None:
    """The second search has the term behind a wrong article, and then the likeliest choice comes."""
    answers = [with_term(model)]
    texts = iter(["A dog runs.", "Die Hund rennt.", choice])
    engine.translates = lambda source: model.tokenizer.encode(next(texts))

    with await start_job(answers) as job:
        await job.finish()

    assert answers[0].text(0) == (choice if "Hund" in choice else "Die Hund rennt.")
    assert len(engine.options) == 3


async def test_a_choice_that_fails_leaves_the_second_search(model: Model, engine: EchoEngine) -> None:
    answers = [with_term(model)]
    texts = iter(["A dog runs.", "Die Hund rennt."])
    engine.translates = lambda source: model.tokenizer.encode(next(texts))
    engine.fails = lambda _: EngineFailed("translation failed") if len(engine.options) > 2 else None

    with await start_job(answers) as job:
        await job.finish()

    assert answers[0].text(0) == "Die Hund rennt."
    assert len(engine.options) == 3


async def test_a_search_for_terms_that_finds_none_is_in_vain(model: Model, engine: EchoEngine) -> None:
    """The first translation is better: the second was bent for a term that it lacks all the same."""
    answers = [with_term(model)]
    texts = iter(["A dog runs.", "A man runs."])
    engine.translates = lambda source: model.tokenizer.encode(next(texts))

    with await start_job(answers) as job:
        await job.finish()

    assert answers[0].text(0) == "A dog runs."
    assert len(engine.options) == 2


async def test_a_search_that_mends_a_part_is_taken_although_it_lacks_a_term(
    masking_model: Model, engine: EchoEngine
) -> None:
    answers = [with_term(masking_model, text=TEXT)]
    engine.translates = lost(masking_model, "\ue000")

    with await start_job(answers) as job:
        await job.finish()

    assert [(part.text, part.placement) for part in answers[0].kept] == [("a.txt", Placement.BY_MODEL)]
    assert [used.span for used in answers[0].sentences[0].terms] == [None]
    assert len(engine.options) == 2


async def test_what_agrees_with_a_term_is_taken_as_the_best_translation(model: Model, engine: EchoEngine) -> None:
    answers = [with_term(model, DecodingOptions(num_hypotheses=2))]
    texts = iter(["Das Tier rennt.", "Das Hund rennt.", "Der Hund rennt."])
    engine.translates = lambda source: model.tokenizer.encode(next(texts))

    with await start_job(answers) as job:
        await job.finish()

    assert [each.text for each in answers[0].sentences[0].candidates] == ["Der Hund rennt.", "Das Hund rennt"]
    assert [used.span for used in answers[0].sentences[0].terms] == [(4, 8)]
    *_, options = engine.options
    assert [model.tokenizer.decode(ids[:-1]) for ids in options.given_targets] == ["Der Hund rennt.", "Den Hund rennt."]
    assert (len(engine.options), options.beam_size, options.num_hypotheses) == (3, 2, 1)


@pytest.mark.parametrize("error", FAILURES)
async def test_a_search_for_terms_that_fails_leaves_the_first_translation(
    model: Model, engine: EchoEngine, error: TranslationError
) -> None:
    answers = [with_term(model)]
    engine.fails = lambda _: error if len(engine.options) > 1 else None

    with await start_job(answers) as job:
        await job.finish()

    assert (answers[0].error, answers[0].text(0)) == (None, "A dog runs.")
    assert [used.span for used in answers[0].sentences[0].terms] == [None]
    assert len(engine.options) == 2


async def test_a_term_is_missed_where_no_second_search_is_taken(model: Model, engine: EchoEngine) -> None:
    def refuse_what_follows(source: Ids) -> Ids:
        engine.refuses = DeadlineExceeded("the answer would take about 9 s of an idle server, 1 s are left for it")
        return source

    engine.translates = refuse_what_follows
    answers = [with_term(model)]
    with await start_job(answers) as job:
        await job.finish()

    assert (answers[0].error, answers[0].text(0)) == (None, "A dog runs.")
