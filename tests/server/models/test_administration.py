import contextlib
import gc
import json
import math
import os
import shutil
import weakref
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from server.bundle.bundle import Bundle
from server.bundle.languages import LanguagePair
from server.bundle.manifest import MANIFEST_FILE, SEAL_FILE
from server.errors import InvalidRequest, ModelNotFound, NotServing, PreconditionFailed
from server.models.administration import VersionState
from server.models.folder import FoundBundle
from server.models.loading import needed_bytes
from server.models.model import Model
from server.telemetry.metrics import Metrics
from tests.server.models.administered import Add, Served, facts, until

LOADED, AVAILABLE = VersionState.LOADED, VersionState.AVAILABLE


@pytest.fixture
def add(tiny_bundle: Bundle, tmp_path: Path) -> Add:
    return Add(tmp_path / "models", tiny_bundle.directory)


@pytest_asyncio.fixture
async def served(add: Add, metrics: Metrics) -> AsyncIterator[Served]:
    for path in ("m/1", "m/2", "n"):
        add(path)
    served = Served(add.models, metrics)
    await served.start()
    yield served
    await served.stop()


async def test_a_new_version_is_loaded_gets_its_share_takes_over_and_the_old_one_leaves(
    served: Served, add: Add
) -> None:
    administration = served.administration
    assert await served.status() == {"2": (LOADED, 100), "1": (AVAILABLE, 0)}
    pinned = await administration.set_traffic("m", {"2": 100})
    add("m/3")
    loaded = await administration.load("m", "3")
    before = await served.answering()
    shared = await administration.set_traffic("m", {"2": 75, "3": 25})
    both = await served.answering()
    await administration.set_traffic("m", {"3": 100})
    after = await served.answering()
    left = await administration.unload("m", "2")

    assert not pinned.follows_folder
    assert list(facts(loaded).items()) == [("3", (LOADED, 0)), ("2", (LOADED, 100)), ("1", (AVAILABLE, 0))]
    assert facts(shared)["3"] == (LOADED, 25)
    assert [before, both, after] == [{"2"}, {"2", "3"}, {"3"}]
    assert facts(left) == {"3": (LOADED, 100), "2": (AVAILABLE, 0), "1": (AVAILABLE, 0)}
    await served.until_loaded(2)


async def test_a_model_that_is_pinned_takes_no_new_version_until_it_follows_its_folder_again(
    served: Served, add: Add
) -> None:
    await served.administration.load("m", "1")
    add("m/9")
    add("n2")
    await served.until_loaded(4)  # what came to the folder later has been taken
    pinned = await served.status()
    follows = await served.administration.load("m")
    add("m/10")
    await until(lambda: served.all_go_to("10"))

    assert pinned == {"9": (AVAILABLE, 0), "2": (LOADED, 100), "1": (LOADED, 0)}
    assert (follows.follows_folder, facts(follows)) == (
        True,
        {"9": (LOADED, 100), "2": (AVAILABLE, 0), "1": (AVAILABLE, 0)},
    )


async def test_rollback_goes_to_the_version_before_and_then_to_the_one_before_that(served: Served, add: Add) -> None:
    add("m/3")
    await until(lambda: served.all_go_to("3"))
    once = await served.administration.rollback("m")
    twice = await served.administration.rollback("m")
    with pytest.raises(PreconditionFailed, match="model: m has had no version before 1, and its folder has no lower"):
        await served.administration.rollback("m")

    assert facts(once) == {"3": (AVAILABLE, 0), "2": (LOADED, 100), "1": (AVAILABLE, 0)}
    assert facts(twice)["1"] == (LOADED, 100)  # of which the server knew by the folder only
    assert not twice.follows_folder
    await served.until_loaded(2)


async def test_rollback_takes_a_versions_share_and_goes_to_a_version_that_is_named(served: Served) -> None:
    await served.administration.load("m", "1")
    await served.administration.set_traffic("m", {"2": 50, "1": 50})
    ended = await served.administration.rollback("m")
    named = await served.administration.rollback("m", "1")

    assert facts(ended) == {"2": (LOADED, 100), "1": (AVAILABLE, 0)}
    assert facts(named) == {"2": (AVAILABLE, 0), "1": (LOADED, 100)}
    assert await served.answering() == {"1"}


