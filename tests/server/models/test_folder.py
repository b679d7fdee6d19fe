import errno
import os
import subprocess
from pathlib import Path

import pytest

from server.errors import SettingsError
from server.models.folder import find_models, is_model_name, version_key


def bundle(directory: Path, text: str = "{}") -> Path:
    """A folder that looks like a bundle."""
    (directory / "cpu-fp32").mkdir(parents=True)
    (directory / "manifest.json").write_text(text)
    (directory / "cpu-fp32" / "weights.bin").write_bytes(b"0")
    return directory


def test_folders_are_bundles_or_hold_versions_the_highest_first(tmp_path: Path) -> None:
    bundle(tmp_path / "en-de")
    for version in ("1.9", "1.10", "2", "10"):
        bundle(tmp_path / "de-en" / version)
    (tmp_path / "empty").mkdir()
    (tmp_path / "README").write_text("no folder")

    found, faults = find_models(tmp_path)

    assert {name: [each.version for each in versions] for name, versions in found.items()} == {
        "de-en": ["10", "2", "1.10", "1.9"],
        "empty": [],
        "en-de": [""],
    }
    assert found["de-en"][0].directory == tmp_path / "de-en" / "10"
    assert faults == []


def test_what_no_model_can_be_called_is_told_and_what_tools_leave_is_not(tmp_path: Path) -> None:
    for name in ("..data", "lost+found", "liveness", "a b", "x" * 65):
        (tmp_path / name).mkdir()

    found, faults = find_models(tmp_path)

    assert found == {}
    assert len(faults) == 3
    assert all("no name of a model" in fault for fault in faults)


def test_what_cannot_be_read_costs_no_other_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle(tmp_path / "m" / "1")
    (tmp_path / "m" / "loop").symlink_to("loop")
    (tmp_path / "loop").symlink_to("loop")
    bundle(tmp_path / "closed")
    exists = Path.exists

    def refuse(path: Path) -> bool:  # to a root nothing is closed
        if path == tmp_path / "closed" / "manifest.json":
            raise PermissionError(errno.EACCES, "Permission denied")
        return exists(path)

    monkeypatch.setattr(Path, "exists", refuse)
    found, faults = find_models(tmp_path)

    assert {name: [each.version for each in versions] for name, versions in found.items()} == {"closed": [], "m": ["1"]}
    assert faults == [f"{tmp_path / 'closed'} cannot be read: Permission denied"]


def test_digits_that_are_no_decimal_ones_are_no_numbers(tmp_path: Path) -> None:
    for version in ("²", "1", "٣", "2"):
        bundle(tmp_path / "m" / version)

    assert [each.version for each in find_models(tmp_path)[0]["m"]] == ["2", "1"]
    assert sorted(["²", "10", "٣", "9"], key=version_key)[-2:] == ["9", "10"]
    assert sorted(["1.0", "1", "01"], key=version_key) == sorted(["01", "1", "1.0"], key=version_key)


@pytest.mark.parametrize(
    "change",
    [
        lambda path: (path / "cpu-fp32" / "weights.bin").write_bytes(b"11"),
        lambda path: (path / "cpu-fp32" / "weights.bin").unlink(),
        lambda path: (path / "more").write_bytes(b""),
        lambda path: os.utime(path / "manifest.json", ns=(0, 0)),
    ],
)
def test_whatever_changes_in_a_bundle_changes_its_stamp(tmp_path: Path, change: object) -> None:
    bundle(tmp_path / "m" / "1")
    before, same = (find_models(tmp_path)[0]["m"] for _ in range(2))
    assert callable(change)
    change(tmp_path / "m" / "1")

    assert before == same != find_models(tmp_path)[0]["m"]


