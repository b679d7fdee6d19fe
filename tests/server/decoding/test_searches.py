import pytest

from server.decoding.alternative_search import AlternativeSearch
from server.decoding.beam_search import BeamSearch
from server.decoding.given_search import GivenSearch
from server.decoding.options import DecodingOptions
from server.decoding.searches import new_search
from server.decoding.term_search import TermSearch
from server.decoding.terms import Replaced, Terms


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        (DecodingOptions(), BeamSearch),
        (DecodingOptions(beam_size=1, given_target=(5, 3)), GivenSearch),
        (DecodingOptions(return_alternatives=True), AlternativeSearch),
        (DecodingOptions(terms=Terms((((5,),),), Replaced(((),), 4))), TermSearch),
    ],
)
def test_options_decide(options: DecodingOptions, kind: type[BeamSearch]) -> None:
    assert type(new_search(options, max_tokens=9, bos_id=2, eos_id=3)) is kind
