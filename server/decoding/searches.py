"""Which search a sentence's options ask for."""

from typing import Any

from server.decoding.alternative_search import AlternativeSearch
from server.decoding.beam_search import BeamSearch
from server.decoding.given_search import GivenSearch
from server.decoding.options import DecodingOptions
from server.decoding.recorded_search import (
    RecordedGivenSearch,
    RecordedSampleSearch,
    RecordedSearch,
    RecordedTermSearch,
)
from server.decoding.sample_search import SampleSearch
from server.decoding.term_search import TermSearch


def new_search(options: DecodingOptions, **others: Any) -> BeamSearch:
    """Returns the search; the arguments are those of `BeamSearch`."""
    is_recorded = options.with_search
    if options.given_targets:
        return (RecordedGivenSearch if is_recorded else GivenSearch)(options, **others)
    if options.return_alternatives:
        return AlternativeSearch(options, **others)
    if options.sampling is not None:
        return (RecordedSampleSearch if is_recorded else SampleSearch)(options, **others)
    if options.terms is not None:
        return (RecordedTermSearch if is_recorded else TermSearch)(options, **others)
    return (RecordedSearch if is_recorded else BeamSearch)(options, **others)