async def test_a_model_is_unloaded_and_comes_back(served: Served) -> None:
    gone = await served.administration.unload("m")
    with pytest.raises(ModelNotFound):
        await served.catalogue.borrow(["m"], "", math.inf, contextlib.ExitStack())
    with pytest.raises(PreconditionFailed, match="model: n is the only one that is served"):
        await served.administration.unload("n")
    back = await served.administration.load("m", "1")

    assert (gone.follows_folder, facts(gone)) == (False, {"2": (AVAILABLE, 0), "1": (AVAILABLE, 0)})
    assert facts(back) == {"2": (AVAILABLE, 0), "1": (LOADED, 100)}
    assert facts(await served.administration.load("m"))["2"] == (LOADED, 100)


async def test_what_does_not_fit_is_refused_and_changes_nothing(served: Served) -> None:
    administration, before = served.administration, await served.status()
    cases = [
        (administration.load("x"), ModelNotFound, "model: x is not in the folder; m, n are"),
        (administration.load("../m", "1"), ModelNotFound, "model: a value of 4 characters is not in the folder"),
        (administration.load("m", "7"), ModelNotFound, "version: 7 of m is not in the folder; there: 2, 1"),
        (administration.load("m", "../n"), ModelNotFound, "version: a value of 4 characters of m is not in the folder"),
        (administration.unload("x"), ModelNotFound, "model: x is not loaded; loaded are m, n"),
        (administration.unload("m", "1"), ModelNotFound, "version: 1 is not loaded; loaded are 2"),
        (administration.unload("m", "2"), PreconditionFailed, "version: 2 of m has 100 percent of the requests; SetT"),
        (administration.rollback("x"), ModelNotFound, "model: x is not loaded"),
        (administration.rollback("m", "7"), ModelNotFound, "version: 7 of m is not in the folder"),
        (administration.set_traffic("x", {"1": 100}), ModelNotFound, "model: x is not loaded"),
        (administration.set_traffic("m", {}), InvalidRequest, "traffic: must be percents .* add up to 100, not 0"),
        (administration.set_traffic("m", {"2": 101, "1": -1}), InvalidRequest, "traffic: must be percents from 0 to"),
        (administration.set_traffic("m", {"2": 90}), InvalidRequest, "traffic: must be percents .* not 90"),
        (administration.set_traffic("m", {"2": 90, "1": 10}), PreconditionFailed, "traffic: 1 is not loaded; .* are 2"),
    ]
    for change, error, message in cases:
        with pytest.raises(error, match=message):
            await change

    assert await served.status() == before
    assert all(each.follows_folder for each in await administration.statuses())


async def test_versions_share_no_requests_if_they_translate_other_languages(served: Served, add: Add) -> None:
    administration = served.administration
    await administration.set_traffic("m", {"2": 100})
    add("m/3")
    await administration.load("m", "3")
    models, _ = served.catalogue.loaded("m")
    (third,) = [each for each in models if each.manifest.version == "3"]
    pair = LanguagePair(source="xx", target="yy")
    object.__setattr__(third, "manifest", replace(third.manifest, language_pairs=(pair,)))

    with pytest.raises(PreconditionFailed, match="traffic: 3 translates other languages than 2"):
        await administration.set_traffic("m", {"2": 50, "3": 50})
    await administration.set_traffic("m", {"3": 100, "2": 0})
    assert await served.answering() == {"3"}


async def test_a_faulty_version_is_refused_with_its_faults_which_are_told_from_then_on(
    served: Served, add: Add
) -> None:
    await served.administration.set_traffic("m", {"2": 100})
    os.truncate(add("m/3") / "cpu-fp32" / "weights.bin", 10)
    for change in (served.administration.load("m", "3"), served.administration.rollback("m", "3")):
        with pytest.raises(PreconditionFailed, match=r"weights\.bin"):
            await change
    shutil.rmtree(served.models / "m" / "2")
    shutil.rmtree(served.models / "m" / "1")
    with pytest.raises(PreconditionFailed, match=r"weights\.bin"):
        await served.administration.load("m")

    (status,) = [each for each in await served.administration.statuses() if each.name == "m"]
    faults = {each.version: each.fault for each in status.versions}
    assert "weights.bin" in faults["3"]
    assert (faults["2"], status.follows_folder) == ("", False)
    assert await served.answering() == {"2"}


