"""The signs before numbers: "No. 3" in English, "Nr. 3" in German.

Networks read "No." as a refusal. So German ones are shown "Nr. 3", or nothing but the number behind a word, as in
"question No. 3", of which "question Nr. 3" makes "Fragen. 3".
"""

import re

_ENGLISH = re.compile(r"\bNo\.(?=\s?\d)")
_ENGLISH_BEHIND = re.compile(r"(?<=[^\W\d_]{3} )No\.\s?(\d++)")
_NUMBER = re.compile(r"(?:Nr\.\s?)?(?<![\w.,])(\d++)(?![\w,]|\.\d)")
_GERMAN = re.compile(r"\bNr\.(?=\s?\d)")


def number_sign(text: str, language: str) -> str:
    """Returns a sentence as a network is shown it that translates it into a language.

    Args:
        text: a sentence.
        language: BCP-47 code of the translation's language.
    """
    if "No." not in text or not language.startswith("de"):
        return text
    return _ENGLISH.sub("Nr.", _ENGLISH_BEHIND.sub(r"\1", text))


def restore_number_signs(source: str, translation: str, language: str) -> str:
    """Returns a translation with the signs of its source, as its language writes them.

    A number that was shown without its sign gets it where the translation has the number first.

    Args:
        source: a sentence, as it was written.
        translation: of what `number_sign` returns for it.
        language: BCP-47 code of the translation's language.
    """
    if language.startswith("en"):
        return _GERMAN.sub("No.", translation) if "Nr." in source else translation
    numbers = set(_ENGLISH_BEHIND.findall(source)) if "No." in source and language.startswith("de") else set()

    def signed(match: "re.Match[str]") -> str:
        if match[1] not in numbers:
            return match[0]
        numbers.discard(match[1])
        return f"Nr. {match[1]}"

    return _NUMBER.sub(signed, translation) if numbers else translation
