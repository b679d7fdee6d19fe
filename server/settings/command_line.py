"""Settings from flags and environment. The flag `--max-rows` is the variable `BABELSERVE_MAX_ROWS`; the flag wins.

All faults are reported at once. An unknown `BABELSERVE_` variable is a fault, since someone believes it to be in force.
"""

import argparse
import dataclasses
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import shtab

from server.bundle.codes import canonical_code
from server.bundle.variants import VARIANTS
from server.errors import SettingsError
from server.settings.settings import AT_START, AUTO, BUILTIN, BUILTIN_BUNDLE, ON_DEMAND, Settings, read_origins

PREFIX = "BABELSERVE_"
_KINDS = {"file": stat.S_ISREG, "directory": stat.S_ISDIR}
_ORIGIN = re.compile(r"\*|null|[a-z][a-z0-9+.-]*://[^/?#\s]+")
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """What the command line asks for: to serve with `settings`, or to list models, check a bundle, make an API key."""

    settings: Settings
    check: Path | None
    make_key: bool
    list_models: bool = False


class Parser(argparse.ArgumentParser):
    """A parser that raises SettingsError instead of leaving."""

    def error(self, message: str) -> NoReturn:
        """See `argparse.ArgumentParser.error`."""
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
    check, make_key, list_models = None, False, False
    try:
        flags, unknown = build_parser(version).parse_known_args(arguments)
        refuse_dashes(flags)
        faults += [f"{argument}: unknown argument" for argument in unknown]
        check = _path("check", flags.check) if flags.check is not None else None
        make_key, list_models = flags.make_key, flags.list
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
    if check is None:
        faults += _path_faults("bundle", settings.bundle, "directory")
    if faults:
        raise SettingsError(faults)
    return CommandLine(settings=settings, check=check, make_key=make_key, list_models=list_models)


def refuse_dashes(flags: argparse.Namespace) -> None:
    """Raises SettingsError for each `--flag=--`, for which an older Python has an empty list (its issue 109475)."""
    if lost := [name for name, value in vars(flags).items() if value in ([], "--", Path("--"))]:
        raise SettingsError([f"{_flag(name)}: -- is no value" for name in lost])


def host_faults(host: str) -> Iterator[str]:
    """A fault if an address to listen on can be no name of a host, over which the socket library would stumble."""
    try:
        host.encode("idna")
    except UnicodeError:
        yield f"--host: must be an address or the name of a host, not {host!r:.80}"


def origin_faults(listed: str) -> Iterator[str]:
    """A fault for each origin that has no scheme, or a path: a slash at the end is one."""
    for origin in read_origins(listed):
        if not _ORIGIN.fullmatch(origin):
            yield f"--http-cors: must have * or origins such as https://a.example, not {origin!r:.80}"


def _variable(name: str) -> str:
    return PREFIX + name.upper()


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def build_parser(version: str) -> argparse.ArgumentParser:
    """All flags; they take any text, of which `read_settings` says what is wrong. Faults are SettingsError."""
    parser = Parser(
        prog="babelserve",
        description="Serves a translation model over gRPC.",
        epilog=f"Each flag --some-name can be given as environment variable {PREFIX}SOME_NAME; the flag wins.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"babelserve {version}")
    parser.add_argument("--check", metavar="BUNDLE", help="check a bundle, say what is wrong, and end")
    parser.add_argument("--list", action="store_true", help="say what would be served, with its memory, and end")
    parser.add_argument("--make-key", action="store_true", help="print a new API key and its hash for --keys, and end")
    shtab.add_argument_to(parser, "--print-completion", help="print what completes this command in a shell, and end")
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
            help=text if each.default in (None, "") else f"{text} (default: {default})",
        )
    return parser


def _convert(each: "dataclasses.Field[Any]", text: str) -> Any:
    """Reads one value; ValueError says what it should be."""
    kind, default = each.metadata, each.default
    if isinstance(default, bool):
        if text.lower() not in (*_TRUE, *_FALSE):
            raise ValueError(f"must be true or false, not {text!r}")
        return text.lower() in _TRUE
    if isinstance(default, int | float) or "kind" in kind:
        return _number(text, kind.get("kind", type(default)), kind["low"], kind["high"])
    choices = kind.get("choices")
    if choices and text not in choices:
        raise ValueError(f"must be one of {', '.join(choices)}, not {text!r}")
    if not text and default != "":
        raise ValueError("must not be empty")
    return text if isinstance(default, str) else _path(each.name, text)


def _path(name: str, text: str) -> Path:
    """Returns a path; of models one in the server's own folder if it begins with its name, unless with "./"."""
    is_builtin = name in ("bundle", "models", "check") and text.split("/", maxsplit=1)[0] == BUILTIN.name
    return BUILTIN.parent / text if is_builtin else Path(text)


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


def _path_faults(name: str, path: Path | None, kind: str) -> Iterator[str]:
    """A fault if there is a path and it is no "file" or "directory", whichever it should be."""
    try:
        if path is not None and not _KINDS[kind](path.stat().st_mode):
            yield f"{_flag(name)}: {path} is no {kind}"
    except OSError as error:
        yield f"{_flag(name)}: {path} cannot be read: {error.strerror}"


def _contradictions(settings: Settings) -> Iterator[str]:
    """Faults between settings."""
    yield from host_faults(settings.host)
    yield from origin_faults(settings.http_cors)
    ports: dict[int, str] = {}
    for name in ("port", "health_port", "admin_port", "metrics_port", "http_port"):
        number = getattr(settings, name)
        if number and number in ports:
            yield f"{_flag(name)}: {number} is also {ports[number]}"
        ports.setdefault(number, _flag(name))
    if (settings.tls_cert is None) != (settings.tls_key is None):
        yield "--tls-cert and --tls-key: one needs the other"
    if settings.http_cors and settings.http_port is None:
        yield "--http-cors: needs --http-port"
    if settings.tls_client_ca is not None and settings.tls_cert is None:
        yield "--tls-client-ca: needs --tls-cert"
    for name in ("tls_cert", "tls_key", "tls_client_ca", "keys", "admin_keys"):
        yield from _path_faults(name, getattr(settings, name), "file")
    yield from _path_faults("glossaries", settings.glossaries, "directory")
    if settings.houses and settings.glossaries is None:
        yield "--house-glossaries: needs --glossaries"
    yield from _contradictions_of_models(settings)
    if settings.beam_size > settings.max_rows:
        yield f"--beam-size: {settings.beam_size} does not fit into --max-rows {settings.max_rows}"
    if AUTO not in (settings.variant, settings.device) and VARIANTS[settings.variant].device != settings.device:
        yield f"--variant: {settings.variant} does not fit --device {settings.device}"


def _contradictions_of_models(settings: Settings) -> Iterator[str]:
    if settings.models is not None:
        yield from _path_faults("models", settings.models, "directory")
        if settings.bundle != BUILTIN_BUNDLE:
            yield "--bundle: --models takes its place"
    elif settings.default:
        yield "--default: needs --models"
    if settings.load == ON_DEMAND and settings.models is None:
        yield "--load: on-demand needs --models"
    if settings.admin_keys is not None and (settings.models is None or settings.load == ON_DEMAND):
        yield f"--admin-keys: needs --models, loaded {AT_START}"
    if settings.models_memory and settings.load != ON_DEMAND:
        yield "--models-memory: needs --load on-demand"
    for code in settings.pivots:
        if canonical_code(code) is None:
            yield f"--pivot: {code!r} is no BCP-47 code of a language"
