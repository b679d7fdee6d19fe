"""Everything that can be set. The flag `--max-rows` is the environment variable `BABELSERVE_MAX_ROWS`; the flag wins.

All faults are reported at once. An unknown `BABELSERVE_` variable is a fault, since someone believes it to be in force.
Facts of the model (ids, sizes, limits) come from the bundle's manifest, never from here.
"""

import argparse
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from server.bundle.bundle import MAX_BEAM_SIZE, VARIANTS
from server.engine.waiting_queue import BatchLimits
from server.errors import SettingsError

PREFIX = "BABELSERVE_"
AUTO = "auto"
DEVICES = ("cpu", "cuda")
# By variant, unless they are set. These caches hold 2,048, 2,730 and 65,536 source tokens of Transformer-base, greedy.
MAX_CACHE_MIB = {"cpu-int8": 24, "cpu-fp32": 128, "cuda-fp16": 1536}
MAX_ENCODE_TOKENS = {"cpu-int8": 256, "cpu-fp32": 256, "cuda-fp16": 4096}
LOG_LEVELS = ("debug", "info", "warning", "error")
BUILTIN_BUNDLE = Path(__file__).parents[1] / "builtin" / "en-de"
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")


def _setting(default: Any, text: str, *, low: float | None = None, high: float | None = None, **more: Any) -> Any:
    """A field with its help, range (inclusive) and, in `more`, `choices`."""
    return field(default=default, metadata={"help": text, "low": low, "high": high, **more})


def _port(default: int, text: str) -> Any:
    return _setting(default, f"{text}; 0 takes a free one", low=0, high=65535)


