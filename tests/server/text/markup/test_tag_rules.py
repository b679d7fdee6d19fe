"""Rules for tags are values: equal if they say the same."""

from server.text.markup.tag_rules import NO_RULES, TagRules


def test_rules_that_say_nothing_are_no_rules() -> None:
    assert TagRules(frozenset(())) == NO_RULES
    assert TagRules(only_named_split=True) != NO_RULES
