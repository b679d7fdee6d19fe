"""The rules for what a request may ask of a model by the family of its network.

A network that writes a token at a time obeys no length. One that writes all words at once obeys a length, and nothing
that a search does from token to token.
"""

import dataclasses

from server.bundle.family import max_length_ratio
from server.bundle.manifest import Manifest
from server.decoding.options import DecodingOptions
from server.errors import InvalidRequest
from server.text.formality import Formality
from server.translation.request import DecodingRequest, TranslationRequest
from server.translation.rules import LEAST_RATIO, check_range

_OF_ONE_PASS = ("beam_size", "num_hypotheses", "with_scores", "exact_tokens", "ratio")  # options that it obeys


def check_family(
    request: DecodingRequest, options: DecodingOptions, defaults: DecodingOptions, manifest: Manifest
) -> None:
    """Checks that a model's network can do what the decoding options ask for.

    Args:
        request: as the client gave it.
        options: what `decoding_options` made of it.
        defaults: for what a request leaves open.
        manifest: of the model.

    Raises:
        InvalidRequest: it cannot, or a length is out of its range.
    """
    if not manifest.is_one_pass:
        for name in ("exact_tokens", "ratio"):
            if getattr(options, name) is not None:
                message = f"must be left out: the model {manifest.name} cannot write a given number of tokens"
                raise InvalidRequest(f"decoding.{name}", message)
        return
    names = [each.name for each in dataclasses.fields(options) if each.name not in _OF_ONE_PASS]
    asked = [name for name in names if getattr(options, name) != getattr(defaults, name)]
    if request.suppress:
        asked.append("suppress")
    if asked:
        raise InvalidRequest(f"decoding.{asked[0]}", f"must be left out: {_why(manifest)}")
    _check_length(options, manifest)


def _check_length(options: DecodingOptions, manifest: Manifest) -> None:
    if options.exact_tokens is not None:
        check_range("decoding.exact_tokens", options.exact_tokens, 1, manifest.limits.max_target_tokens, " tokens")
    most = max_length_ratio(manifest)
    if options.ratio is not None and not LEAST_RATIO <= options.ratio <= most:
        message = f"must be a number from {LEAST_RATIO:g} to {most:g}, not {options.ratio:g}"
        raise InvalidRequest("decoding.ratio", message)
    if options.num_hypotheses > 1 and (options.exact_tokens is not None or options.ratio is not None):
        message = f"must be 1 with a length, not {options.num_hypotheses}"
        raise InvalidRequest("decoding.num_hypotheses", message)


def check_output(request: TranslationRequest, manifest: Manifest) -> None:
    """Checks that the answer of a model can carry the tokens and trees that are asked for. Raises InvalidRequest."""
    for name, is_asked in (("tokens", request.with_tokens), ("search", request.with_search)):
        if is_asked and manifest.is_one_pass:
            raise InvalidRequest(f"output.include_{name}", f"must be false: {_why(manifest)}")


def obeyed_formality(formality: Formality | None, manifest: Manifest) -> Formality | None:
    """Returns the formality that a model is told; None for a mere wish that it cannot obey.

    Raises InvalidRequest if it cannot obey what is no mere wish.
    """
    if formality is None or not manifest.is_one_pass:
        return formality
    if not formality.is_wish:
        raise InvalidRequest("formality", f"must be unspecified or a preference: {_why(manifest)}")
    return None


def check_scoring(manifest: Manifest) -> None:
    """Checks that a model can score given translations. Raises InvalidRequest."""
    if manifest.is_one_pass:
        raise InvalidRequest("model", f"cannot score given translations: {_why(manifest)}")


def _why(manifest: Manifest) -> str:
    return f"the model {manifest.name} writes all words of a translation at once"
