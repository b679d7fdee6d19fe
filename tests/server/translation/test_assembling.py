import dataclasses
import threading

import pytest

from server.models.model import Model
from server.text.markup.document import Mark
from server.text.markup.sentence_markup import SentenceMarkup
from server.text.source import SplitText
from server.translation.answer import TextAnswer
from server.translation.assembling import assemble
from server.translation.submission import Place
from tests.server.translation.parts import DOG, STARS
from tests.server.translation.test_job import start


@pytest.mark.parametrize(("num_sentences", "is_aside"), [(1, False), (600, True)])
async def test_long_answers_are_put_together_off_the_event_loop(
    model: Model, num_sentences: int, is_aside: bool
) -> None:
    with await start(model, [TextAnswer(SplitText("", (STARS,) * num_sentences))]) as job:
        thread = await assemble(job, threading.get_ident)

    assert (thread != threading.get_ident()) is is_aside


@pytest.mark.parametrize(("num_sentences", "num_marks", "is_aside"), [(1, 20, False), (1, 600, True), (5, 1, True)])
async def test_tags_are_placed_off_the_event_loop_if_they_or_their_sentences_are_many(
    model: Model, num_sentences: int, num_marks: int, is_aside: bool
) -> None:
    markup = SentenceMarkup((Mark(1, 1, "<br>", ""),) * num_marks, {}, str)
    sentences = (dataclasses.replace(DOG, markup=markup),) * num_sentences
    with await start(model, [TextAnswer(SplitText("", sentences))]) as job:
        threads = {await assemble(job, threading.get_ident)}
        of_one = await assemble(job, threading.get_ident, Place(0, 0))

    assert (threads != {threading.get_ident()}) is is_aside
    assert (of_one != threading.get_ident()) is (num_marks > 500)
