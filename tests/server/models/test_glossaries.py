"""The glossaries that a server has loaded, and requests that name them."""

import asyncio
from pathlib import Path

import pytest

from server.errors import GlossaryNotFound, NotServing
from server.models.glossaries import Glossaries
from server.models.glossary_folder import GlossaryFolder
from server.telemetry.metrics import Metrics
from server.text.glossary import Glossary
from tests.server.models.administered import until


def glossary(*names: str) -> Glossary:
    return Glossary([], names=names)


async def test_files_are_served_and_followed(tmp_path: Path, metrics: Metrics) -> None:
    (tmp_path / "b.tsv").write_text("en\tde\ndog\tHund\n")
    glossaries = Glossaries(tmp_path, metrics.glossaries)
    with pytest.raises(NotServing):
        glossaries.resolve(glossary("b"), "")

    async with glossaries.followed(poll_seconds=0.01):
        before = glossaries.resolve(glossary("b"), "")
        (tmp_path / "a.tsv").write_text("en\tde\ncat\tKatze\n")
        (tmp_path / "b.tsv").write_text("en\tde\ndog\tKöter\n")
        await until(lambda: [each.name for each in glossaries.served] == ["a", "b"])
        await until(lambda: glossaries.served[1].version != before.named[0].version)

        after = glossaries.resolve(glossary("b", "a", "b"), "")

    assert [each.name for each in after.named] == ["b", "a"]
    assert [found.term.targets for found in before.find("A dog, a cat")] == [("Hund",)], "a request keeps what it has"
    assert [found.term.targets for found in after.find("A dog, a cat")] == [("Köter",), ("Katze",)]


async def test_houses_are_taken_by_their_order_and_followed(
    tmp_path: Path, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.tsv").write_text("en\tde\ndog\tHund\n")
    glossaries = Glossaries(tmp_path, metrics.glossaries, ["c", "later", "a"])
    with pytest.raises(NotServing):
        _ = glossaries.houses

    async with glossaries.followed(poll_seconds=0.01):
        assert [each.name for each in glossaries.houses] == ["c", "a"]
        (tmp_path / "later.tsv").write_text("en\tde\ncat\tKatze\n")
        await until(lambda: [each.name for each in glossaries.houses] == ["c", "later", "a"])

    (told,) = [each for each in caplog.records if "hold in every request" in each.message]
    assert vars(told)["facts"] == {"glossary": "later"}
    assert Glossaries().houses == []


@pytest.mark.parametrize(
    ("name", "shown"), [("it", "it is no glossary here"), ("x" * 65, "65 characters"), ("\n", "1 characters")]
)
def test_an_unknown_name_is_refused(name: str, shown: str) -> None:
    with pytest.raises(GlossaryNotFound, match=rf"^glossary.names\[0\]: {shown}"):
        Glossaries().resolve(glossary(name), "")


def test_a_glossary_without_names_needs_no_folder() -> None:
    own = glossary()

    assert Glossaries().resolve(own, "") is own
    assert Glossaries().served == []


async def test_a_fault_of_ours_is_logged_and_the_next_change_taken(
    tmp_path: Path, metrics: Metrics, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    glossaries = Glossaries(tmp_path, metrics.glossaries)
    with monkeypatch.context() as patch:
        patch.delattr(GlossaryFolder, "take_changes")
        async with glossaries.followed(poll_seconds=0.01):
            await until(lambda: "could not be followed" in caplog.text)
            patch.undo()
            (tmp_path / "a.tsv").write_text("en\tde\ncat\tKatze\n")
            await until(lambda: len(glossaries.served) == 1)


async def test_the_event_loop_goes_on_while_glossaries_are_loaded(tmp_path: Path, metrics: Metrics) -> None:
    (tmp_path / "a.tsv").write_text("en\tde\n" + "".join(f"w{index}\tx\n" for index in range(50_000)))
    glossaries = Glossaries(tmp_path, metrics.glossaries)
    entering = asyncio.create_task(glossaries.followed().__aenter__())
    num_turns = 0
    while not entering.done():
        await asyncio.sleep(0)
        num_turns += 1

    assert num_turns > 10
    assert glossaries.served[0].table.num_terms == 50_000
