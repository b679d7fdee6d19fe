"""A glossary that a server has loaded, exchanged while callers use it."""

import hashlib
import threading
from pathlib import Path
from typing import Any

import pytest

from babelserve import Client, GlossaryInfo, InvalidRequest, ModelNotFound, UsedGlossary
from babelserve.v1 import translation_pb2 as pb
from tests.acceptance.calls import open_stub
from tests.acceptance.server_process import running_server
from tests.e2e.conftest import wait_for_metric

TIMEOUT = 200.0
CONTENTS = {target: f"en\tde\nstation\t{target}\n" for target in ("Bahnhof", "Haltepunkt")}
VERSIONS = {target: hashlib.sha256(content.encode()).hexdigest()[:12] for target, content in CONTENTS.items()}
FAULTY = "en\tde\nstation\n"


def test_each_answer_is_of_one_version_whatever_becomes_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "travel.tsv"
    file.write_text(CONTENTS["Bahnhof"])
    asked = pb.TranslateRequest(
        contents=["Where is the station?"],
        source_language_code="en",
        target_language_code="de",
        glossary=pb.Glossary(names=["travel"]),
    )
    seen: list[tuple[str, str, int]] = []
    is_over = threading.Event()
    with running_server(["--glossaries", str(tmp_path), "--lanes", "1"]) as server, open_stub(server.address) as stub:

        def call() -> None:
            while not is_over.wait(0.01):
                answer = stub.Translate(asked, timeout=TIMEOUT)
                (term,) = answer.translations[0].terms
                seen.append((term.target, answer.glossaries[0].version, term.status))

        callers = [threading.Thread(target=call) for _ in range(2)]
        for caller in callers:
            caller.start()
        for count, target in enumerate(("Haltepunkt", "Bahnhof", "Haltepunkt"), 2):
            file.write_text(CONTENTS[target])
            wait_for_metric(server, count, "glossary_loads_total", outcome="ok")
        file.write_text(FAULTY)
        wait_for_metric(server, 1, "glossary_loads_total", outcome="refused")
        seen_before = len(seen)
        after = stub.Translate(asked, timeout=TIMEOUT)
        is_over.set()
        for caller in callers:
            caller.join()
        listed = stub.ListGlossaries(pb.ListGlossariesRequest(), timeout=TIMEOUT).glossaries
        server.stop()
        log = server.stderr()

    assert set(seen) == {(target, version, pb.TERM_STATUS_APPLIED) for target, version in VERSIONS.items()}
    assert seen_before > 0
    assert after.glossaries[0].version == VERSIONS["Haltepunkt"], "the faulty file changes nothing"
    assert [(each.name, each.version, each.num_terms) for each in listed] == [("travel", VERSIONS["Haltepunkt"], 1)]
    assert "line 2: must have at least 2 columns, source and target, not 1" in log


def test_the_client_lists_glossaries_and_translates_with_them(tmp_path: Path) -> None:
    (tmp_path / "travel.tsv").write_text(CONTENTS["Haltepunkt"])
    (tmp_path / "back.tsv").write_text("de\ten\nBahnhof\tstop\n")
    version = VERSIONS["Haltepunkt"]
    used = (UsedGlossary(name="travel", version=version),)
    asked: Any = {"target": "de", "source": "en", "glossaries": ["travel"]}
    with running_server(["--glossaries", str(tmp_path), "--lanes", "1"]) as server, Client(server.address) as client:
        _, travel = client.list_glossaries()
        result = client.translate(["Where is the station?"], **asked)
        own = client.translate(["Where is the station?"], glossary={"station": "Halt"}, **asked)
        (streamed,) = client.translate_stream(["Where is the station?"], **asked)
        (of_bulk,) = client.translate_bulk(["Where is the station?"], **asked)
        with pytest.raises(ModelNotFound, match=r"glossary.names\[1\]: .*none.* is no glossary here"):
            client.translate(["a"], target="de", source="en", glossaries=["travel", "none"])
        with pytest.raises(InvalidRequest, match=r"glossary.names: must be from en into de, not back"):
            client.translate(["a"], target="de", source="en", glossaries=["back"])

    assert travel == GlossaryInfo(name="travel", source="en", target="de", num_terms=1, version=version)
    assert "Haltepunkt" in result.translations[0].text
    assert [term.target for term in own.translations[0].terms] == ["Halt"]
    assert streamed.sentence is not None
    assert "Haltepunkt" in streamed.sentence.text
    assert "Haltepunkt" in of_bulk.translation.text
    assert (result.glossaries, own.glossaries, streamed.glossaries, of_bulk.glossaries) == (used,) * 4
