"""Makes a job of a request, for every front."""

import asyncio
import contextlib
import functools
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType

from server.access.tenants import Tenant
from server.engine.flow import Flow
from server.errors import Code, DeadlineExceeded, InvalidRequest, Overloaded, PreconditionFailed, TranslationError
from server.models.catalogue import Catalogue
from server.models.glossaries import Glossaries
from server.models.model import Model
from server.telemetry.access_metrics import AccessMetrics
from server.telemetry.log import add_facts
from server.text.own_parts import own_parts
from server.text.source import SplitText
from server.text.splitter import Splitter
from server.translation.answer import TextAnswer
from server.translation.detection import HINT, DetectedLanguage, LanguageDetection
from server.translation.job import Job
from server.translation.mailbox import Doorbell
from server.translation.memory import MemoryBudget
from server.translation.pairs import direct_routes, encode_pairs
from server.translation.prefixes import add_prefixes, check_prefixes
from server.translation.refusals import Refusals
from server.translation.request import TranslationRequest, transit_seconds
from server.translation.routes import Routes, TextRoute, choose_routes
from server.translation.rules import (
    check_answer,
    check_priority,
    check_texts,
    check_traffic_key,
    with_known_scripts,
)
from server.translation.submission import are_many, submit_first
from server.translation.text_groups import TextGroup, group_texts, measure
from server.translation.type_rules import check_partial_text, check_type


