import pytest

from babelserve.errors import ServerFailed
from babelserve.results import FinishReason, Link, SearchNode, Token
from babelserve.sentences import read_finish_reason, read_sentence, read_text_error
from babelserve.terms import UsedTerm
from babelserve.v1 import translation_pb2 as pb


def test_a_sentence_comes_with_all_that_its_message_has() -> None:
    message = pb.Sentence(
        source_text="Hi.",
        text="Hallo.",
        links=[pb.Link(source_begin=0, source_end=2, target_begin=0, target_end=5, weight=0.5)],
        source_begin=3,
        source_end=6,
        begin=4,
        end=10,
        tokens=[pb.Token(text="\u2581Hallo", begin=0, end=5, log_prob=-0.5)],
        confidence=0.0,
        terms=[
            pb.UsedTerm(source="Hi", target="Hallo", source_end=2, end=5, status=pb.TERM_STATUS_APPLIED),
            pb.UsedTerm(source="there", source_begin=3, source_end=8, status=pb.TERM_STATUS_MISSED),
        ],
        search=[
            pb.SearchNode(text="\u2581Hallo", log_prob=-0.5, is_chosen=True),
            pb.SearchNode(parent=0, log_prob=-1.0, score=-0.5, finish_reason=pb.FINISH_REASON_STOP, is_chosen=True),
        ],
    )

    sentence = read_sentence(message)

    assert sentence.links == (Link(source_begin=0, source_end=2, target_begin=0, target_end=5, weight=0.5),)
    assert (sentence.source_begin, sentence.source_end, sentence.begin, sentence.end) == (3, 6, 4, 10)
    assert sentence.tokens == (Token(text="\u2581Hallo", begin=0, end=5, log_prob=-0.5),)
    assert sentence.terms == (
        UsedTerm(source="Hi", target="Hallo", source_begin=0, source_end=2, begin=0, end=5, is_applied=True),
        UsedTerm(source="there", target="", source_begin=3, source_end=8, begin=0, end=0, is_applied=False),
    )
    assert sentence.search == (
        SearchNode(
            parent=None,
            text="\u2581Hallo",
            log_prob=-0.5,
            score=None,
            finish_reason=FinishReason.UNSPECIFIED,
            is_chosen=True,
        ),
        SearchNode(parent=0, text="", log_prob=-1.0, score=-0.5, finish_reason=FinishReason.STOP, is_chosen=True),
    )
    assert sentence.confidence == 0.0, "which is not the same as none"
    assert read_sentence(pb.Sentence()).confidence is None


@pytest.mark.parametrize("parent", [1, 2])
def test_a_node_stands_behind_its_parent(parent: int) -> None:
    nodes = [pb.SearchNode(text="a"), pb.SearchNode(text="b", parent=parent, score=-1.0), pb.SearchNode(text="c")]

    with pytest.raises(ServerFailed, match=f"node 1 of a search behind node {parent}, not one before it"):
        read_sentence(pb.Sentence(search=nodes))


def test_what_a_newer_server_says_is_no_failure() -> None:
    assert read_finish_reason(99).name == "UNSPECIFIED"  # type: ignore[arg-type]
    assert read_text_error(pb.Status(code=99)).code.name == "UNKNOWN"
