from types import MappingProxyType
from typing import Any

import pytest

from babelserve import Client
from babelserve.errors import InvalidRequest
from babelserve.rules import glossary_message, keep_rules
from babelserve.terms import UsedGlossary, UsedTerm
from babelserve.v1 import translation_pb2 as pb
from tests.babelserve.scripted_server import ScriptedService


def test_a_glossary_reaches_the_server_and_the_answer_says_what_became_of_it(
    client: Client, service: ScriptedService
) -> None:
    glossary = {"dog": "DOG", "cat": ["Katze", "Katzen"]}

    result = client.translate(["a cat, a dog"], target="de", glossary=glossary, ignore_case=True)

    assert service.requests[0].glossary == pb.Glossary(
        terms=[
            pb.Term(source="dog", target="DOG"),
            pb.Term(source="cat", target="Katze", target_forms=["Katzen"], exact=True),
        ],
        ignore_case=True,
    )
    applied, missed = result.translations[0].terms
    assert applied == UsedTerm(
        source="dog", target="DOG", source_begin=9, source_end=12, begin=9, end=12, is_applied=True
    )
    assert (missed.source, missed.target, missed.is_applied) == ("cat", "", False)


def test_any_mapping_is_a_glossary_and_none_is_none() -> None:
    message = glossary_message(MappingProxyType({"a": ("b", "c")}), None, None)

    assert message == pb.Glossary(terms=[pb.Term(source="a", target="b", target_forms=["c"], exact=True)])
    assert glossary_message(None, None, None) is None


def test_glossaries_of_the_server_go_by_name_beside_terms(client: Client, service: ScriptedService) -> None:
    result = client.translate(["a"], target="de", glossary={"a": "b"}, glossaries=("it", "law"))

    assert service.requests[0].glossary == pb.Glossary(terms=[pb.Term(source="a", target="b")], names=["it", "law"])
    assert result.glossaries == (UsedGlossary(name="it", version="1"), UsedGlossary(name="law", version="1"))


def test_what_are_no_names_of_glossaries_is_refused_by_its_name(client: Client, service: ScriptedService) -> None:
    wrong: list[Any] = ["it", b"it", ["it", 1]]
    for names, message in zip(wrong, ["glossaries must be"] * 2 + [r"glossaries\[1\] must be a string"], strict=True):
        with pytest.raises(TypeError, match=f"^{message}"):
            client.translate(["a"], target="de", glossaries=names)
    with pytest.raises(InvalidRequest, match=r"^glossaries\[0\] is not valid Unicode"):
        client.translate(["a"], target="de", glossaries=["\udcff"])

    assert service.num_attempts == 0


@pytest.mark.parametrize(
    ("glossary", "message"),
    [
        ("dog=Hund", "glossary must be a mapping from sources to targets, not str"),
        ([("dog", "Hund")], "glossary must be a mapping from sources to targets, not list"),
        ({1: "Hund"}, "a source of glossary must be a string, not int"),
        ({"dog": None}, r"glossary\['dog'\] must be a target, or a list of a target and its other forms, not None"),
        ({"dog": []}, r"glossary\['dog'\] must be a target, or a list of a target and its other forms, not \[\]"),
        ({"dog": {"Hund"}}, r"glossary\['dog'\] must be a target, or a list of a target and its other forms, not {"),
        ({"dog": ["Hund", b"Hunde"]}, r"glossary\['dog'\] must be a string, not bytes"),
    ],
)
def test_what_is_no_glossary_is_refused_by_its_name(client: Client, glossary: Any, message: str) -> None:
    with pytest.raises(TypeError, match=f"^{message}"):
        client.translate(["a"], target="de", glossary=glossary)


def test_whether_case_is_ignored_is_true_or_false(client: Client) -> None:
    with pytest.raises(TypeError, match=r"^ignore_case must be True or False, not str"):
        client.translate(["a"], target="de", glossary={"a": "b"}, ignore_case="yes")  # type: ignore[arg-type]


def test_what_is_not_valid_unicode_cannot_be_sent() -> None:
    with pytest.raises(InvalidRequest, match=r"a source of glossary is not valid Unicode"):
        glossary_message({"\udcff": "a"}, None, None)
    with pytest.raises(InvalidRequest, match=r"glossary\['a'\] is not valid Unicode"):
        glossary_message({"a": ["b", "\udcff"]}, None, None)
    with pytest.raises(InvalidRequest, match=r"keep\[1\] is not valid Unicode"):
        keep_rules(["a", "\udcff"])
