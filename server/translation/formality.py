"""The rules for a request's formality, and what it does to a search."""

from server.bundle.languages import Ids, LanguagePair
from server.bundle.tokenizer import Tokenizer
from server.decoding.options import DecodingOptions
from server.errors import InvalidRequest
from server.text.formality import Formality, unwanted_words


def formality_bans(
    formality: Formality | None, options: DecodingOptions, tokenizer: Tokenizer, pair: LanguagePair, *, is_only: bool
) -> tuple[tuple[Ids, ...], tuple[Ids, ...]]:
    """Returns the tokens that no sentence has for a formality, and those that none has which speaks to its reader.

    Args:
        formality: as it is asked for; None for none.
        options: of the search.
        tokenizer: of the model that translates into the target language.
        pair: its direction.
        is_only: whether it is the only model of its route.

    Raises:
        InvalidRequest: the formality cannot be had, and is no mere wish; or the options ask for a shortlist.
    """
    if formality is None:
        return (), ()
    unwanted = unwanted_words(formality, pair.source, pair.target) if is_only and tokenizer.has_forms else None
    if unwanted is None and not formality.is_wish:
        message = f"must be unspecified or a preference from {pair.source} into {pair.target}"
        raise InvalidRequest("formality", message if is_only else "must be unspecified over a language between")
    if unwanted is None:
        return (), ()
    if options.use_shortlist:
        raise InvalidRequest("decoding.use_shortlist", "must be false with a formality, which looks at all words")
    return tokenizer.encode_forms(unwanted.always), tokenizer.encode_forms(unwanted.to_reader)