def _by_variant(defaults: dict[str, int], text: str) -> Any:
    named = ", ".join(f"{default} with {variant}" for variant, default in defaults.items())
    return _setting(0, f"{text}; 0 takes {named}", low=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings, checked by `read_settings`; the fields' help is what `--help` prints."""

    host: str = _setting("127.0.0.1", "address of the translation, health and metrics ports")
    port: int = _port(50051, "port of the translation service")
    health_port: int = _port(50052, "port of the health service, which has neither TLS nor limits")
    admin_port: int = _port(50053, "port of the admin service (channelz), on the loopback only")
    metrics_port: int = _port(9464, "port of the metrics page, over HTTP")
    bundle: Path = _setting(BUILTIN_BUNDLE, "directory of the model")
    variant: str = _setting(AUTO, "precision; auto takes the best for the device", choices=(AUTO, *VARIANTS))
    device: str = _setting(AUTO, "device; auto takes cuda where there is one", choices=(AUTO, *DEVICES))
    lanes: int = _setting(0, "engine threads; 0 takes one per usable core on cpu, one on cuda", low=0, high=256)
    max_rows: int = _setting(128, "rows of one lane's batch; a sentence takes beam_size of them", low=1, high=4096)
    max_cache_mib: int = _by_variant(
        MAX_CACHE_MIB,
        "MiB of keys and values of one lane's batch, if translations are as long as their sources; all rows are as long"
        " as the longest, which may take four times that; on cuda memory for --max-rows is taken at once",
    )
    max_encode_tokens: int = _by_variant(MAX_ENCODE_TOKENS, "padded source tokens that one encoder run may have")
    max_waiting_tokens: int = _setting(65536, "waiting source tokens at which requests are refused", low=1)
    max_waiting_sentences: int = _setting(4096, "waiting sentences at which requests are refused", low=1)
    cache_sentences: int = _setting(
        0, "translated sentences that are kept for when they come again; the least recently used leave", low=0
    )
    single_flight: bool = _setting(False, "translate equal sentences that wait or run at the same moment once")
    beam_size: int = _setting(4, "beam of a request that names none, or the model's widest", low=1, high=MAX_BEAM_SIZE)
    max_request_seconds: float = _setting(
        120.0, "seconds after which a request is given up; a client's earlier deadline wins", low=0.001, high=86400
    )
    drain_delay: float = _setting(
        5.0, "seconds that requests are still taken after SIGTERM, for balancers to look elsewhere", low=0, high=3600
    )
    drain_timeout: float = _setting(
        30.0, "seconds after the drain delay until what still runs is answered UNAVAILABLE", low=0, high=86400
    )
    tls_cert: Path | None = _setting(None, "PEM file with the certificate chain; needs --tls-key")
    tls_key: Path | None = _setting(None, "PEM file with the private key; needs --tls-cert")
    reflection: bool = _setting(False, "answer gRPC server reflection")
    log_level: str = _setting("info", "lowest level that is logged", choices=LOG_LEVELS)

    def batch(self, variant: str, position_bytes: int) -> BatchLimits:
        """Returns the limits of a lane's batch.

        Args:
            variant: one of `server.bundle.bundle.VARIANTS`.
            position_bytes: what `Manifest.position_bytes` says of it.
        """
        cache_bytes = (self.max_cache_mib or MAX_CACHE_MIB[variant]) * 2**20
        return BatchLimits(
            max_rows=self.max_rows,
            max_cached_positions=max(1, cache_bytes // position_bytes),
            max_encode_tokens=self.max_encode_tokens or MAX_ENCODE_TOKENS[variant],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """What the command line asks for: to serve with `settings`, or to check a bundle."""

    settings: Settings
    check: Path | None


class _Parser(argparse.ArgumentParser):
    """Raises instead of leaving."""

    def error(self, message: str) -> NoReturn:
        raise SettingsError([message])


def read_settings(arguments: Sequence[str], environment: Mapping[str, str], version: str) -> CommandLine:
    """Reads flags and environment.

    Args:
        arguments: the command line without the program's name.
        environment: variables, of which those with the prefix count.
        version: printed by `--version`.

    Raises:
        SettingsError: every fault.
        SystemExit: after `--help` or `--version`.
    """
    fields = {each.name: each for each in dataclasses.fields(Settings)}
    faults = [
        f"{name}: unknown variable"
        for name in sorted(environment)
        if name.startswith(PREFIX) and name not in map(_variable, fields)
    ]
    given: dict[str, tuple[str, str]] = {
        name: (_variable(name), environment[_variable(name)]) for name in fields if _variable(name) in environment
    }
    check = None
    try:
        flags, unknown = _parser(version).parse_known_args(arguments)
        faults += [f"{argument}: unknown argument" for argument in unknown]
        check = flags.check
        named = {name: value for name, value in vars(flags).items() if name in fields and value is not None}
        given |= {name: (_flag(name), value) for name, value in named.items()}
    except SettingsError as error:
        raise SettingsError([*faults, *error.faults]) from error  # flags that are not read cannot be judged
    values: dict[str, Any] = {}
    for name, (source, text) in given.items():
        try:
            values[name] = _convert(fields[name], text)
        except ValueError as error:
            faults.append(f"{source}: {error}")
    settings = Settings(**values)
    faults += _contradictions(settings)
    if check is None and not settings.bundle.is_dir():
        faults.append(f"--bundle: {settings.bundle} is no directory")
    if faults:
        raise SettingsError(faults)
    return CommandLine(settings=settings, check=check)


def _variable(name: str) -> str:
    return PREFIX + name.upper()


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _parser(version: str) -> _Parser:
    parser = _Parser(
        prog="babelserve",
        description="Serves a translation model over gRPC.",
        epilog=f"Each flag --some-name can be given as environment variable {PREFIX}SOME_NAME; the flag wins.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"babelserve {version}")
    parser.add_argument("--check", type=Path, metavar="BUNDLE", help="check a bundle, say what is wrong, and end")
    for each in dataclasses.fields(Settings):
        text = each.metadata["help"].replace("%", "%%")
        if isinstance(each.default, bool):
            parser.add_argument(_flag(each.name), action="store_const", const="true", help=text)
            continue
        choices = each.metadata.get("choices")
        default = "the built-in model" if each.default is BUILTIN_BUNDLE else each.default
        parser.add_argument(
            _flag(each.name),
            metavar="|".join(choices) if choices else each.name.rpartition("_")[2].upper(),
            help=text if each.default is None else f"{text} (default: {default})",
        )
    return parser


def _convert(each: "dataclasses.Field[Any]", text: str) -> Any:
    """Reads one value; ValueError says what it should be."""
    kind, default = each.metadata, each.default
    if isinstance(default, bool):
        if text.lower() not in (*_TRUE, *_FALSE):
            raise ValueError(f"must be true or false, not {text!r}")
        return text.lower() in _TRUE
    if isinstance(default, int | float):
        return _number(text, type(default), kind["low"], kind["high"])
    choices = kind.get("choices")
    if choices and text not in choices:
        raise ValueError(f"must be one of {', '.join(choices)}, not {text!r}")
    if not text:
        raise ValueError("must not be empty")
    return text if isinstance(default, str) else Path(text)


def _number(text: str, kind: type[int] | type[float], low: float, high: float | None) -> float:
    limits = f"at least {low}" if high is None else f"from {low} to {high}"
    wanted = f"must be {'a whole number' if kind is int else 'a number'} {limits}, not {text!r}"
    try:
        value = kind(text)
    except ValueError as error:
        raise ValueError(wanted) from error
    if not low <= value <= (high if high is not None else float("inf")):  # also refuses NaN
        raise ValueError(wanted)
    return value


def _contradictions(settings: Settings) -> Iterator[str]:
    """Faults between settings."""
    ports: dict[int, str] = {}
    for name in ("port", "health_port", "admin_port", "metrics_port"):
        number = getattr(settings, name)
        if number and number in ports:
            yield f"{_flag(name)}: {number} is also {ports[number]}"
        ports.setdefault(number, _flag(name))
    if (settings.tls_cert is None) != (settings.tls_key is None):
        yield "--tls-cert and --tls-key: one needs the other"
    for name in ("tls_cert", "tls_key"):
        path = getattr(settings, name)
        if path is not None and not path.is_file():
            yield f"{_flag(name)}: {path} is no file"
    if settings.beam_size > settings.max_rows:
        yield f"--beam-size: {settings.beam_size} does not fit into --max-rows {settings.max_rows}"
    if AUTO not in (settings.variant, settings.device) and not settings.variant.startswith(f"{settings.device}-"):
        yield f"--variant: {settings.variant} does not fit --device {settings.device}"