async def test_a_version_whose_folder_has_other_content_by_now_is_not_said_to_be_loaded(
    served: Served, add: Add
) -> None:
    await served.administration.load("m", "2")
    again = await served.administration.load("m", "2")
    exchanged = served.models / "m" / "2"
    manifest = json.loads((exchanged / MANIFEST_FILE).read_bytes()) | {"origin": {"licence": "another one"}}
    (exchanged / SEAL_FILE).unlink()
    (exchanged / MANIFEST_FILE).write_text(json.dumps(manifest))
    with pytest.raises(PreconditionFailed, match="version: 2 of m is loaded with what its folder held before"):
        await served.administration.load("m", "2")
    shutil.rmtree(exchanged)
    gone = await served.administration.load("m", "2")

    assert facts(again)["2"] == facts(gone)["2"] == (LOADED, 100)


async def test_memory_is_reserved_for_versions_beside_others_and_given_back(served: Served) -> None:
    model = served.catalogue.models[0]
    most = needed_bytes(model.manifest, model.variant) + served.catalogue.loaded("m")[0][0].growth_bytes
    await served.administration.load("m", "1")
    await served.administration.unload("m", "1")
    served.memory.most = most - 1
    with pytest.raises(PreconditionFailed, match=r"version: 1 of m may take \d+ MiB of memory, which requests need"):
        await served.administration.load("m", "1")

    assert [served.memory.reserved[0], served.memory.reserved[-1]] == [most, 0]
    assert await served.status() == {"2": (LOADED, 100), "1": (AVAILABLE, 0)}


async def test_a_version_that_is_refused_for_lack_of_memory_leaves_it(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, engines = served.loader.load_version, []

    def remember(bundle: FoundBundle) -> Model:
        model = load(bundle)
        engines.append(weakref.ref(model.supervisor))
        return model

    monkeypatch.setattr(served.loader, "load_version", remember)
    served.memory.most = 0
    gc.disable()  # the server's comes by seldom
    try:
        with pytest.raises(PreconditionFailed, match="of memory, which requests need"):
            await served.administration.load("m", "1")
        assert [engine() for engine in engines] == [None]
    finally:
        gc.enable()


async def test_traffic_stays_as_it_is_if_the_folder_cannot_be_read(served: Served) -> None:
    await served.administration.load("m", "1")
    served.models.rename(served.models.with_name("gone"))
    with pytest.raises(PreconditionFailed, match="cannot be read"):
        await served.administration.set_traffic("m", {"1": 100})
    served.models.with_name("gone").rename(served.models)

    assert await served.status() == {"2": (LOADED, 100), "1": (LOADED, 0)}


async def test_a_model_that_comes_back_has_no_history(served: Served, add: Add) -> None:
    await served.administration.rollback("m")
    shutil.rmtree(served.models / "m")
    await until(lambda: served.catalogue.names == ["n"])
    add("m/6")
    add("m/7")
    await until(lambda: served.all_go_to("7"))

    assert facts(await served.administration.rollback("m")) == {"7": (AVAILABLE, 0), "6": (LOADED, 100)}


async def test_an_operator_can_load_a_model_when_none_is_left(served: Served) -> None:
    await served.administration.unload("n")
    shutil.rmtree(served.models / "m")
    await until(lambda: not served.catalogue.names)
    with pytest.raises(NotServing, match="no model is served"):
        served.catalogue.models  # noqa: B018

    assert await served.status("n") == {"": (AVAILABLE, 0)}
    assert facts(await served.administration.load("n")) == {"0": (LOADED, 100)}


async def test_a_model_whose_folder_goes_is_served_no_more_and_follows_the_next(served: Served, add: Add) -> None:
    await served.administration.unload("m")
    shutil.rmtree(served.models / "m")
    await until(lambda: served.loader.follows("m"))
    add("m/1")
    await until(lambda: served.all_go_to("1"))

    assert await served.answering() == {"1"}


async def test_a_bundle_that_is_no_versions_folder_has_no_version_before(served: Served) -> None:
    with pytest.raises(PreconditionFailed, match="n has had no version before"):
        await served.administration.rollback("n")


async def test_a_bundle_that_is_no_versions_folder_is_listed_by_its_manifests(served: Served) -> None:
    assert await served.status("n") == {"0": (LOADED, 100)}
    await served.administration.unload("n")
    assert await served.status("n") == {"": (AVAILABLE, 0)}


async def test_before_a_model_is_served_nothing_can_be_changed(tmp_path: Path, metrics: Metrics, add: Add) -> None:
    add("m/1")
    administration = Served(tmp_path / "models", metrics).administration
    for change in (administration.statuses(), administration.load("m"), administration.rollback("m")):
        with pytest.raises(NotServing, match="the server is loading its models"):
            await change
