"""How German, English and Portuguese name numbers, units, currencies and months: patterns for `right_numbers.py`."""

_CARDINALS = {
    "de": (
        "null ein(?:e[rnms]?|s)? zwei|zwo drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn "
        "fünfzehn sechzehn siebzehn achtzehn neunzehn zwanzig"
    ),
    "en": (
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty"
    ),
    "pt": (
        "zero uma? dois|duas três quatro cinco seis sete oito nove dez onze doze treze catorze|quatorze quinze "
        "dezesseis|dezasseis dezessete|dezassete dezoito dezenove|dezanove vinte"
    ),
}
_TENS = {
    "de": "dreißig vierzig fünfzig sechzig siebzig achtzig neunzig (?:ein)?hundert",
    "en": "thirty forty fifty sixty seventy eighty ninety (?:one|a).hundred",
    "pt": "trinta quarenta cinquenta sessenta setenta oitenta noventa cem",
}
ORDINALS = {
    "de": "erst|zweit|dritt|viert|fünft|sechst|siebt|acht|neunt|zehnt|elft|zwölft",
    "en": "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth",
    "pt": "primeir|segund|terceir|quart|quint|sext|sétim|oitav|non|décim",
}
MONTHS = (
    "Januar|Jänner|January|Jan|janeiro",
    "Februar|February|Feb|fevereiro",
    "März|March|Mar|março",
    "April|Apr|abril",
    "Mai|May|maio",
    "Juni|June|Jun|junho",
    "Juli|July|Jul|julho",
    "August|Aug|agosto",
    "September|Sept?|setembro",
    "Oktober|October|Okt|Oct|outubro",
    "November|Nov|novembro",
    "Dezember|December|Dez|Dec|dezembro",
)
UNITS = {
    "kg": "Kilo(?:gramm)?s?|kilogram(?:me)?s?|quilos?|quilogramas?",
    "g": "Gramm|grams?|gramas?",
    "µg": "μg|ug|Mikrogramm|micrograms?|microgramas?",
    "km": "Kilometern?|kilomet(?:re|er)s?|quil[ôó]metros?",
    "cm": "Zentimetern?|centimet(?:re|er)s?|centímetros?",
    "m": "Metern?|met(?:re|er)s?|metros?",
    "ml": "Millilitern?|millilit(?:re|er)s?|mililitros?",
    "km/h": "km / h|Stundenkilometern?|Kilometern? (?:pro|je|in der) Stunde|kph|kilomet(?:re|er)s (?:per|an) hour|"
    "quil[ôó]metros por hora",
    "mph": "Meilen (?:pro|in der) Stunde|Meilen/h|miles per hour|milhas por hora",
    "MB": "Megabytes?|megabytes?",
    "GB": "Gigabytes?|gigabytes?",
    "kWh": "Kilowattstunden?|kilowatt[- ]hours?|quilowatts?-hora",
    "°C": "° C|º ?C|Grad(?: Celsius)?|degrees?(?: Celsius)?|graus?(?: Celsius)?",
    "m²": "m2|qm|Quadratmetern?|square met(?:re|er)s?|metros quadrados",
}
CURRENCIES = {
    "$": r"(?:US-?)?\$|(?:US-)?Dollars?|USD|dólar(?:es)?",
    "€": r"€|Euros?|EUR",
    "£": r"£|(?:britische )?Pfund|pounds|GBP|libras?",
    "₹": r"₹|(?:indische )?Rupien|rupees|INR|Rs\.?|rupias?",
    "¥": r"¥|Yen|ienes?|JPY|yuan",
}
FRACTIONS = {
    "1/2": r"½|\b(?:halb|hälfte|half|meia?\b|meio\b|metade)",
    "1/4": r"¼|viertel|\bquarter|um quarto",
    "3/4": r"¾|drei ?viertel|three[- ]quarters|três quartos",
    "1/3": r"⅓|drittel|\bthird|um terço",
    "2/3": r"⅔|zwei ?drittel|two[- ]thirds|dois terços",
}


def word_pattern(value: str, language: str) -> str:
    """Returns a pattern of the words for a whole number up to twenty, or for tens; empty for another."""
    if not value.isdecimal():
        return ""
    number = int(value)
    if number <= 20:
        return rf"\b(?:{_CARDINALS[language].split(' ')[number]})\b"
    tens = _TENS[language].split(" ")
    return rf"\b(?:{tens[number // 10 - 3]})\b" if number % 10 == 0 and number <= 100 else ""


def ordinal_pattern(language: str) -> str:
    """Returns a pattern of what stands behind the digits of an ordinal."""
    return {"de": r"\.(?!\d)", "en": r"(?:st|nd|rd|th)\b", "pt": r"\.?\s?(?:[ºª°]|[oa]s?\b)"}[language]
