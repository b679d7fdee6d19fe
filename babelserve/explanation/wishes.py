"""What a translation is asked for so that the page can show it."""

from collections.abc import Sequence

from babelserve.messages import TranslateOptions
from babelserve.results import ModelInfo


def wishes(models: Sequence[ModelInfo], target: str, model: str | None) -> TranslateOptions:
    """Returns the options that fill the page.

    A server refuses to say what its model does not know. So alignment and confidence are asked for only if every model
    that may be chosen has them, and tokens and the search only if each writes a token at a time.

    Args:
        models: of the server.
        target: code of the target language.
        model: name of the model to ask; None if the server chooses.
    """
    named = [info for info in models if info.name == model]
    chosen = named or [info for info in models if target in info.target_languages] or models
    has_steps = all(info.family != "one_pass" for info in chosen)
    return {
        "include_sentences": True,
        "include_tokens": has_steps,
        "include_search": has_steps,
        "include_alignment": all(info.has_alignment for info in chosen),
        "include_confidence": all(info.has_confidence for info in chosen),
    }
