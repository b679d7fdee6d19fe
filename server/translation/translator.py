"""From a request to a job: the one way that every front takes."""

import contextlib
import time

from server.decoding.options import DecodingOptions
from server.errors import DeadlineExceeded, NotServing, Overloaded
from server.models.model import Model
from server.telemetry.log import add_facts
from server.text.splitter import SplitRules, Splitter
from server.translation.answer import TextAnswer
from server.translation.job import Job, raise_if_all_failed, start_job
from server.translation.memory import MemoryBudget, sentences_need
from server.translation.request import TranslationRequest
from server.translation.rules import check_decoding, check_mime_type, check_model, check_texts, choose_source_language


class Translator:
    """Accepts requests, on the event loop's thread; refuses all until `model` is set.

    Args:
        beam_size: of requests that name none, where the model allows it.
        max_request_seconds: deadline of requests that have none, or a later one.
        memory: of all requests.

    Attributes:
        max_request_seconds, memory: as given.
    """

    def __init__(self, *, beam_size: int, max_request_seconds: float, memory: MemoryBudget) -> None:
        self.model: Model | None = None
        self.max_request_seconds = max_request_seconds
        self.memory = memory
        self._beam_size = beam_size
        self._splitter = Splitter()

    def served_model(self) -> Model:
        """Returns the model. Raises NotServing while there is none."""
        if self.model is None:
            raise NotServing("the server is loading its model")
        return self.model

    async def accept(self, request: TranslationRequest) -> Job:
        """Checks a request, splits its texts into sentences and gives these to the engine.

        Raises:
            InvalidRequest: a field breaks a rule, or every text does.
            ModelNotFound: there is no such model.
            Overloaded: a limit of the server is reached.
            NotServing: there is no model yet, or it has stopped.
            DeadlineExceeded: the time is over already.
        """
        model = self.served_model()
        try:
            return await self._accept(request, model)
        except Overloaded as error:
            model.metrics.count_refusal(error.reason)
            raise

    async def _accept(self, request: TranslationRequest, model: Model) -> Job:
        manifest = model.manifest
        check_texts(len(request.contents))
        check_model(manifest, request.model)
        check_mime_type(request.mime_type)
        language = choose_source_language(manifest, request.source_language_code, request.target_language_code)
        defaults = DecodingOptions(beam_size=min(self._beam_size, manifest.limits.max_beam_size))
        options = check_decoding(request.decoding, defaults, manifest.limits, has_shortlist=model.has_shortlist)
        deadline = min(request.deadline, request.arrived + self.max_request_seconds)
        num_characters = sum(map(len, request.contents))
        # Before the texts are split: a full server does not pay for what it refuses.
        model.engine.check_room(num_characters, options, deadline)
        rules = SplitRules(language, model.tokenizer.encode, manifest.limits.max_source_tokens)
        answers = [TextAnswer(split) for split in await self._splitter.split(request.contents, rules, deadline)]
        sentences = [sentence for answer in answers for sentence in answer.split.sentences]
        num_tokens = sum(sentence.num_tokens for sentence in sentences)
        model.metrics.request_source_tokens.observe(num_tokens)
        model.engine.observe_text(num_characters, num_tokens)
        add_facts(texts=len(answers), sentences=len(sentences), source_tokens=num_tokens, beam_size=options.beam_size)
        raise_if_all_failed(answers)
        if time.monotonic() >= deadline:
            raise DeadlineExceeded("the time was over before the translation could start")
        with contextlib.ExitStack() as held:
            held.enter_context(self.memory.hold(sentences_need(len(sentences), options.num_hypotheses)))
            job = await start_job(model, options, answers, deadline, request.arrived)
            job.held.push(held.pop_all())
        return job