def test_a_link_that_leads_elsewhere_is_another_bundle(tmp_path: Path) -> None:
    models = tmp_path / "models"
    (models / "m").mkdir(parents=True)
    for name in ("a", "b"):
        bundle(tmp_path / name)
    (models / "m" / "1").symlink_to(tmp_path / "a")
    before = find_models(models)[0]["m"]
    (models / "m" / "new").symlink_to(tmp_path / "b")
    (models / "m" / "new").rename(models / "m" / "1")

    assert find_models(models)[0]["m"] != before


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"--models: .*none cannot be read: No such file"):
        find_models(tmp_path / "none")


def test_a_file_that_has_gone_is_a_stamp_too(tmp_path: Path) -> None:
    bundle(tmp_path / "m")
    (tmp_path / "m" / "nowhere").symlink_to(tmp_path / "none")

    (found,) = find_models(tmp_path)[0]["m"]

    assert any(size == 0 and path.endswith("nowhere") for path, _, size, _, _ in found.stamp)


def test_numbers_in_versions_count_by_their_value() -> None:
    versions = ["1.10", "1.9", "2024-05-02", "2024-05-01", "v2", "v10"]

    assert sorted(versions, key=version_key) == ["v2", "v10", "1.9", "1.10", "2024-05-01", "2024-05-02"]


def test_names_are_plain() -> None:
    assert is_model_name("opus-mt_en-de.2")
    assert not any(map(is_model_name, ("", ".hidden", "a/b", "readiness", "ä")))


def test_a_link_to_a_large_tree_is_not_walked(tmp_path: Path) -> None:
    for number in range(700):
        bundle(tmp_path / "tree" / f"{number}")
    (tmp_path / "models" / "a").mkdir(parents=True)
    (tmp_path / "models" / "a" / "1").symlink_to(tmp_path / "tree")
    (tmp_path / "models" / "a" / "2").symlink_to("/")

    found, faults = find_models(tmp_path / "models")

    assert [len(each.stamp) <= 1000 for each in found["a"]] == [True, True]
    assert faults == []


def test_a_bundle_of_any_depth_and_width_is_looked_at_two_levels_deep(tmp_path: Path) -> None:
    good, deep = bundle(tmp_path / "good"), bundle(tmp_path / "deep")
    wide = bundle(tmp_path / "wide")
    here = os.open(deep, os.O_RDONLY)
    for _ in range(1500):  # deeper than a path can be long, and than Python may call itself
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    for number in range(1100):
        (wide / "w" / str(number)).mkdir(parents=True)

    try:
        found, faults = find_models(tmp_path)
    finally:
        subprocess.run(["rm", "-r", deep], check=True)  # Python's own would fail as the server did

    assert faults == []
    assert len(found["good"][0].stamp) == 2
    assert len(found["deep"][0].stamp) == 2
    assert len(found["wide"][0].stamp) <= 2
    (good / "cpu-fp32" / "weights.bin").write_bytes(b"01")
    assert find_models(tmp_path)[0]["good"] != found["good"]


def test_many_bad_folders_are_summed_up(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"a b {number:03}").mkdir()
    bundle(tmp_path / "z")

    found, faults = find_models(tmp_path)

    assert [*found] == ["z"]
    assert [fault.partition(":")[0] for fault in faults[:2]] == [str(tmp_path / "a b 000"), str(tmp_path / "a b 001")]
    assert len(faults) == 21
    assert faults[-1].endswith("280 folders more that are no models")


def test_of_many_versions_the_highest_are_looked_at(tmp_path: Path) -> None:
    for number in range(1100):
        (tmp_path / "m" / str(number)).mkdir(parents=True)

    versions = [each.version for each in find_models(tmp_path)[0]["m"]]

    assert versions == [str(number) for number in range(1099, 99, -1)]


def test_what_has_no_manifest_is_looked_at_one_level_deep_and_changes_with_what_comes(tmp_path: Path) -> None:
    version = bundle(tmp_path / "m" / "1")
    (version / "manifest.json").unlink()
    first = find_models(tmp_path)[0]
    assert len(first["m"][0].stamp) == 1

    (version / "cpu-fp32" / "encoder.onnx").write_bytes(b"")

    assert find_models(tmp_path)[0] != first
