"""CTranslate2's directories, which others' tools ship: Transformers with attention, at any precision."""

from pathlib import Path

from export.imports.families.ctranslate2_network import plan_weights, read_flags, read_network
from export.imports.families.ctranslate2_vocabularies import FILE, ReadTokenizer, read_pairs, read_vocabularies
from export.imports.families.multilingual import read_languages
from export.imports.foreign import CTRANSLATE2, ForeignModel
from export.imports.formats.ctranslate2_bin import dequantised, list_variables
from export.imports.formats.tensors import FormatError
from export.imports.languages import GivenLanguages
from export.imports.licences import UNKNOWN, read_licence
from export.imports.report import Report
from export.imports.settings import read_settings
from server.bundle.manifest import SearchDefaults

_SPECS = ("TransformerSpec", "TransformerBase", "TransformerBig")
_CONFIG_KEYS = ("bos_token", "eos_token", "unk_token", "add_source_bos", "add_source_eos", "decoder_start_token")


def is_here(directory: Path) -> bool:
    """Whether a directory has what CTranslate2 writes."""
    return (directory / FILE).is_file()


def read(
    directory: Path, given: GivenLanguages, report: Report, read_tokenizer: ReadTokenizer | None = None
) -> ForeignModel | None:
    """Reads a directory; returns None where faults leave nothing to go on with.

    Args:
        directory: of the model.
        given: languages that the user has named.
        report: gets the faults.
        read_tokenizer: see `read_vocabularies`.
    """
    config = read_settings(directory, "config.json", report, is_optional=True)
    try:
        variables = list_variables(directory / FILE)
        tensors = dequantised(variables)
        flags = read_flags(variables, report)
    except FormatError as error:
        report.fault(FILE, found=error)
        return None
    if variables.spec not in _SPECS:
        remedy = (
            "models converted before 2020 do not say theirs: convert the original again" if not variables.spec else ""
        )
        report.fault(FILE, found=f"specification {variables.spec!r}", expected=_SPECS[0], remedy=remedy)
        return None
    vocabularies = read_vocabularies(directory, config, tensors, report, read_tokenizer)
    config.finish((*_CONFIG_KEYS, "layer_norm_epsilon", "multi_query_attention"))
    if vocabularies is None or report.faults:
        return None
    network = read_network(flags, tensors, vocabularies, config, report)
    if network is None:
        return None
    kind = vocabularies.kind
    weights = {name: tensor for name, tensor in tensors.items() if tensor.shape}
    return ForeignModel(
        family="CTranslate2" if kind is None else f"CTranslate2 ({kind.name})",
        reference=CTRANSLATE2,
        directory=directory,
        name=directory.resolve().name,
        config=network,
        plan=plan_weights(network, weights, vocabularies),
        tensors=weights,
        tokenizer=vocabularies.tokenizer,
        language_pairs=read_pairs(directory, vocabularies, given, report) if kind is None else (),
        languages=read_languages(vocabularies.language_tokens, given, report, file="vocabulary") if kind else None,
        source_eos=vocabularies.source_eos,
        suppressed=tuple(range(vocabularies.num_target, network.vocab_size)),
        search=SearchDefaults(beam_size=2),
        max_source_tokens=network.max_positions,
        max_target_tokens=network.max_positions,
        origin={"licence": read_licence(directory, report, kind.licence if kind else UNKNOWN)},
    )
