import pytest

from server.text.characters import Characters
from server.text.hiding import hide
from server.text.masking import Masker

TEXT = "Send a.txt to b@example.org"


@pytest.mark.parametrize(
    ("source", "given", "shown"),
    [
        (TEXT, "Sende a.txt an b@example.org", "Sende \ue000 an \ue001"),
        (TEXT, "An b@example.org", "An \ue001"),
        (TEXT, "Sende data.txt", "Sende data.txt"),  # another word
        (TEXT, "Sende", "Sende"),
        ("- Send a.txt", "- Sende a.txt", "Sende \ue000"),
        ('He said "no" to me.', "Er sagte „nein“ zu", "Er sagte \ue000 nein \ue001 zu"),
        ("We sell fruit (apples).", "Wir verkaufen Obst (Äpfel", "Wir verkaufen Obst ( Äpfel"),
    ],
)
def test_what_somebody_gives_is_shown_as_the_network_would_have_written_it(source: str, given: str, shown: str) -> None:
    masker = Masker(carriers=(("\ue000", "\ue001", "\ue002"),), characters=Characters(str.isascii), language="de")

    assert hide(masker.mask(source), given) == shown


def test_of_a_sentence_in_capitals_small_letters_are_shown() -> None:
    masker = Masker(carriers=(("\ue000",),), characters=Characters(str.isascii), language="de", folds_capitals=True)

    assert hide(masker.mask("SEND THIS TO a.txt NOW PLEASE"), "BITTE JETZT AN a.txt SEN") == "bitte jetzt an \ue000 sen"
