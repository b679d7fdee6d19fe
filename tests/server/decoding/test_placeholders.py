from server.decoding.placeholders import DROPPED, INVENTED, charge

EOS = 3


def test_a_beam_pays_at_its_end_for_each_placeholder_that_it_lacks() -> None:
    of_source = {20: 2, 21: 1, 22: 0}

    assert charge(of_source, [20, 7, 21], EOS, EOS) == DROPPED
    assert charge(of_source, [], EOS, EOS) == 3 * DROPPED
    assert charge(of_source, [20, 21, 20], EOS, EOS) == 0


def test_a_beam_pays_at_once_for_a_placeholder_that_the_source_has_less_often() -> None:
    of_source = {20: 2, 22: 0}

    assert charge(of_source, [20, 7], 20, EOS) == 0
    assert charge(of_source, [20, 20], 20, EOS) == INVENTED
    assert charge(of_source, [], 22, EOS) == INVENTED
    assert charge(of_source, [7, 7], 7, EOS) == 0
