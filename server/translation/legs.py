"""The legs of a request's routes, after their models are borrowed: how each translates."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from server.bundle.languages import LanguagePair
from server.bundle.manifest import Manifest
from server.decoding.options import DecodingOptions
from server.decoding.result import Hypothesis
from server.models.model import Model
from server.text.formality import speaks_of_others
from server.text.glossary import Glossary
from server.text.markup.document import Read
from server.text.masked import Restored
from server.text.masking import Masker
from server.text.own_parts import own_parts
from server.text.source import SourceSentence
from server.text.splitter import SplitRules
from server.translation.family_rules import check_family, check_output, obeyed_formality
from server.translation.formality import formality_bans
from server.translation.languages import choose_languages
from server.translation.leg_glossary import choose_glossary
from server.translation.request import DecodingRequest, TextOptions, TranslationRequest
from server.translation.routes import PlannedLeg
from server.translation.rules import (
    check_alignment,
    decoding_options,
    with_phrases,
    with_wishes,
)
from server.translation.search_terms import TERMS_BEAM_SIZE, find_choices, find_replaced, terms_of
from server.translation.type_rules import choose_reader

_BEAM_SIZE = 4  # for a model that names none
# A translation with its terms may have so many times the tokens of the one that lacks them, and the terms besides.
# Half more is enough for other words round the terms. Twice that, and a search that does not find their place goes on
# and on.
_MORE_TOKENS = 1.5


@dataclass(frozen=True)
class Leg:
    """One model's part of a route.

    Attributes:
        pair: the direction, by the model's codes.
        options: the decoding options of the search.
        is_only: whether the route has no other leg. Words are not aligned over a language between.
        read: reads texts that have markup; None for plain texts.
        text: how the caller wants texts read.
        glossary: of the caller; None without one.
        to_reader: tokens that no translation has of a sentence that may speak to its reader (`server.text.formality`).
        has_prefixes: whether translations begin as the request says; marks round words then stand where it says.
        spared_seconds: the part of the request's time that this leg leaves to the next one.
    """

    model: Model
    pair: LanguagePair
    options: DecodingOptions
    _: KW_ONLY
    is_only: bool = True
    read: Read | None = None
    text: TextOptions = field(default_factory=TextOptions)
    glossary: Glossary | None = None
    to_reader: tuple[tuple[int, ...], ...] = ()
    has_prefixes: bool = False
    spared_seconds: float = 0.0

    def ask_again(
        self, sentence: SourceSentence, restored: Restored, tokens: Hypothesis, attention: NDArray[np.float32] | None
    ) -> SourceSentence | None:
        """Returns the sentence as its model is asked for it again, for a part, a term, or a choice of translations.

        What begins with a prefix has its parts in places that the model has not chosen, and is not asked for parts.

        Args:
            sentence: as the model was asked for it.
            restored: its translation.
            tokens: of this.
            attention: of these; None if they were not aligned.

        Returns None if the model is not asked again.
        """
        again = sentence
        if not restored.is_whole and sentence.masked is not None and sentence.prefix is None:
            rules = self.split_rules
            if masked := rules.masker.mask_again(sentence.masked, restored.missing):
                ids = rules.encode(masked.text)
                if rules.num_added < len(ids) <= rules.max_tokens:
                    replaced = sentence.replaced and sentence.replaced._replace(begin=())
                    again = replace(sentence, source_ids=ids, masked=masked, replaced=replaced, exchanged="")
        is_missing = [used.span is None for used in sentence.find_terms(restored)]
        if sentence.replaced is None and any(is_missing):
            replaced, exchanged = find_replaced(self.model.tokenizer, sentence, tokens, attention, is_missing)
            if again is not sentence:  # what is masked anew may belong before the term
                replaced = replaced._replace(begin=())
            exchanged = exchanged if restored.is_whole and self._may_exchange else ""
            again = replace(again, replaced=replaced, lacking=tuple(is_missing), exchanged=exchanged)
        if again is sentence and sentence.replaced is not None and not sentence.choices:
            choices = find_choices(self.model.tokenizer, sentence, tokens, self.pair)
            again = replace(sentence, choices=choices) if choices else sentence
        return None if again is sentence else again

    @property
    def _may_exchange(self) -> bool:
        """Whether no option bounds or bans what is written, and one translation is asked for."""
        options = self.options
        is_bounded = options.max_output_tokens is not None or options.max_length_ratio is not None
        is_bounded |= options.min_length_ratio > 0 or options.is_steered or bool(self.to_reader)
        return not is_bounded and options.num_hypotheses == 1

    def options_for(self, sentence: SourceSentence) -> DecodingOptions:
        """Returns the decoding options of a sentence.

        A sentence with tags, marks round words or terms is aligned, if the model can. Terms have a beam of 6 or more,
        and no shortlist. Choices become `given_targets`; the search returns the likeliest.
        """
        options = self.options
        if self.to_reader and not speaks_of_others(sentence.text):
            options = self._options_to_reader
        if sentence.is_marked and self.is_only and self.model.manifest.alignment is not None:
            options = self._options_aligned if options is self.options else self._options_aligned_to_reader
        if sentence.prefix is not None:
            options = replace(options, target_prefix=sentence.prefix.ids)
        if targets := sentence.choices[: self.model.manifest.limits.max_beam_size]:
            given = replace(options, given_targets=targets, beam_size=len(targets), num_hypotheses=1)
            return replace(given, use_shortlist=False, with_scores=True, coverage_penalty=0.0)
        if sentence.replaced is None:
            return options
        terms = terms_of(self.model.tokenizer, sentence)
        if terms is None:
            return options
        width = min(max(options.beam_size, TERMS_BEAM_SIZE), self.model.manifest.limits.max_beam_size)
        most = int(_MORE_TOKENS * len(sentence.replaced.staying)) + terms.num_tokens + 1
        wider = replace(options, beam_size=width, use_shortlist=False, with_scores=True, coverage_penalty=0.0)
        return replace(wider, terms=terms, max_output_tokens=min(most, options.max_output_tokens or most))

    # Options of sentences that may speak to their reader, are aligned, or both. Each is one object, and sentences that
    # share it are submitted together.
    @functools.cached_property
    def _options_to_reader(self) -> DecodingOptions:
        return replace(self.options, suppressed=self.options.suppressed + self.to_reader)

    @functools.cached_property
    def _options_aligned(self) -> DecodingOptions:
        return replace(self.options, with_alignment=True)

    @functools.cached_property
    def _options_aligned_to_reader(self) -> DecodingOptions:
        return replace(self._options_to_reader, with_alignment=True)

    @functools.cached_property
    def split_rules(self) -> SplitRules:
        """How texts are split for the model."""
        masking = self.model.manifest.masking
        return SplitRules(
            self.pair.source.partition("-")[0],
            functools.partial(self.model.tokenizer.encode, prefix=self.pair.source_prefix),
            self.model.manifest.limits.max_source_tokens,
            num_added=self.model.tokenizer.num_added(self.pair.source_prefix),
            read=self.read,
            masker=Masker(
                carriers=masking.carriers,
                characters=self.model.characters,
                folds_capitals=masking.folds_capitals,
                language=self.pair.target,
                own_parts=own_parts(tuple(self.text.keep)),
                adapts_from=self.pair.source if self.text.adapt_quantities else "",
                places_pairs=self.is_only and not self.has_prefixes and self.model.manifest.alignment is not None,
            ),
            glossary=self.glossary,
        )


def borrow_legs(
    request: TranslationRequest, planned: Sequence[PlannedLeg], models: Mapping[str, Model], beam_size: int
) -> tuple[Leg, ...]:
    """Returns a route's legs, whose models have been borrowed.

    Args:
        request: whose texts take the route.
        planned: one or two.
        models: the borrowed models, by name.
        beam_size: for requests that name none, if the model allows it; 0 for the model's own.

    Raises:
        InvalidRequest: an option is beyond a model's limits, or a borrowed model does not translate the direction.
    """
    decoding, (*before, last) = request.decoding, planned
    firsts = [_of_model(decoding.passed_on(), each, models, beam_size) for each in before]
    model, pair, options = _of_model(decoding, last, models, beam_size)
    read = choose_reader(request, options.num_hypotheses)
    glossary = choose_glossary(request, model, options, pair, firsts[0][1] if firsts else pair)
    formality = obeyed_formality(request.formality, model.manifest)
    always, to_reader = formality_bans(formality, options, model.tokenizer, pair, is_only=not before)
    if always:
        options = replace(options, suppressed=options.suppressed + always)
    if firsts:
        (first,) = firsts
        return (
            Leg(*first, is_only=False, read=read, text=request.text),
            Leg(model, pair, options, is_only=False, text=request.text, to_reader=to_reader),
        )
    # Words are not aligned over a language between, and nobody has calibrated two models together.
    check_output(request, model.manifest)
    return (
        Leg(
            model,
            pair,
            with_wishes(request, options, model.manifest),
            read=read,
            text=request.text,
            glossary=glossary and glossary.inflecting(pair.target),
            to_reader=to_reader,
            has_prefixes=bool(request.target_prefixes),
        ),
    )


def _of_model(
    decoding: DecodingRequest, planned: PlannedLeg, models: Mapping[str, Model], beam_size: int
) -> tuple[Model, LanguagePair, DecodingOptions]:
    """Returns a leg's model, its direction by the model's codes, and how it searches."""
    model, pair = models[planned.manifest.name], planned.pair
    if model.manifest is not planned.manifest:  # another version, or loaded again since: the borrowed model decides
        pair = choose_languages(model.manifest, planned.source, planned.target)
    defaults = _default_options(model.manifest, pair, beam_size)
    options = decoding_options(
        decoding,
        defaults,
        model.manifest.limits,
        has_shortlist=model.has_shortlist,
        least_tokens=1 + model.manifest.search.forced_eos,
    )
    check_family(decoding, options, defaults, model.manifest)
    options = with_phrases(options, decoding.suppress, model.tokenizer, model.manifest.name)
    if options.coverage_penalty > 0:
        check_alignment(model.manifest.alignment, "decoding.coverage_penalty", "0")
    return model, pair, options


def _default_options(manifest: Manifest, pair: LanguagePair, beam_size: int) -> DecodingOptions:
    """Returns the options for whatever a request leaves open."""
    beam_size = beam_size or manifest.search.beam_size or _BEAM_SIZE
    return DecodingOptions(
        beam_size=min(beam_size, manifest.limits.max_beam_size),
        length_penalty=manifest.search.length_penalty,
        forced_prefix=pair.target_prefix,
        end_loops=not manifest.is_one_pass,
    )
