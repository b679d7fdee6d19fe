"""Where a response is put together: on the event loop's thread if that is quick, else on another one."""

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeVar

from server.text.source import SourceSentence
from server.translation.job import Job
from server.translation.submission import FEW_SENTENCES, Place

_FEW_WITH_WORDS = 4  # sentences whose words are looked for on the event loop's thread; a hostile one takes 20 ms

_T = TypeVar("_T")


async def assemble(job: Job, build: Callable[[], _T], place: Place | None = None) -> _T:
    """Calls a function that builds a response of a job, on another thread if that takes long.

    Args:
        job: whose answers are in the response.
        build: builds it.
        place: of the sentence that is in the response; None for all of them.
    """
    sentences: Iterable[SourceSentence] = (each for answer in job.answers for each in answer.split.sentences)
    if place is not None:
        sentences = (job.answers[place.text].split.sentences[place.sentence],)
    options = job.routes[0][-1].options
    have_words = options.with_tokens or options.with_alignment
    of_sentence = FEW_SENTENCES // _FEW_WITH_WORDS
    work = 0
    for sentence in sentences:
        num_marks = len(sentence.markup.marks) if sentence.markup else 0
        work += of_sentence + num_marks if have_words or num_marks else 1
        if work > FEW_SENTENCES:
            return await asyncio.to_thread(build)
    return build()
