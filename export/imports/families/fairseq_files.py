"""What a checkpoint of fairseq holds.

Options are an `argparse.Namespace` ("args") up to version 0.9. From 0.10 on they are in groups ("cfg"), of which the
model's may again be a Namespace: objects of omegaconf at first, plain dicts later. Objects are read as `StandIn`s, as
are the meters of older checkpoints: these have their contents and none of their code.

Source of layouts, names and what was renamed: fairseq 0.7, 0.9 and 0.12, trainer.py, checkpoint_utils.py,
and models/transformer.
"""

import re
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from export.imports.formats.tensors import FormatError, LazyTensor, Tensors, bytes_of_strangers
from export.imports.formats.torch_files import StandIn, load_torch, tensors_of
from export.imports.report import Report, keys_of, name_of

_KNOWN_WORDS = """
    args cfg model criterion optimizer_history task_state extra_state last_optimizer_state optimizer best_loss epoch
    batch_offset val_loss ema ema_fp32_params
"""
_KNOWN = frozenset(_KNOWN_WORDS.split())
_GROUPS = {"task": "task", "model": "arch", "bpe": "bpe", "tokenizer": "tokenizer"}  # what each has for a name
_OTHER_GROUPS_WORDS = """
    _name common common_eval distributed_training dataset optimization checkpoint bmuf generation eval_lm interactive
    criterion optimizer lr_scheduler scoring ema simul_type job_logging_cfg hydra
"""
_OTHER_GROUPS = frozenset(_OTHER_GROUPS_WORDS.split())
_OMEGACONF_WORDS = """
    dictconfig.DictConfig listconfig.ListConfig base.Metadata base.ContainerMetadata nodes.AnyNode nodes.StringNode
    nodes.IntegerNode nodes.FloatNode nodes.BooleanNode nodes.EnumNode
"""
_CONFIGS_WORDS = """
    FairseqConfig CommonConfig CommonEvalConfig DistributedTrainingConfig DatasetConfig OptimizationConfig
    CheckpointConfig FairseqBMUFConfig GenerationConfig EvalLMConfig InteractiveConfig EMAConfig
"""
_OTHERS_WORDS = """
    builtins.dict builtins.list builtins.int builtins.float builtins.str builtins.bool typing.Any
    collections.defaultdict numpy.dtype numpy.core.multiarray.scalar numpy._core.multiarray.scalar
"""
_METERS = [f"{kind}Meter" for kind in ("Average", "Time", "Stopwatch")]
_STAND_INS = [
    *(f"omegaconf.{name}" for name in _OMEGACONF_WORDS.split()),
    *(f"fairseq.dataclass.configs.{name}" for name in _CONFIGS_WORDS.split()),
    *(f"fairseq.{module}.{name}" for module in ("meters", "logging.meters") for name in _METERS),
    *_OTHERS_WORDS.split(),
]
_TRUSTED = (
    "whoever trusts it loads it where fairseq is, and saves {key: state[key] for key in ('args', 'cfg', 'model')} alone"
)
_FINAL = ("checkpoint_best.pt", "model.pt")  # what training leaves beside others, and what is published
_LAYER_NORMS = {
    "encoder": ("self_attn_layer_norm", "final_layer_norm"),
    "decoder": ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"),
}
_MAX_PARTS = 20_000  # of options: those of fairseq are some hundreds
_OLD_NORM = re.compile(r"(encoder|decoder)(\.layers\.\d+)\.layer_norms\.(\d)\.(weight|bias)")
_STACKED = re.compile(r"(.*_attn)\.in_proj_(weight|bias)")
# A number that says which layout it is, a tensor that only says on which device, positions that are computed, and what
# fairseq 0.12 writes of each encoder layer once more, for kernels of torch: it makes them anew when it loads.
_NOT_READ = re.compile(
    r"(encoder|decoder)\.(version|embed_positions\.(_float_tensor|weights))"
    r"|encoder\.layers\.\d+\.(in_proj|out_proj|fc1|fc2)_(weight|bias)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A checkpoint that has been read but for its weights.

    Attributes:
        file: its name.
        tensors: of the network, by the names of FSMT.
        options: by which it was trained, in one group.
    """

    file: str
    tensors: dict[str, LazyTensor]
    options: dict[str, Any]


def is_here(directory: Path) -> bool:
    """Whether a directory has a checkpoint of fairseq, by the dictionaries beside it or by what is in it."""
    paths = sorted(directory.glob("*.pt"))
    if not paths or any(directory.glob("dict.*.txt")):
        return bool(paths)
    try:
        document = load_torch(paths[0], _STAND_INS)
    except FormatError:
        return False
    return isinstance(document, Mapping) and "model" in document and bool({"args", "cfg"} & document.keys())


def read_checkpoint(directory: Path, report: Report) -> Checkpoint | None:
    """Reads the checkpoint of a directory; None if there is a fault."""
    path = _choose(directory, report)
    if path is None:
        return None
    try:
        document = load_torch(path, _STAND_INS)
    except FormatError as error:
        remedy = _TRUSTED if "could run code" in str(error) else "download it again, all of it"
        report.fault(path.name, found=error, remedy=remedy)
        return None
    try:
        return _read(path, document, report)
    except FormatError as error:
        report.fault(path.name, found=error)
        return None


def _choose(directory: Path, report: Report) -> Path | None:
    paths = sorted(directory.glob("*.pt"))
    others = [path.name for path in paths if path.name not in _FINAL]
    if len(paths) > 1 and len(paths) - len(others) == 1 and all(name.startswith("checkpoint") for name in others):
        chosen = next(path for path in paths if path.name in _FINAL)
        report.note(f"{chosen.name} is read, not {', '.join(others[:4])}{' ...' if len(others) > 4 else ''}")
        return chosen
    if len(paths) == 1:
        return paths[0]
    names = ", ".join(path.name for path in paths[:4])
    report.fault(names, found=f"{len(paths)} checkpoints", expected="one", remedy="name one of them, or average them")
    return None


def _read(path: Path, document: Any, report: Report) -> Checkpoint:
    file = path.name
    if not isinstance(document, Mapping) or "model" not in document:
        raise FormatError(f"holds {keys_of(document)}, not what fairseq writes: args or cfg, and model")
    for key in document:
        if key not in _KNOWN:
            report.unknown(file, name_of(key), type(document[key]).__name__)
    with bytes_of_strangers("has options that cannot be read"):
        args, cfg = (_plain(document.get(key), iter(range(_MAX_PARTS))) for key in ("args", "cfg"))
    options = args if isinstance(args, dict) and args else _one_group(file, cfg, report)
    return Checkpoint(file=file, tensors=_renamed(tensors_of(path, document["model"])), options=options)


def _plain(value: Any, parts: Iterator[int]) -> Any:
    """Returns what omegaconf and argparse hold as dicts and lists, however deep; None of what nobody can read.

    Takes one of `parts` for each, since a file may hold a list that contains another one many times, or itself.
    """
    if next(parts, None) is None:
        raise FormatError(f"has options of more than {_MAX_PARTS} parts")
    if isinstance(value, Namespace):
        value = vars(value)
    elif isinstance(value, StandIn):
        state = value.state if isinstance(value.state, Mapping) else {}
        return _plain(state.get("_content", state.get("_val")), parts)
    if isinstance(value, Mapping):
        return {name_of(key): _plain(each, parts) for key, each in value.items()}
    return [_plain(each, parts) for each in value] if isinstance(value, list | tuple) else value


def _one_group(file: str, groups: Any, report: Report) -> dict[str, Any]:
    if not isinstance(groups, Mapping) or not isinstance(groups.get("model"), Mapping):
        raise FormatError("has options (args or cfg) in no form that is known")
    for group, values in groups.items():
        if group not in _OTHER_GROUPS and group not in _GROUPS:
            report.unknown(f"{file}: cfg", group, type(values).__name__)
    options: dict[str, Any] = {}
    for group, name in _GROUPS.items():  # the first to say something is right: a tokenizer has languages of its own
        options = _flat(groups.get(group), name) | options
    return options


def _flat(values: Any, name: str) -> dict[str, Any]:
    """Returns a group's options as the command line calls them: `encoder: {layers: 6}` is `encoder_layers` there."""
    flat: dict[str, Any] = {}
    for key, value in values.items() if isinstance(values, Mapping) else [("_name", values)]:
        if key == "_name":
            flat[name] = value
        elif isinstance(value, Mapping) and key in ("encoder", "decoder", "quant_noise"):
            flat |= {f"{key}_{inner}": each for inner, each in value.items() if inner != "_name"}
        else:
            flat[key] = value
    return {key: value for key, value in flat.items() if value is not None}


def _renamed(tensors: Tensors) -> dict[str, LazyTensor]:
    return {f"model.{name}": tensor for old, each in tensors.items() for name, tensor in _current(old, each)}


def _current(name: str, tensor: LazyTensor) -> Iterator[tuple[str, LazyTensor]]:
    """Yields a tensor by the name that fairseq 0.12 has for it, and FSMT."""
    if _NOT_READ.fullmatch(name):
        return
    stacked, norm = _STACKED.fullmatch(name), _OLD_NORM.fullmatch(name)
    if stacked and tensor.shape and tensor.shape[0] % 3 == 0:
        shape = (tensor.shape[0] // 3, *tensor.shape[1:])
        for i, part in enumerate("qkv"):
            yield f"{stacked[1]}.{part}_proj.{stacked[2]}", replace(tensor, shape=shape, loader=_third(tensor, i))
    elif norm and int(norm[3]) < len(_LAYER_NORMS[norm[1]]):
        yield f"{norm[1]}{norm[2]}.{_LAYER_NORMS[norm[1]][int(norm[3])]}.{norm[4]}", tensor
    else:
        yield {"decoder.embed_out": "decoder.output_projection.weight"}.get(name, name), tensor


def _third(tensor: LazyTensor, i: int) -> Callable[[], Tensor]:
    def load() -> Tensor:
        return tensor.load().chunk(3)[i].clone()

    return load
