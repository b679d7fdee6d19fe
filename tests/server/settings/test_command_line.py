import dataclasses
import errno
import os
from pathlib import Path

import pytest

from server.errors import SettingsError
from server.settings.command_line import CommandLine, read_settings
from server.settings.settings import BUILTIN, BUILTIN_BUNDLE, Settings

CORS = "--http-cors: must have * or origins such as https://a.example"


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
        "--keys",
        str(tmp_path / "keys.toml"),
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
            "--keys",
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
        (["--beam-size", "17"], "--beam-size: must be a whole number from 0 to 16, not '17'"),
        (["--max-rows", "1.5"], "--max-rows: must be a whole number from 1 to 4096, not '1.5'"),
        (["--device", "tpu"], "--device: must be one of auto, cpu, cuda, not 'tpu'"),
        (["--device", "cpu", "--variant", "cuda-fp16"], "--variant: cuda-fp16 does not fit --device cpu"),
        (["--beam-size", "16", "--max-rows", "8"], "--beam-size: 16 does not fit into --max-rows 8"),
        (["--port", "9464"], "--metrics-port: 9464 is also --port"),
        (["--host", ""], "--host: must not be empty"),
        (["--host", "x" * 64], f"--host: must be an address or the name of a host, not '{'x' * 64}'"),
        (["--bundle", "x" * 300], f"--bundle: {'x' * 300} cannot be read: File name too long"),
        (["--bundle", __file__], f"--bundle: {__file__} is no directory"),
        (["--keys", "/"], "--keys: / is no file"),
        (["--glossaries", "/dev/null"], "--glossaries: /dev/null is no directory"),
        (["--house-glossaries", "it"], "--house-glossaries: needs --glossaries"),
        (["--http-port=0", "--http-cors=https://a.example/"], f"{CORS}, not 'https://a.example/'"),
        (["--http-port=0", "--http-cors=https://a.example,b.example"], f"{CORS}, not 'b.example'"),
        (["--tls-client-ca", __file__], "--tls-client-ca: needs --tls-cert"),
        (["--port"], "argument --port: expected one argument"),
        (["--port=--"], "--port: -- is no value"),
        (["--check=--"], "--check: -- is no value"),
        (["extra"], "extra: unknown argument"),
    ],
)
def test_a_fault_is_told_clearly(bundle: str, arguments: list[str], fault: str) -> None:
    assert faults("--bundle", bundle, *arguments) == [fault]


def test_origins_may_have_blanks_between_them(bundle: str) -> None:
    settings = read("--bundle", bundle, "--http-port=0", "--http-cors=https://a.example, http://localhost:80").settings

    assert settings.http_origins == ["https://a.example", "http://localhost:80"]


def test_free_ports_do_not_clash(bundle: str) -> None:
    ports = ["--port=0", "--health-port=0", "--admin-port=0", "--metrics-port=0"]

    assert read("--bundle", bundle, *ports).settings.port == 0


def test_checking_a_bundle_needs_no_other(tmp_path: Path) -> None:
    command = read("--check", str(tmp_path), "--bundle", str(tmp_path / "none"))

    assert command.check == tmp_path


def test_models_that_come_with_the_server_are_called_by_the_name_of_their_folder() -> None:
    assert read("--models", "builtin").settings.models == BUILTIN
    assert read("--bundle", "builtin/en-de").settings.bundle == BUILTIN_BUNDLE
    assert read("--check", "builtin/en-de").check == BUILTIN_BUNDLE
    for path in ("./builtin", "builtins"):  # somebody's own
        with pytest.raises(SettingsError) as caught:
            read("--models", path)
        assert caught.value.faults == [f"--models: {Path(path)} cannot be read: No such file or directory"]


def test_a_key_is_made_where_it_is_asked_for(bundle: str) -> None:
    assert read("--bundle", bundle, "--make-key").make_key
    assert not read("--bundle", bundle).make_key


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


def test_a_folder_that_is_closed_to_us_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = tmp_path / "closed"

    def stat(self: Path, **_: object) -> None:  # as for others than root
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    monkeypatch.setattr(Path, "stat", stat)

    with pytest.raises(SettingsError) as caught:
        read_settings(["--bundle", str(closed), "--keys", str(closed), "--models", str(closed)], {}, "1")

    assert caught.value.faults == [
        f"--keys: {closed} cannot be read: Permission denied",
        f"--models: {closed} cannot be read: Permission denied",
        "--bundle: --models takes its place",
        f"--bundle: {closed} cannot be read: Permission denied",
    ]


def test_a_folder_of_models_takes_the_bundles_place(tmp_path: Path) -> None:
    settings = read("--models", str(tmp_path), "--default", "b,a").settings

    assert (settings.models, settings.preferred_models) == (tmp_path, ["b", "a"])
    assert read("--models", str(tmp_path), "--list").list_models
    assert Settings().preferred_models == []


def test_what_goes_with_a_folder_of_models_only_is_a_fault_without_one(tmp_path: Path, bundle: str) -> None:
    assert faults("--bundle", bundle, "--default", "a") == ["--default: needs --models"]
    assert faults("--models", str(tmp_path), "--bundle", bundle) == ["--bundle: --models takes its place"]
    assert faults("--bundle", bundle, "--load=on-demand") == ["--load: on-demand needs --models"]
    assert faults("--models", str(tmp_path), "--models-memory=9") == ["--models-memory: needs --load on-demand"]
    none = str(tmp_path / "none")
    assert faults("--models", none) == [f"--models: {none} cannot be read: No such file or directory"]


def test_keys_of_operators_need_models_that_are_loaded_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "admins.toml").write_text("")
    flags = ("--admin-keys", str(tmp_path / "admins.toml"))

    assert read("--models", str(tmp_path), *flags).settings.admin_keys == tmp_path / "admins.toml"
    assert faults(*flags) == ["--admin-keys: needs --models, loaded at-start"]
    assert faults("--models", str(tmp_path), "--load=on-demand", *flags) == [
        "--admin-keys: needs --models, loaded at-start"
    ]
    missing = str(tmp_path / "none")
    assert faults("--models", str(tmp_path), "--admin-keys", missing) == [
        f"--admin-keys: {missing} cannot be read: No such file or directory"
    ]


def test_pivots_are_languages(bundle: str) -> None:
    settings = read("--bundle", bundle, "--pivot", "en,zh-Hant").settings

    assert settings.pivots == ["en", "zh-Hant"]
    assert Settings().pivots == []
    assert faults("--bundle", bundle, "--pivot", "en,a b") == ["--pivot: 'a b' is no BCP-47 code of a language"]
