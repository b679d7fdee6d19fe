"""From a request to a job: the one way that every front takes."""

import asyncio
import contextlib
import functools
import time
from collections.abc import Iterator

from server.access.tenants import Tenant
from server.bundle.languages import LanguagePair
from server.bundle.manifest import Manifest
from server.decoding.options import DecodingOptions
from server.engine.flow import Flow
from server.errors import Code, DeadlineExceeded, Overloaded, TranslationError
from server.models.catalogue import Catalogue
from server.models.model import Model
from server.telemetry.access_metrics import AccessMetrics
from server.telemetry.log import add_facts
from server.text.splitter import MAX_TEXT_BYTES, SplitRules, Splitter
from server.translation.answer import TextAnswer
from server.translation.doors import Doors
from server.translation.job import Job, raise_if_all_failed, start_job
from server.translation.languages import choose_languages
from server.translation.memory import MemoryBudget, sentences_need
from server.translation.request import TranslationRequest
from server.translation.routing import choose_model
from server.translation.rules import (
    check_answer,
    check_decoding,
    check_mime_type,
    check_priority,
    check_texts,
    check_traffic_key,
)

_BEAM_SIZE = 4  # of a model that names none
_KNOWN_QUOTA_SECONDS = 0.1  # for which a quota is taken to be used up for others, too, who may ask for less


