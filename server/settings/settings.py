"""Everything that can be set. Facts of the model (ids, sizes, limits) come from its manifest, never from here."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from server.bundle.graphs import MAX_BEAM_SIZE
from server.bundle.variants import DEVICES, VARIANTS
from server.telemetry.metrics import LOG_LEVELS
from server.telemetry.trace_exporters import EXPORTERS

AUTO = "auto"
AT_START, ON_DEMAND = "at-start", "on-demand"
BUILTIN = Path(__file__).parents[1] / "builtin"  # a folder of models, which settings call by its name
BUILTIN_BUNDLE = BUILTIN / "en-de"


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
    """All settings, checked by `server.settings.command_line`; the fields' help is what `--help` prints."""

    host: str = _setting("127.0.0.1", "address of the translation, health and metrics ports")
    port: int = _port(50051, "port of the translation service")
    health_port: int = _port(50052, "port of the health service, which has neither TLS nor limits")
    admin_port: int = _port(50053, "port of the admin services (gRPC's channelz, ModelAdmin), on the loopback only")
    metrics_port: int = _port(9464, "port of the metrics page, over HTTP")
    http_port: int | None = _setting(
        None,
        "port of the API over HTTP, off without; needs babelserve[web]; 0 takes a free one",
        low=0,
        high=65535,
        kind=int,
    )
    http_cors: str = _setting(
        "",
        "origins of web pages that may call over HTTP, such as https://a.example,https://b.example, or *; none without",
    )
    bundle: Path = _setting(BUILTIN_BUNDLE, "directory of the model; builtin/NAME: one that comes with the server")
    models: Path | None = _setting(
        None,
        "directory of several models, instead of --bundle: each folder is a bundle, or holds versions of one, of which"
        " the highest is served; what changes in it is taken without a restart; builtin: those that come with the"
        " server",
    )
    default: str = _setting(
        "", "model of --models that requests go to which name none, if it translates what they want; or several: A,B"
    )
    pivot: str = _setting(
        "",
        "pivot: language between two models, for texts that no model translates directly; or several, the first first:"
        " en,de. Never more than one lies between",
    )
    load: str = _setting(
        AT_START,
        "when models of --models are loaded: all at-start, or each on-demand, when the least recently used leave",
        choices=(AT_START, ON_DEMAND),
    )
    models_memory: int = _setting(
        0, "MiB of loaded models with --load on-demand, as --list counts them; 0 takes half of the process's", low=0
    )
    glossaries: Path | None = _setting(
        None,
        "directory of glossaries that requests may name: each file, NAME.tsv, NAME.csv or NAME.tbx, is one; what"
        " changes in it is taken without a restart",
    )
    house_glossaries: str = _setting(
        "", "glossaries of --glossaries that hold in every request of their direction, behind its own terms: A,B"
    )
    admin_keys: Path | None = _setting(
        None,
        "TOML file like that of --keys: who has a key of it may load, unload, roll back and share out versions of"
        " --models, by ModelAdmin on the admin port, which is off without",
    )
    variant: str = _setting(AUTO, "precision; auto takes the best for the device", choices=(AUTO, *VARIANTS))
    device: str = _setting(AUTO, "device; auto takes cuda where there is one", choices=(AUTO, *DEVICES))
    lanes: int = _setting(0, "engine threads; 0 takes one per usable core on cpu, one on cuda", low=0, high=256)
    max_rows: int = _setting(
        128, "rows of one lane, all its batches together; a sentence takes beam_size of them", low=1, high=4096
    )
    bulk_share: float = _setting(
        0.75,
        "part of a lane's rows and caches that the background (bulk calls, floods) takes while there is no foreground;"
        " the rest waits for the next caller. 1 for a server that answers bulk calls alone",
        low=0.1,
        high=1,
    )
    max_cache_mib: int = _by_variant(
        {name: kind.max_cache_mib for name, kind in VARIANTS.items()},
        "MiB of keys and values that one lane holds if translations are as long as their sources; twice that beside one"
        " sentence that is much longer than the others; on cuda memory for --max-rows is taken at once",
    )
    max_encode_tokens: int = _by_variant(
        {name: kind.max_encode_tokens for name, kind in VARIANTS.items()},
        "padded source tokens that one encoder run may have",
    )
    memory_mib: int = _setting(
        0, "MiB that the process may take, its model included; 0 takes its container's limit, or the machine's", low=0
    )
    device_memory_mib: int = _setting(
        0,
        "MiB of a GPU that weights, caches and runs may take, of all models together, for a GPU that is shared; CUDA's"
        " own context comes on top; 0 takes what they need. With cuda alone",
        low=0,
    )
    max_waiting_tokens: int = _setting(
        65536,
        "waiting source tokens; from this number on, a request is refused if its flow has its share of them already",
        low=1,
    )
    max_waiting_sentences: int = _setting(
        4096,
        "waiting sentences; from this number on, a request is refused if its flow has its share of them already",
        low=1,
    )
    cache_sentences: int = _setting(
        0, "translated sentences that are kept for when they come again; the least recently used leave", low=0
    )
    single_flight: bool = _setting(
        False, "translate equal sentences of a tenant that wait or run at the same moment once"
    )
    beam_size: int = _setting(
        0,
        "beam of a request that names none, or the model's widest if that is less; 0 takes what the model's manifest"
        " says, else 4",
        low=0,
        high=MAX_BEAM_SIZE,
    )
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
    tls_client_ca: Path | None = _setting(
        None, "PEM file with the authorities of client certificates, which are then required; needs --tls-cert"
    )
    keys: Path | None = _setting(None, "TOML file with tenants and their API keys, which are then required")
    reflection: bool = _setting(False, "answer gRPC server reflection")
    traces: str = _setting(
        "none", "where spans go; otlp needs babelserve[otel] and is set up by OTEL_* variables", choices=EXPORTERS
    )
    log_level: str = _setting("info", "lowest level that is logged", choices=LOG_LEVELS)

    @property
    def preferred_models(self) -> list[str]:
        """The names that `default` has."""
        return [name for name in self.default.split(",") if name]

    @property
    def http_origins(self) -> list[str]:
        """The origins that `http_cors` has."""
        return read_origins(self.http_cors)

    @property
    def pivots(self) -> list[str]:
        """The languages that `pivot` has."""
        return [code for code in self.pivot.split(",") if code]

    @property
    def houses(self) -> list[str]:
        """The names that `house_glossaries` has."""
        return [name for name in self.house_glossaries.split(",") if name]


def read_origins(listed: str) -> list[str]:
    """Returns the origins of web pages that a list with commas has."""
    return [origin for each in listed.split(",") if (origin := each.strip())]
