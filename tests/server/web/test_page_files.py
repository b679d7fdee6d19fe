"""The page's files: what browsers get, and what may not be in it."""

import re
from pathlib import Path

import pytest

import server.web
from server.documents.documents import MAX_FILE_BYTES
from server.documents.formats import FORMATS
from tests.server.web.conftest import Site

FOLDER = Path(server.web.__file__).parent / "page"
FILES = sorted(path.name for path in FOLDER.iterdir())


@pytest.mark.parametrize(
    ("path", "kind", "begin"),
    [
        ("/", "text/html; charset=utf-8", b"<!doctype html>"),
        ("/docs", "text/html; charset=utf-8", b"<!doctype html>"),
        ("/openapi.yaml", "application/yaml", b"# Made by"),
        ("/page/app.mjs", "text/javascript; charset=utf-8", b"// The page"),
        ("/page/style.css", "text/css; charset=utf-8", b"/* One accent"),
        ("/page/icon.svg", "image/svg+xml", b"<svg"),
    ],
)
async def test_browsers_get_files_that_may_load_nothing_from_elsewhere(
    site: Site, path: str, kind: str, begin: bytes
) -> None:
    answer = await site.call("GET", path)

    assert (answer.status, answer.headers["content-type"]) == (200, kind)
    assert answer.body.startswith(begin)
    assert answer.headers["content-security-policy"].startswith("default-src 'self'; ")
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_a_file_that_a_browser_has_is_not_sent_again(site: Site) -> None:
    first = await site.call("GET", "/page/app.mjs")

    again = await site.call("GET", "/page/app.mjs", if_none_match=first.headers["etag"])
    other = await site.call("GET", "/page/api.mjs", if_none_match=first.headers["etag"])

    assert (again.status, again.body) == (304, b"")
    assert other.status == 200


@pytest.mark.parametrize("path", ["/page/", "/page/none.mjs", "/page/..%2fapp.py", "/page/../app.py", "/page"])
async def test_nothing_else_is_served(site: Site, path: str) -> None:
    assert (await site.call("GET", path)).status == 404


async def test_a_page_is_only_read(site: Site) -> None:
    assert (await site.call("POST", "/", {})).status == 405


@pytest.mark.parametrize("name", FILES)
def test_a_file_refers_only_to_files_that_are_served(name: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")

    referred = re.findall(r'(?:href|src)="page/([^"]+)"', text) + re.findall(r'from "\./([^"]+)"', text)
    assert set(referred) <= set(FILES)
    elsewhere = r"""(?:href|src)="(?:https?:)?//|url\(|@import|["'`]https?://(?!www\.w3\.org/2000/svg)"""
    assert re.findall(elsewhere, text) == []


@pytest.mark.parametrize("name", FILES)
def test_no_text_can_become_markup(name: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")

    assert (
        re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function| on\w+=\"", text)
        == []
    )
    assert re.findall(r"<script(?! type=\"module\" src=)|<style| style=", text) == []


def test_the_page_knows_the_kinds_and_the_size_of_files_that_the_server_takes() -> None:
    page = (FOLDER / "index.html").read_text(encoding="utf-8")
    documents = (FOLDER / "documents.mjs").read_text(encoding="utf-8")

    (accepted,) = re.findall(r'accept="([^"]*)"', page)
    (mebibytes,) = re.findall(r"MAX_FILE_BYTES = (\d+) << 20", documents)
    assert accepted.split(",") == [f".{kind}" for kind in FORMATS]
    assert int(mebibytes) << 20 == MAX_FILE_BYTES
    assert f"It may have {mebibytes}." in documents


def test_files_of_the_page_are_short() -> None:
    own = [name for name in FILES if name != "docs.html"]  # which is made of the protos

    lines = {name: (FOLDER / name).read_text(encoding="utf-8").splitlines() for name in own}
    assert {name: len(each) for name, each in lines.items() if len(each) > 300} == {}
    assert [(name, line) for name, each in lines.items() for line in each if len(line) > 120] == []