class Translator:
    """Accepts requests, on the event loop's thread; refuses all until a model is served.

    Args:
        catalogue: of the models.
        beam_size: of requests that name none, where the model allows it; 0 for the model's own.
        max_request_seconds: deadline of requests that have none, or a later one.
        memory: of all requests.
        metrics: told what each tenant's requests cost.

    Attributes:
        catalogue, max_request_seconds, memory: as given.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        *,
        beam_size: int,
        max_request_seconds: float,
        memory: MemoryBudget,
        metrics: AccessMetrics,
    ) -> None:
        self.catalogue = catalogue
        self.max_request_seconds = max_request_seconds
        self.memory = memory
        self._beam_size = beam_size
        self._metrics = metrics
        self._splitter = Splitter()
        self._doors = Doors()

    def check_open(self, tenant: Tenant, remaining: float | None) -> None:
        """Says whether a request is worth reading.

        Args:
            tenant: who asks.
            remaining: seconds that its caller still waits; None for ever.

        Raises:
            Overloaded: it would be refused, whatever it asks for.
        """
        if not self.catalogue.is_open:
            return  # `accept` says so
        seconds = self.max_request_seconds if remaining is None else min(remaining, self.max_request_seconds)
        try:
            _charge(tenant, 0.0)
            self._doors.check(tenant, time.monotonic() + seconds)
        except Overloaded as error:
            self.catalogue.models[0].metrics.count_refusal(error.reason)
            raise

    async def accept(self, request: TranslationRequest) -> Job:
        """Checks a request, splits its texts into sentences and gives these to the engine.

        Raises:
            InvalidRequest: a field breaks a rule, or every text does.
            ModelNotFound: there is no such model.
            Overloaded: a limit of the server is reached, or the tenant's quota.
            NotServing: there is no model yet, or it has stopped.
            DeadlineExceeded: the time is over already.
        """
        check_texts(len(request.contents))
        check_traffic_key(request.traffic_key)
        name = choose_model(self.catalogue, request)
        with contextlib.ExitStack() as held:
            model = held.enter_context(await self._borrow(name, request))
            held.enter_context(_counted(model, request))
            add_facts(model=name, model_version=model.manifest.version)
            try:
                job = await self._accept(request, model)
            except Overloaded as error:
                model.metrics.count_refusal(error.reason)
                # The next call may be for a version that is not busy.
                if self.catalogue.num_versions == 1 or error.reason == "quota":
                    deadline = min(request.deadline, request.arrived + self.max_request_seconds)
                    self._doors.close(request.tenant, request.priority, deadline, error)
                raise
            job.held.push(held.pop_all())
        return job

    async def _borrow(self, name: str, request: TranslationRequest) -> contextlib.AbstractContextManager[Model]:
        """Returns the model, which may have to be loaded first, before the request's time is over."""
        deadline = min(request.deadline, request.arrived + self.max_request_seconds)
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                return await self.catalogue.borrow(name, request.traffic_key)
        except TimeoutError as error:
            raise DeadlineExceeded(f"the time was over before model {name} was loaded") from error

    async def _accept(self, request: TranslationRequest, model: Model) -> Job:
        manifest = model.manifest
        check_mime_type(request.mime_type)
        check_priority(request.priority, request.tenant)
        pair = choose_languages(manifest, request.source_language_code, request.target_language_code)
        options = check_decoding(
            request.decoding,
            self._default_options(manifest, pair),
            manifest.limits,
            has_shortlist=model.has_shortlist,
            least_tokens=1 + manifest.search.forced_eos,
        )
        deadline = min(request.deadline, request.arrived + self.max_request_seconds)
        _charge(request.tenant, 0.0)  # a tenant in debt is refused at once
        num_characters = sum(len(text) for text in request.contents if len(text) <= MAX_TEXT_BYTES)  # others fail alone
        check_answer(num_characters, options.num_hypotheses)
        # Before the texts are split: a full server does not pay for what it refuses.
        flow = Flow(name=request.tenant.name, weight=request.tenant.weight, rank=request.priority)
        model.engine.check_room(num_characters, options, deadline, flow)
        rules = SplitRules(
            pair.source.partition("-")[0],
            functools.partial(model.tokenizer.encode, prefix=pair.source_prefix),
            manifest.limits.max_source_tokens,
            num_added=model.tokenizer.num_added(pair.source_prefix),
        )
        answers = [TextAnswer(split) for split in await self._splitter.split(request.contents, rules, deadline)]
        sentences = [sentence for answer in answers for sentence in answer.split.sentences]
        sentence_tokens = [sentence.num_tokens for sentence in sentences]
        num_tokens = sum(sentence_tokens)
        model.metrics.request_source_tokens.observe(num_tokens)
        model.engine.observe_text(num_characters, sentence_tokens)
        add_facts(texts=len(answers), sentences=len(sentences), source_tokens=num_tokens, beam_size=options.beam_size)
        raise_if_all_failed(answers)
        if time.monotonic() >= deadline:
            raise DeadlineExceeded("the time was over before the translation could start")
        cost = model.engine.predict_seconds([each.num_tokens for each in sentences if each.source_ids], options)
        with contextlib.ExitStack() as held:
            held.enter_context(self.memory.hold(sentences_need(len(sentences), options.num_hypotheses), is_more=True))
            _charge(request.tenant, cost)
            try:
                job = await start_job(model, pair, options, answers, deadline, request.arrived, flow)
            except TranslationError:
                _give_back(request.tenant, cost)
                raise
            job.held.push(held.pop_all())
        self._metrics.tenant_cost_seconds_total.labels(request.tenant.name).inc(cost)
        return job

    def _default_options(self, manifest: Manifest, pair: LanguagePair) -> DecodingOptions:
        """Returns how a translation is searched for where a request leaves it open."""
        beam_size = self._beam_size or manifest.search.beam_size or _BEAM_SIZE
        return DecodingOptions(
            beam_size=min(beam_size, manifest.limits.max_beam_size),
            length_penalty=manifest.search.length_penalty,
            forced_prefix=pair.target_prefix,
        )


@contextlib.contextmanager
def _counted(model: Model, request: TranslationRequest) -> Iterator[None]:
    """Counts a request of a model's version, by how it ends."""
    code = Code.CANCELLED
    try:
        yield
        code = Code.OK
    except TranslationError as error:
        code = error.code
        raise
    except Exception:
        code = Code.INTERNAL
        raise
    finally:
        now = time.monotonic()
        if code is Code.CANCELLED and now >= request.deadline:
            code = Code.DEADLINE_EXCEEDED
        model.metrics.count_request(code, now - request.arrived)


def _charge(tenant: Tenant, cost: float) -> None:
    """Takes a request's cost, in seconds of one lane, out of its tenant's quota; raises Overloaded if it is used up."""
    wait = tenant.bucket.take(cost) if tenant.bucket else 0.0
    if wait > 0:
        raise Overloaded(
            f"the quota of tenant {tenant.name} is used up", "quota", wait, min(wait, _KNOWN_QUOTA_SECONDS)
        )


def _give_back(tenant: Tenant, cost: float) -> None:
    """Undoes a charge for what the engine did not take."""
    if tenant.bucket:
        tenant.bucket.give_back(cost)