class Translator:
    """Accepts requests, on the event loop's thread. It refuses all requests until a model is served.

    Args:
        catalogue: has the models.
        beam_size: for requests that name none, if the model allows it; 0 for the model's own.
        max_request_seconds: the deadline of requests that have none, or a later one.
        memory: counts the memory of all requests.
        metrics: are told what each tenant's requests cost.
        pivots: codes of languages between, in the order in which they are tried.
        glossaries: that requests may name.

    Attributes:
        detection: detects languages that requests leave open.
        metrics: as given.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        *,
        beam_size: int,
        max_request_seconds: float,
        memory: MemoryBudget,
        metrics: AccessMetrics,
        pivots: Sequence[str] = (),
        glossaries: Glossaries | None = None,
    ) -> None:
        self.catalogue = catalogue
        self.max_request_seconds = max_request_seconds
        self.memory = memory
        self.pivots = pivots
        self.glossaries = glossaries or Glossaries()
        self._beam_size = beam_size
        self.metrics = metrics
        self._splitter = Splitter()
        self.detection = LanguageDetection(memory, self._splitter)
        self._refusals = Refusals()
        self._doorbell = Doorbell()
        self._routes: Routes | None = None

    def check_open(self, tenant: Tenant, remaining: float | None) -> None:
        """Raises an error if a request is not worth reading.

        Args:
            tenant: the tenant of the call.
            remaining: seconds that the caller still waits; None for ever.

        Raises:
            Overloaded: the request would be refused, whatever it asks for.
        """
        if not self.catalogue.is_open:
            return  # then `accept` raises NotServing
        tenant.charge(0.0)
        self._refusals.check(tenant, self._deadline(remaining))

    async def accept(self, request: TranslationRequest) -> Job:
        """Checks a request, splits its texts into sentences and submits these to the engines.

        Raises:
            InvalidRequest: a field breaks a rule, or every text does.
            ModelNotFound: no model has the name that the request names.
            GlossaryNotFound: no glossary has a name that the request names.
            Overloaded: a limit of the server is reached, or the tenant's quota.
            NotServing: there is no model yet, or it has stopped.
            DeadlineExceeded: the time is over already.
        """
        if request.targets is None:
            check_texts(len(request.contents))
        else:
            check_texts(len(request.contents), "pairs", "pairs")
        check_traffic_key(request.traffic_key)
        own_parts(tuple(request.text.keep))  # raises if they break a rule
        if request.glossary is not None:
            request = replace(request, glossary=self.glossaries.resolve(request.glossary, request.tenant.name))
        if request.targets is None and self.glossaries.houses:
            request = replace(request, houses=self.glossaries.houses)
        deadline = request.deadline
        if not request.is_bulk:
            deadline = min(deadline, request.arrived + self.max_request_seconds)
        if request.targets is None:
            routes = await choose_routes(self._table(), request, self.detection, deadline)
        else:
            routes = direct_routes(self._table(), request)
        with contextlib.ExitStack() as held:
            names = list(dict.fromkeys(leg.manifest.name for route in dict.fromkeys(routes) for leg in route.legs))
            used = await self.catalogue.borrow(names, request.traffic_key, deadline, held)
            for model in used.values() if not request.is_bulk else ():  # a text of a bulk call is no call
                held.push(functools.partial(_count, model, request))
            add_facts(model=",".join(used), model_version=",".join(model.manifest.version for model in used.values()))
            try:
                job = await self._accept(request, routes, used, deadline, held)
            except Overloaded as error:
                # Among several versions, the next call may go to one that is not busy.
                if not request.is_bulk and (self.catalogue.num_versions == 1 or error.reason == "quota"):
                    self._refusals.note(request.tenant, request.priority, deadline, error)
                raise
            job.held.push(held.pop_all())
        return job

    async def detect(
        self, texts: Sequence[str], mime_type: str, tenant: Tenant, remaining: float | None = None
    ) -> Sequence[DetectedLanguage | InvalidRequest]:
        """Returns the language of each text, among those that the models translate from, or the error that refuses it.

        A text without a letter, and any where one language only is served, has the first one, with a confidence of 0.

        Args:
            texts: any texts.
            mime_type: of the texts.
            tenant: the tenant of the call.
            remaining: seconds that the caller still waits; None for ever.

        Raises:
            InvalidRequest: there are too few or too many texts, or their type is unknown.
            Overloaded: the tenant's quota is used up, or too much is being split or detected.
            DeadlineExceeded: the time is over.
            NotServing: there is no model.
            PreconditionFailed: several languages are served, and they cannot be detected here.
        """
        check_texts(len(texts))
        check_type(mime_type)
        tenant.charge(0.0)
        codes = list(dict.fromkeys(code for each in self._table().manifests for code in each.source_codes))
        first = DetectedLanguage(codes[0], 0.0)
        if len(codes) == 1:
            return [first] * len(texts)
        if not self.detection.is_available:
            raise PreconditionFailed(HINT)
        found = await self.detection.detect(texts, codes, mime_type, self._deadline(remaining))
        return [each or first for each in found]

    def _deadline(self, remaining: float | None) -> float:
        """Returns until when a request is worked on that may take so many seconds more; None for any number."""
        most = self.max_request_seconds
        return time.monotonic() + (most if remaining is None else min(remaining, most))

    def _table(self) -> Routes:
        """Returns the table of routes, a new one if the served models have changed. Raises NotServing."""
        manifests = self.catalogue.manifests
        if self._routes is None or self._routes.manifests is not manifests:
            self._routes = Routes(manifests, self.catalogue.preferred, self.pivots)
        return self._routes

    async def _accept(
        self,
        request: TranslationRequest,
        routes: Sequence[TextRoute],
        used: Mapping[str, Model],
        deadline: float,
        held: contextlib.ExitStack,
    ) -> Job:
        check_priority(request.priority, request.tenant)
        groups = group_texts(request, routes, used, self._beam_size)
        for group in groups:
            check_prefixes(request, group.legs)
        options = groups[0].legs[-1].options
        request.tenant.charge(0.0)  # refuses a tenant in debt at once
        check_answer(sum(group.num_characters for group in groups), options.num_hypotheses)
        # Asked before the texts are split, so that a full server does not split texts that it refuses.
        flow = Flow(name=request.tenant.name, weight=request.tenant.weight, rank=request.priority)
        flow = flow.of_bulk() if request.is_bulk else flow
        for group in groups:
            check_partial_text(request, group.legs[-1].options)
            group.check_room(deadline, flow)
        answers = await self._split(request, routes, groups, deadline)
        arguments = request, groups, answers
        cost, need = await asyncio.to_thread(measure, *arguments) if are_many(answers) else measure(*arguments)
        if time.monotonic() >= deadline:
            raise DeadlineExceeded("the time was over before the translation could start")
        held.enter_context(self.memory.hold(need, is_more=True))
        cost = 0.0 if request.is_paid else cost
        request.tenant.charge(cost)
        try:
            parts = await submit_first(answers, deadline, flow)
        except TranslationError:  # a caller who leaves meanwhile pays: the work was asked for
            request.tenant.give_back(cost)
            raise
        self.metrics.tenant_cost_seconds_total.labels(request.tenant.name).inc(cost)
        return Job(answers, parts, deadline, request.arrived, flow, self._doorbell)

    async def _split(
        self, request: TranslationRequest, routes: Sequence[TextRoute], groups: Sequence[TextGroup], deadline: float
    ) -> list[TextAnswer]:
        """Splits the texts, and returns an answer for each without any translation yet."""
        if request.targets is not None:
            legs = groups[0].legs
            pairs = await encode_pairs(request.contents, request.targets, legs[0], self._splitter, deadline)
            return [TextAnswer(pair, legs) for pair in pairs]
        of_text = {index: group for group in groups for index in group.indices}
        texts = [text if index in of_text else "" for index, text in enumerate(request.contents)]
        rules = [of_text.get(index, groups[0]).legs[0].split_rules for index in range(len(texts))]
        split = await self._splitter.split(texts, rules, deadline)
        if request.text.refuse_unknown_scripts:
            masked = list(enumerate(zip(split, rules, strict=True)))
            split = await self._splitter.work(
                sum(map(len, texts)),
                lambda is_over: [
                    text if is_over() else with_known_scripts(f"contents[{index}]", text, own.masker)
                    for index, (text, own) in masked
                ],
                deadline,
            )
        if request.target_prefixes:
            first = [of_text.get(index, groups[0]).legs[0] for index in range(len(texts))]
            split = await add_prefixes(split, request.target_prefixes, first, self._splitter, deadline)
        return [
            TextAnswer(SplitText("", (), route.found), ())
            if isinstance(route.found, InvalidRequest)
            else TextAnswer(text, of_text[index].legs, route.found)
            for index, (text, route) in enumerate(zip(split, routes, strict=True))
        ]


def _count(
    model: Model,
    request: TranslationRequest,
    kind: type[BaseException] | None,
    error: BaseException | None,
    trace: TracebackType | None,  # noqa: ARG001  # the arguments of `__exit__`
) -> None:
    """Counts a request of a model's version, and how it ended."""
    now = time.monotonic()
    code = Code.OK
    if isinstance(error, TranslationError):
        code = error.code
    elif kind is not None:
        code = Code.INTERNAL if issubclass(kind, Exception) else Code.CANCELLED
    if code is Code.CANCELLED and now >= request.deadline - transit_seconds(now - request.arrived):
        code = Code.DEADLINE_EXCEEDED
    model.metrics.count_request(code, now - request.arrived)
