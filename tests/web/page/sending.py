"""What the page does with files that it sends to the server."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

from tests.web.page.visit import Visit, finished, wait_for, wait_until

TEXTS = {"txt", "html", "htm", "md"}  # these kinds are shown in the box
# More than the server translates while a check looks.
MANY = [f"The old man sits on {number} red benches." for number in range(30_000)]


def files_of_all_kinds_come_back(visit: Visit) -> None:
    page = visit.open()
    kinds = {path.suffix[1:]: path for path in sorted(Path(visit.sites.files).iterdir())}
    assert {f".{kind}" for kind in kinds} == set(page.get_attribute("#file", "accept").split(","))

    for kind in sorted(TEXTS):
        page.set_input_files("#file", kinds[kind])
        assert "Ein Hund läuft." in finished(page), kind
        page.click("#clear")
    assert page.is_hidden("#documents")
    others = sorted(set(kinds) - TEXTS)
    page.set_input_files("#file", [kinds[kind] for kind in others])
    for kind in others:
        content = save(page, f"dog.{kind}", f"dog.de.{kind}")
        assert "Ein Hund läuft." in text_of(content), kind
        remove(page, f"dog.{kind}")
    assert page.is_hidden("#documents")


def files_that_are_dropped_together_are_all_sent(visit: Visit) -> None:
    page = visit.open()
    page.click("summary")
    page.fill("#glossary", "dog = Köter")

    drop(page, "[1, 2, 3, 4, 5].map((each) => new File([`A dog runs over ${each} fields.`], `${each}.txt`))")
    for number in range(1, 6):
        wait_for(page, row(f"{number}.txt"), r"Translated into German\.")
        content = save(page, f"{number}.txt", f"{number}.de.txt")
        assert "Köter" in content.decode()
        assert str(number) in content.decode()
    assert page.input_value("#source") == ""
    assert visit.violations(page) == []


def progress_is_shown_and_work_can_be_cancelled(visit: Visit) -> None:
    page = visit.open()
    address = send_many(visit, page)
    page.set_input_files("#file", Path(visit.sites.files) / "dog.docx")

    wait_for(page, row("many.json"), r"Translating into German: [1-9]\d* of 30000 texts, about \d+ (s|min) left\.")
    assert page.locator(f"{row('many.json')} progress").get_attribute("max") == "30000"
    assert int(page.locator(f"{row('many.json')} progress").get_attribute("value")) > 0
    wait_for(page, row("dog.docx"), r"Translated into German\.")
    assert visit.violations(page) == []
    visit.take_picture(page, "page-files")
    assert page.request.get(address).status == 200
    page.locator(row("many.json")).get_by_role("button", name="Cancel").click()

    assert page.locator(row("many.json")).count() == 0
    wait_until(page, lambda: page.request.get(address).status == 404)


def leaving_the_page_ends_its_work(visit: Visit) -> None:
    page = visit.open()
    address = send_many(visit, page)
    wait_for(page, row("many.json"), r"Translating into German: [1-9]\d* of 30000")

    with page.expect_event("dialog") as asked:
        page.once("dialog", lambda dialog: dialog.accept())
        page.click("nav a")

    assert asked.value.type == "beforeunload"
    wait_for(page, "h1", "^API$")
    wait_until(page, lambda: page.request.get(address).status == 404)


def files_that_are_refused_say_why_and_can_be_sent_again(visit: Visit) -> None:
    page = visit.open()
    page.set_input_files("#file", [buffer("a.docx", b"PK\x03\x04\x00\xff"), buffer("b.pdf", b"%PDF")])
    drop(page, '[new File([new Uint8Array(17 << 20)], "c.txt")]')

    wait_for(
        page, row("a.docx"), r"refused this: The file cannot be translated: it is no ZIP archive, or a damaged one"
    )
    wait_for(page, row("b.pdf"), r"refused this: The file must have a name that ends in one of txt, html")
    wait_for(page, row("c.txt"), r"The file has 17\.0 MiB\. It may have 16\.")
    assert page.locator("#documents [role=alert]").count() == 3
    assert visit.violations(page) == []
    page.context.set_offline(True)
    page.set_input_files("#file", Path(visit.sites.files) / "dog.docx")
    wait_for(page, row("dog.docx"), "The server cannot be reached")
    page.context.set_offline(False)
    page.locator(row("dog.docx")).get_by_role("button", name="Try again").click()
    wait_for(page, row("dog.docx"), r"Translated into German\.")
    assert page.evaluate("() => document.activeElement.textContent") == "Save"
    page.set_input_files("#file", buffer("b.pdf", b"%PDF\xff"))
    wait_for(page, "#failure", r"^b\.pdf is no text in UTF-8, and no file of these kinds: \.txt, \.html")


def a_file_that_the_server_has_lost_can_be_sent_again(visit: Visit) -> None:
    page = visit.open()
    address = send_many(visit, page)

    page.request.delete(address)

    wait_for(
        page, row("many.json"), "^.*The server has lost this file, perhaps because it was started anew. Try again."
    )
    page.locator(row("many.json")).get_by_role("button", name="Try again").click()
    wait_for(page, row("many.json"), r"Translating into German: [1-9]\d* of 30000")
    page.locator(row("many.json")).get_by_role("button", name="Cancel").click()


def a_connection_that_breaks_is_waited_for(visit: Visit) -> None:
    page = visit.open()
    send_many(visit, page)
    wait_for(page, row("many.json"), "Translating into German")

    page.context.set_offline(True)
    wait_for(page, row("many.json"), r"The server cannot be reached\. The page tries again\.")
    page.context.set_offline(False)

    wait_for(page, row("many.json"), r"Translating into German: [1-9]\d* of 30000")
    page.locator(row("many.json")).get_by_role("button", name="Cancel").click()
    page.set_input_files("#file", Path(visit.sites.files) / "dog.docx")
    wait_for(page, row("dog.docx"), r"Translated into German\.")


def a_file_that_fails_without_a_server_can_be_sent_again(visit: Visit) -> None:
    page = visit.open()
    failed = {"state": "ERROR", "error": {"code": 503, "message": "no server answers"}}
    page.route("**/v1/documents/*", lambda route: route.fulfill(json=failed))
    page.set_input_files("#file", Path(visit.sites.files) / "dog.docx")

    wait_for(page, row("dog.docx"), r"The server is starting or stopping\. Try again in a moment\.")
    page.unroute("**/v1/documents/*")
    page.locator(row("dog.docx")).get_by_role("button", name="Try again").click()
    wait_for(page, row("dog.docx"), r"Translated into German\.")


def files_are_sent_with_the_key(visit: Visit) -> None:
    page = visit.open(visit.sites.closed)
    page.wait_for_selector("#key-form")
    page.set_input_files("#file", Path(visit.sites.files) / "dog.docx")
    wait_for(page, row("dog.docx"), r"The server asks for a key\.")
    page.fill("#key", "key")
    page.keyboard.press("Enter")
    page.wait_for_selector("#key-form", state="hidden")

    page.locator(row("dog.docx")).get_by_role("button", name="Try again").click()

    assert "Ein Hund läuft." in text_of(save(page, "dog.docx", "dog.de.docx"))


def hostile_names_stay_texts(visit: Visit) -> None:
    page = visit.open()
    name = "<img src=x onerror=document.title='broken'>.docx"

    page.set_input_files("#file", buffer(name, b"no archive"))

    wait_for(page, "#documents li", "no ZIP archive")
    assert page.text_content("#documents bdi") == name
    assert page.locator("#documents img").count() == 0
    assert page.title() == "Translate · babelserve"


def send_many(visit: Visit, page: Any) -> str:
    """Sends a file of many texts, `many.json`, and returns the address of its document."""
    with page.expect_response("**/v1/documents") as answer:
        page.set_input_files("#file", buffer("many.json", json.dumps(MANY).encode()))
    return f"{visit.sites.open}/v1/documents/{answer.value.json()['id']}"


def buffer(name: str, data: bytes) -> dict[str, Any]:
    return {"name": name, "mimeType": "", "buffer": data}


def drop(page: Any, files: str) -> None:
    """Drops files, which JavaScript makes, on the page's heading."""
    page.evaluate(
        f"""() => {{
        const dataTransfer = new DataTransfer();
        for (const file of {files}) dataTransfer.items.add(file);
        document.querySelector("h1").dispatchEvent(
            new DragEvent("drop", {{ dataTransfer, bubbles: true, cancelable: true }})
        );
        }}"""
    )


def row(name: str) -> str:
    """Returns the selector of a file's row."""
    return f"#documents li:has(bdi:text-is('{name}'))"


def save(page: Any, name: str, saved_name: str) -> bytes:
    """Saves a translation when it is there, and returns it."""
    link = page.locator(row(name)).get_by_role("link", name="Save")
    with page.expect_download() as saved:
        link.click()
    assert saved.value.suggested_filename == saved_name
    return Path(saved.value.path()).read_bytes()


def remove(page: Any, name: str) -> None:
    page.locator(row(name)).get_by_role("button", name="Remove").click()


def text_of(content: bytes) -> str:
    """Returns what a file has, unpacked if it is an archive."""
    if not content.startswith(b"PK"):
        return content.decode()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return "\n".join(archive.read(name).decode(errors="replace") for name in archive.namelist())
