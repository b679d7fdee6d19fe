import dataclasses
from pathlib import Path

import pytest

from server.bundle.bundle import VARIANTS, Manifest, open_bundle
from server.engine.waiting_queue import BatchLimits
from server.errors import SettingsError
from server.settings.settings import (
    BUILTIN_BUNDLE,
    MAX_CACHE_MIB,
    MAX_ENCODE_TOKENS,
    CommandLine,
    Settings,
    read_settings,
)


@pytest.fixture
def bundle(tmp_path: Path) -> str:
    """A directory; what is in it is none of the settings' business."""
    return str(tmp_path)


def read(*arguments: str, **environment: str) -> CommandLine:
    return read_settings(arguments, environment, "1.2.3")


def faults(*arguments: str, **environment: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        read(*arguments, **environment)
    return caught.value.faults


def test_defaults_are_those_of_the_design(bundle: str) -> None:
    settings = read("--bundle", bundle).settings

    assert settings == Settings(bundle=Path(bundle))
    assert (settings.host, settings.port, settings.health_port) == ("127.0.0.1", 50051, 50052)
    assert (settings.admin_port, settings.metrics_port, settings.drain_delay) == (50053, 9464, 5.0)
    assert Settings().bundle == BUILTIN_BUNDLE


def test_the_environment_counts_and_a_flag_wins(bundle: str) -> None:
    settings = read(
        "--max-rows=16",
        "--bundle",
        bundle,
        BABELSERVE_MAX_ROWS="8",
        BABELSERVE_MAX_REQUEST_SECONDS="2.5",
        BABELSERVE_REFLECTION="true",
        OTHER="x",
    ).settings

    assert (settings.max_rows, settings.max_request_seconds, settings.reflection) == (16, 2.5, True)


def test_each_variant_has_its_own_batch_and_what_is_set_wins(bundle: str) -> None:
    settings = read("--max-cache-mib=10", "--max-encode-tokens=100", "--bundle", bundle).settings

    assert MAX_CACHE_MIB.keys() == MAX_ENCODE_TOKENS.keys() == set(VARIANTS)
    for variant in VARIANTS:
        assert Settings().batch(variant, position_bytes=2**20) == BatchLimits(
            max_rows=128,
            max_cached_positions=MAX_CACHE_MIB[variant],
            max_encode_tokens=MAX_ENCODE_TOKENS[variant],
        )
        assert settings.batch(variant, position_bytes=2**20) == BatchLimits(
            max_rows=128, max_cached_positions=10, max_encode_tokens=100
        )


@pytest.mark.parametrize(
    ("variant", "itemsize", "source_tokens"),
    [("cpu-int8", 1, 2048), ("cpu-fp32", 4, 2730), ("cuda-fp16", 2, 65536)],
)
def test_by_default_so_many_source_tokens_of_transformer_base_run(
    variant: str, itemsize: int, source_tokens: int
) -> None:
    batch = Settings().batch(variant, position_bytes=2 * 6 * 512 * itemsize)

    assert batch.max_cached_positions // 2 == source_tokens


def test_the_same_memory_holds_more_of_a_smaller_model() -> None:
    small = open_bundle(BUILTIN_BUNDLE).manifest
    base = dataclasses.replace(small, dimensions=dataclasses.replace(small.dimensions, d_model=512, decoder_layers=6))

    def positions(manifest: Manifest, variant: str) -> int:
        return Settings(max_cache_mib=48).batch(variant, manifest.position_bytes(variant)).max_cached_positions

    assert positions(base, "cpu-fp32") == 2048
    assert positions(base, "cpu-int8") == 4 * 2048
    assert (small.dimensions.d_model, small.dimensions.decoder_layers) == (256, 2)
    assert positions(small, "cpu-fp32") == 2 * 3 * 2048


def test_a_position_larger_than_the_cache_is_one() -> None:
    assert Settings(max_cache_mib=1).batch("cpu-int8", position_bytes=2**21).max_cached_positions == 1


@pytest.mark.parametrize(("value", "expected"), [("1", True), ("yes", True), ("FALSE", False), ("0", False)])
def test_a_switch_in_the_environment_has_a_value(bundle: str, value: str, expected: bool) -> None:
    assert read("--bundle", bundle, BABELSERVE_REFLECTION=value).settings.reflection is expected


def test_all_faults_are_listed_at_once(tmp_path: Path) -> None:
    found = faults(
        "--port=70000",
        "--lanes=many",
        "--no-such-flag",
        "--bundle",
        str(tmp_path / "none"),
        "--variant=cpu-int4",
        "--tls-cert",
        str(tmp_path / "cert.pem"),
        BABELSERVE_MAX_ROWS="-1",
        BABELSERVE_DRAIN_DELAY="nan",
        BABELSERVE_REFLECTION="perhaps",
        BABELSERVE_PRT="1",
        BABELSERVE_port="1",
    )

    starts = [fault.split(":")[0] for fault in found]
    assert sorted(starts) == sorted(
        [
            "--port",
            "--lanes",
            "--no-such-flag",
            "--bundle",
            "--variant",
            "--tls-cert",
            "--tls-cert and --tls-key",
            "BABELSERVE_MAX_ROWS",
            "BABELSERVE_DRAIN_DELAY",
            "BABELSERVE_REFLECTION",
            "BABELSERVE_PRT",
            "BABELSERVE_port",
        ]
    )


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["--port", "70000"], "--port: must be a whole number from 0 to 65535, not '70000'"),
        (["--beam-size", "17"], "--beam-size: must be a whole number from 1 to 16, not '17'"),
        (["--max-rows", "1.5"], "--max-rows: must be a whole number from 1 to 4096, not '1.5'"),
        (["--device", "tpu"], "--device: must be one of auto, cpu, cuda, not 'tpu'"),
        (["--device", "cpu", "--variant", "cuda-fp16"], "--variant: cuda-fp16 does not fit --device cpu"),
        (["--beam-size", "16", "--max-rows", "8"], "--beam-size: 16 does not fit into --max-rows 8"),
        (["--port", "9464"], "--metrics-port: 9464 is also --port"),
        (["--host", ""], "--host: must not be empty"),
        (["--port"], "argument --port: expected one argument"),
        (["extra"], "extra: unknown argument"),
    ],
)
def test_a_fault_is_told_clearly(bundle: str, arguments: list[str], fault: str) -> None:
    assert faults("--bundle", bundle, *arguments) == [fault]


def test_free_ports_do_not_clash(bundle: str) -> None:
    ports = ["--port=0", "--health-port=0", "--admin-port=0", "--metrics-port=0"]

    assert read("--bundle", bundle, *ports).settings.port == 0


def test_checking_a_bundle_needs_no_other(tmp_path: Path) -> None:
    command = read("--check", str(tmp_path), "--bundle", str(tmp_path / "none"))

    assert command.check == tmp_path


def test_the_help_names_every_setting_with_its_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        read("--help")

    text = " ".join(capsys.readouterr().out.split())
    assert caught.value.code == 0
    for field in dataclasses.fields(Settings):
        assert f"--{field.name.replace('_', '-')}" in text
    assert "(default: 50051)" in text
    assert "BABELSERVE_" in text


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read("--version")

    assert capsys.readouterr().out == "babelserve 1.2.3\n"


def test_equal_sentences_are_not_shared_unless_asked_for(bundle: str) -> None:
    default = read("--bundle", bundle).settings
    asked = read("--bundle", bundle, "--single-flight", BABELSERVE_CACHE_SENTENCES="500").settings

    assert (default.cache_sentences, default.single_flight) == (0, False)
    assert (asked.cache_sentences, asked.single_flight) == (500, True)
