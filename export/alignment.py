"""Which heads of a decoder's cross-attention show the alignment of a translation.

Which ones do differs from model to model: in some it is a head of the last layer, in others one of the first, at the
step that consumes a word. So a lexical model, learned from the model's own translations, judges the heads: IBM model 1
in both directions (Brown et al., "The Mathematics of Statistical Machine Translation", 1993). A link between two tokens
is sure if both directions have it. The best heads are those whose largest weight is most often at a sure link.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray

from export.aligner import all_heads_graph
from export.id_translator import IdTranslator
from server.bundle.alignment import Alignment, Head
from server.bundle.bundle import Bundle
from server.bundle.graphs import ALIGNER_INPUTS, PLAIN_STEP, WEIGHTS_FILE
from server.bundle.languages import Ids, LanguagePair
from server.bundle.manifest import Manifest
from server.decoding.options import DecodingOptions
from server.network import Runner

MOST_HEADS = 4
_ROUNDS = 6  # of expectation and maximisation
_CANDIDATES = 16  # heads, the best ones, that sets are made of
_LEAST_GAIN = 0.002  # in the error rate, for one more head

Array = NDArray[np.float32]
# Of source ids and target ids, the latter with bos, what every head looks at: [layers, H, T, S].
Attend = Callable[[Sequence[int], Sequence[int]], Array]


class Translated(NamedTuple):
    """A sentence and the model's translation of it.

    Attributes:
        source: ids that the encoder is fed.
        target: ids with bos, without eos.
        num_forced: ids behind bos that the search did not choose.
    """

    source: tuple[int, ...]
    target: tuple[int, ...]
    num_forced: int = 0


def translate_own(
    translate: IdTranslator, manifest: Manifest, pair: LanguagePair, sources: Sequence[Ids]
) -> list[Translated]:
    """Returns greedy translations of sentences of one direction, for `choose_heads`."""
    options = DecodingOptions(beam_size=1, forced_prefix=pair.target_prefix)
    best = translate([list(ids) for ids in sources], options)
    begin = manifest.special_ids.bos, *pair.target_prefix
    return [
        Translated(source, (*begin, *hypothesis.ids)[: manifest.limits.max_target_tokens], len(pair.target_prefix))
        for source, hypothesis in zip(sources, best, strict=True)
    ]


def open_heads(bundle: Bundle, variant: str, runner: Runner) -> Attend:
    """Returns what all heads of a float32 variant look at, for `choose_heads`.

    Args:
        bundle: of the variant.
        variant: for a CPU.
        runner: of the variant.
    """
    step = onnx.load(bundle.directory / variant / PLAIN_STEP.file, load_external_data=False)
    graph = all_heads_graph(step, bundle.manifest.dimensions.decoder_layers)
    weights = bundle.read(f"{variant}/{WEIGHTS_FILE}")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # as in server.runtime.sessions
    options.add_external_initializers_from_files_in_memory([WEIGHTS_FILE], [weights], [len(weights)])
    session = onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])
    caches = [each.name for each in session.get_inputs() if each.name not in ALIGNER_INPUTS]

    def attend(source: Sequence[int], target: Sequence[int]) -> Array:
        lengths = np.array([len(source)], np.int32)
        encoded = runner.encode(np.array([source], np.int64), lengths)
        feeds = dict(zip(ALIGNER_INPUTS, (np.array([target], np.int64), np.zeros(1, np.int64), lengths), strict=True))
        feeds |= dict(zip(caches, encoded, strict=False))  # of the last layer it needs the keys alone
        return np.stack([weights[0] for weights in session.run(None, feeds)])

    return attend


def choose_heads(attend: Attend, translations: Sequence[Translated]) -> Alignment:
    """Returns the heads, at most `MOST_HEADS`, whose average weights agree best with the lexical model."""
    sure = sure_links([each.source for each in translations], [each.target for each in translations])
    judged = [
        _judged(attend(each.source, each.target), each, links) for each, links in zip(translations, sure, strict=True)
    ]
    num_layers, num_heads = judged[0].weights.shape[1:3]
    heads = [Head(*each) for each in itertools.product(range(num_layers), range(num_heads), (False, True))]
    best = sorted(heads, key=lambda head: _error_rate([head], judged))[:_CANDIDATES]
    chosen, error_rate = [best[0]], _error_rate(best[:1], judged)
    while len(chosen) < MOST_HEADS:
        rates = {head: _error_rate([*chosen, head], judged) for head in best if head not in chosen}
        head = min(rates, key=lambda each: rates[each], default=None)
        if head is None or rates[head] > error_rate - _LEAST_GAIN:
            break
        chosen.append(head)
        error_rate = rates[head]
    return Alignment(heads=tuple(chosen), error_rate=round(error_rate, 4), num_sentences=len(translations))


@dataclass(frozen=True, slots=True)
class _Judged:
    """What the heads say of the tokens of a translation that have sure links.

    Attributes:
        weights: [2, layers, H, tokens, S], of the step that predicts a token and of the one that consumes it.
        is_sure: bool [tokens, S].
    """

    weights: Array
    is_sure: NDArray[np.bool_]


def _judged(weights: Array, translated: Translated, links: NDArray[np.bool_]) -> _Judged:
    tokens = np.flatnonzero(links.any(axis=1))
    tokens = tokens[tokens > translated.num_forced]  # bos, at 0, is no token of the translation
    return _Judged(np.stack([weights[:, :, tokens - 1], weights[:, :, tokens]]), links[tokens])


def _error_rate(heads: Sequence[Head], judged: Sequence[_Judged]) -> float:
    """Returns the part of the tokens whose largest weight, on average over the heads, is at no sure link."""
    num_wrong = num_tokens = 0
    for each in judged:
        mean = sum(each.weights[int(head.is_shifted), head.layer, head.head] for head in heads)
        largest = np.argmax(mean, axis=1)
        num_wrong += int((~each.is_sure[np.arange(len(largest)), largest]).sum())
        num_tokens += len(largest)
    return num_wrong / max(1, num_tokens)


def sure_links(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[NDArray[np.bool_]]:
    """Returns of each pair of sentences, bool [T, S], which tokens both directions of IBM model 1 link."""
    forward, backward = _Lexicon(sources, targets), _Lexicon(targets, sources)
    links = []
    for index, (source, target) in enumerate(zip(sources, targets, strict=True)):
        of_target = forward.probabilities(index).reshape(len(source), len(target)).T  # [T, S]
        of_source = backward.probabilities(index).reshape(len(target), len(source))  # [T, S]
        rows, columns = np.arange(len(target))[:, None], np.arange(len(source))[None]
        links.append((of_target.argmax(1)[:, None] == columns) & (of_source.argmax(0)[None] == rows))
    return links


class _Lexicon:
    """IBM model 1: how likely each token of one side is a translation of each token of the other side."""

    def __init__(self, givens: Sequence[Sequence[int]], founds: Sequence[Sequence[int]]) -> None:
        size = 1 + max(*map(max, givens), *map(max, founds))
        pairs = [
            np.add.outer(np.array(given) * size, found).ravel() for given, found in zip(givens, founds, strict=True)
        ]
        self._ends = np.cumsum([0, *map(len, pairs)])
        keys, self._kinds = np.unique(np.concatenate(pairs), return_inverse=True)
        _, given_of = np.unique(keys // size, return_inverse=True)
        # Each occurrence of a found token shares one count among the given tokens of its sentence.
        shapes = [(len(given), len(found)) for given, found in zip(givens, founds, strict=True)]
        firsts = np.cumsum([0, *(found for _, found in shapes)])
        occurrence = np.concatenate(
            [
                np.tile(np.arange(found) + first, given)
                for (given, found), first in zip(shapes, firsts[:-1], strict=True)
            ]
        )
        self._probability = np.ones(len(keys))
        for _ in range(_ROUNDS):
            likely = self._probability[self._kinds]
            share = likely / np.bincount(occurrence, likely)[occurrence]
            counts = np.bincount(self._kinds, share, len(keys))
            self._probability = counts / np.bincount(given_of, counts)[given_of]

    def probabilities(self, index: int) -> NDArray[np.float64]:
        """Returns those of a pair of sentences, [given * found]."""
        found: NDArray[np.float64] = self._probability[self._kinds[self._ends[index] : self._ends[index + 1]]]
        return found
