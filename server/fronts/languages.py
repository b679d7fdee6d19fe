"""Languages as other vendors know them: their codes, names and directions.

The server understands codes however they are written (`server.bundle.codes`). Here are only codes that vendors use and
BCP-47 does not have.
"""

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from babelserve.v1 import translation_pb2 as pb
from server.bundle.codes import CodeTable

_OWN_CODES = {"zt": "zh-Hant", "pb": "pt-BR", "zh-chs": "zh-Hans", "zh-cht": "zh-Hant"}  # LibreTranslate's, Azure's
_RIGHT_TO_LEFT = frozenset(
    ["ar", "arc", "ckb", "dv", "fa", "he", "ks", "nqo", "ota", "ps", "sd", "syr", "ug", "ur", "yi"]
)
_RIGHT_TO_LEFT_SCRIPTS = frozenset(["adlm", "arab", "hebr", "nkoo", "rohg", "samr", "syrc", "thaa"])
_NAMES = Path(__file__).with_name("language_names.tsv")
# Lists of models, for each of which an answer is kept: with pivots and without them, of two servers of a gateway's that
# differ while models change, and of single models, which clients of Google ask for. Half, and these push each other
# out; twice that takes memory for nothing.
_MOST_LISTS = 16

_T = TypeVar("_T")


class Names(NamedTuple):
    """The names of a language: in English, and in itself."""

    english: str
    native: str


def standard_code(code: str) -> str:
    """Returns the code of BCP-47 for one that only a vendor uses; any other as it is."""
    return _OWN_CODES.get(code.lower().replace("_", "-"), code)


def names_of(code: str) -> Names:
    """Returns the names of a model's language. One without a name is called by its code."""
    known = _names()
    if code in known:
        return known[code]
    language, _, rest = code.partition("-")
    if not rest or language not in known:
        return Names(code, code)
    return Names(f"{known[language].english} ({rest})", f"{known[language].native} ({rest})")


def is_right_to_left(code: str) -> bool:
    """Returns whether a language is written from right to left: as its script says, if the code has one."""
    language, *rest = code.lower().split("-")
    scripts = [part for part in rest if len(part) == 4 and part.isalpha()]
    return scripts[0] in _RIGHT_TO_LEFT_SCRIPTS if scripts else language in _RIGHT_TO_LEFT


def kept_for_models(find: Callable[[pb.ListModelsResponse], _T]) -> Callable[[pb.ListModelsResponse], _T]:
    """Makes a function keep what it returns until the models are others. Nobody may change what it returns."""

    @functools.lru_cache(_MOST_LISTS)
    def found(data: bytes) -> _T:
        return find(pb.ListModelsResponse.FromString(data))

    return lambda served: found(served.SerializeToString())


@kept_for_models
def directions(served: pb.ListModelsResponse) -> Mapping[str, Sequence[str]]:
    """Returns the languages that a server translates from, each with those that it translates into from it.

    Codes are those of the models. Source languages and targets are in the order of the models.

    Args:
        served: the models, and the languages over which a text may pass.
    """
    found: dict[str, dict[str, None]] = {}
    for model in served.models:
        pairs = [(pair.source_language_code, pair.target_language_code) for pair in model.language_pairs]
        if not pairs:
            pairs = [(a, b) for a in model.source_language_codes for b in model.target_language_codes if a != b]
        for source, target in pairs:
            found.setdefault(source, {})[target] = None
    direct = {source: tuple(targets) for source, targets in found.items()}
    for pivot in served.pivot_language_codes:
        source_pivot = CodeTable(direct).find(pivot)
        for source, targets in direct.items():
            if source_pivot is not None and source != source_pivot and CodeTable(targets).find(pivot) is not None:
                found[source].update({target: None for target in direct[source_pivot] if target != source})
    return {source: list(targets) for source, targets in found.items()}


def unchanged(asked: pb.TranslateRequest, served: pb.ListModelsResponse) -> pb.TranslateResponse | None:
    """Returns texts as they are, if they are in the target language, as the request says; None if they are not."""
    source, target = asked.source_language_code, asked.target_language_code
    all_directions = directions(served)
    own = CodeTable(all_directions).find(source)
    codes = {*all_directions, *itertools.chain.from_iterable(all_directions.values())}
    has_model = own is not None and CodeTable(all_directions[own]).find(target) is not None
    if has_model or CodeTable([source]).find(target) is None or CodeTable(codes).find(target) is None:
        return None
    return pb.TranslateResponse(
        translations=[pb.Translation(text=text) for text in asked.contents], source_language_code=source
    )


@functools.cache
def _names() -> Mapping[str, Names]:
    lines = _NAMES.read_text(encoding="utf-8").splitlines()
    return {code: Names(english, native) for code, english, native in (line.split("\t") for line in lines)}
