import pytest

from server.decoding.alternative_search import AlternativeSearch
from server.decoding.beam_search import BeamSearch
from server.decoding.given_search import GivenSearch
from server.decoding.options import DecodingOptions, Sampling
from server.decoding.recorded_search import (
    RecordedGivenSearch,
    RecordedSampleSearch,
    RecordedSearch,
    RecordedTermSearch,
)
from server.decoding.searches import new_search
from server.decoding.term_search import TermSearch
from server.decoding.terms import Replaced, Terms

TERMS = Terms((((5,),),), Replaced(((),), ()))


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        (DecodingOptions(), BeamSearch),
        (DecodingOptions(beam_size=1, given_targets=((5, 3),)), GivenSearch),
        (DecodingOptions(return_alternatives=True), AlternativeSearch),
        (DecodingOptions(terms=TERMS), TermSearch),
        (DecodingOptions(with_search=True), RecordedSearch),
        (DecodingOptions(with_search=True, beam_size=1, given_targets=((5, 3),)), RecordedGivenSearch),
        (DecodingOptions(with_search=True, terms=TERMS), RecordedTermSearch),
        (DecodingOptions(with_search=True, beam_size=1, sampling=Sampling()), RecordedSampleSearch),
    ],
)
def test_options_decide(options: DecodingOptions, kind: type[BeamSearch]) -> None:
    assert type(new_search(options, max_tokens=9, bos_id=2, eos_id=3, source_ids=(7, 3))) is kind
