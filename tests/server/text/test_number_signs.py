"""The signs before numbers, in both languages."""

import pytest

from server.text.number_signs import number_sign, restore_number_signs


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("No. 3 and No. 4 of No. Five", "de", "Nr. 3 and 4 of No. Five"),
        ("House No. 12a", "de", "House 12a"),
        ("See No. 3", "fr", "See No. 3"),
        ("No. I am 3.", "de-AT", "No. I am 3."),
    ],
)
def test_the_sign_of_a_number_is_no_refusal(text: str, language: str, expected: str) -> None:
    assert number_sign(text, language) == expected


@pytest.mark.parametrize(
    ("source", "translation", "language", "expected"),
    [
        ("Answer question No. 3 first.", "Antworten Sie zuerst Frage 3.", "de", "Antworten Sie zuerst Frage Nr. 3."),
        ("Platform No. 9 and No. 10.", "Gleis 9 und Nr. 10.", "de", "Gleis Nr. 9 und Nr. 10."),
        ("House No. 7 has 7 rooms.", "Haus 7 hat 7 Zimmer.", "de", "Haus Nr. 7 hat 7 Zimmer."),
        ("The 7 rooms of house No. 7.", "Die 7 Zimmer von Haus 7.", "de", "Die 7 Zimmer von Haus Nr. 7."),
        ("The 7 rooms of house No. 7.", "Die sieben Zimmer von Haus 7.", "de", "Die sieben Zimmer von Haus Nr. 7."),
        ("The 7 rooms of house No. 7.", "In Haus 7 gibt es 7 Zimmer.", "de", "In Haus Nr. 7 gibt es 7 Zimmer."),
        ("In 7 days see rule No. 7.", "In 7 Tagen siehe Regel 7.", "de", "In 7 Tagen siehe Regel Nr. 7."),
        ("They say 7 over No. 7.", "Sie sagen 7 vor 7.", "de", "Sie sagen 7 vor 7."),
        ("House No. 7 has seven rooms.", "Mit 7 Zimmern ist Haus 7.", "de", "Mit 7 Zimmern ist Haus Nr. 7."),
        ("House No. 7, with 7 rooms.", "Haus 7, mit 7 Zimmern.", "de", "Haus Nr. 7, mit 7 Zimmern."),
        ("House No. 7 has 7 rooms.", "Haus 7 hat sieben Zimmer.", "de", "Haus Nr. 7 hat sieben Zimmer."),
        ("House No. 7, room No. 7", "Haus 7, Zimmer 7", "de", "Haus Nr. 7, Zimmer Nr. 7"),
        ("No. 7: see house No. 7", "Nr. 7: siehe Haus 7", "de", "Nr. 7: siehe Haus Nr. 7"),
        ("On the 7th in house No. 7", "Am 7. in Haus 7", "de", "Am 7. in Haus Nr. 7"),
        ("House No. 7", "Haus Nr. 7", "de", "Haus Nr. 7"),
        ("House No. 7", "Haus 7,5 und 7.5", "de", "Haus 7,5 und 7.5"),
        ("Version 2 fixes bug No. 2.", "Fehler Nr. 2 wird in Version 2 behoben.", "de", None),
        ("See question No. 3, chapter 3.", "Siehe Kapitel 3, Frage Nr. 3.", "de", None),
        ("On page 3 see question No. 3.", "Siehe Frage 3 auf Seite 3.", "de", None),
        ("On May 1 it was the song No. 1.", "Am 1. Mai war es Lied 1.", "de", "Am 1. Mai war es Lied Nr. 1."),
        ("Look at question No. 3 and 3 red apples.", "Siehe 3 rote Äpfel und Frage 3.", "de", None),
        ("The house No. 7", "Das Haus Nummer 7", "de", None),
        ("The house No. 7", "Das Haus Nr 7", "de", None),
        ("The house No. 7", "Hausnr. 7", "de", None),
        ("The house No. 7", "Die Hausnummer 7", "de", None),
        ("The house No. 7", "Nummer 7 ist das Haus", "de", None),
        ("The house No. 7", "Nr 7", "de", None),
        ("Model No. 3.5 has 3 doors.", "Modell 3,5 hat 3 Türen.", "de", None),
        ("House No. 12a has 12 rooms.", "Haus 12a hat 12 Zimmer.", "de", None),
        ("House No. 7", "Huis 7", "nl", "Huis 7"),
        ("Haus Nr. 7", "House Nr. 7", "en-GB", "House No. 7"),
        ("Haus 7", "House Nr. 7", "en", "House Nr. 7"),
    ],
)
def test_signs_come_back(source: str, translation: str, language: str, expected: str | None) -> None:
    assert restore_number_signs(source, translation, language) == (expected or translation), "None: as it was"
