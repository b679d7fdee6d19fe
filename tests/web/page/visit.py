"""A visit of the page in Chromium; `checks.py` names what is checked."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

TEXT = "A dog runs in the park. The old man sits on a red bench."
TRANSLATION = "Ein Hund läuft im Park. Der alte Mann sitzt auf einer roten Bank."
ARABIC = "المنارة القديمة تقف على جرف فوق البحر."
WAIT_MS = 30_000


@dataclass(frozen=True, slots=True)
class Sites:
    """What the checks run against.

    Attributes:
        open: address of a server that lets everybody in.
        closed: of one that asks for a key, which is "key", and has a small quota.
        chromium: the program.
        files: the folder with a file of each kind, `dog.txt` and so on.
        pictures: the folder that takes pictures of the page; none are taken if it is empty.
    """

    open: str
    closed: str
    chromium: str
    files: str
    pictures: str


@dataclass
class Visit:
    """A visit of one check.

    Attributes:
        browser: of Playwright.
        sites: addresses.
        axe: the script of axe-core.
        complaints: what the browser has complained about.
        requests: the requests that the page has sent, of Playwright, with the time of each.
    """

    browser: Any
    sites: Sites
    axe: str
    complaints: list[str] = field(default_factory=list)
    requests: list[tuple[float, Any]] = field(default_factory=list)
    contexts: list[Any] = field(default_factory=list)

    def open(self, address: str = "", *, fragment: str = "#en/de", **options: Any) -> Any:
        """Opens the page, or another address, and returns it when its languages are there."""
        context = self.browser.new_context(**{"viewport": {"width": 1280, "height": 800}} | options)
        self.contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT_MS)
        page.on("request", lambda request: self.requests.append((time.monotonic(), request)))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("console", self._listen)
        page.goto((address or f"{self.sites.open}/") + fragment)
        if not address:
            page.wait_for_selector("#source-language option[value=en]", state="attached")
        return page

    def close(self) -> None:
        """Closes all pages."""
        for context in self.contexts:
            context.close()

    def asked(self, path: str) -> list[Any]:
        """Returns the requests of a path, in their order."""
        return [request for _, request in self.requests if request.url.endswith(path)]

    def violations(self, page: Any) -> list[str]:
        """Returns what axe-core finds wrong."""
        page.evaluate(self.axe)
        found = page.evaluate("() => axe.run()")["violations"]
        return [f"{each['id']}: {node['html']} {node['failureSummary']}" for each in found for node in each["nodes"]]

    def take_picture(self, page: Any, name: str) -> None:
        """Takes a picture for the documentation, if pictures are wanted."""
        if self.sites.pictures:
            page.screenshot(path=f"{self.sites.pictures}/{name}.png")

    def _listen(self, message: Any) -> None:
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.complaints.append(f"{message.type}: {message.text}")


def translate(page: Any, text: str) -> str:
    """Types a text and returns its translation."""
    page.fill("#source", text)
    return finished(page)


def finished(page: Any) -> str:
    """Waits for the end of a translation and returns it."""
    wait_for(page, "#status", "^Translated")
    return str(page.text_content("#output"))


def wait_for(page: Any, selector: str, pattern: str) -> None:
    """Waits until an element has a text."""
    page.locator(selector).filter(has_text=re.compile(pattern)).first.wait_for(state="attached")


def wait_until(page: Any, is_so: Callable[[], bool]) -> None:
    """Waits until something is so, and lets the browser tell what has happened meanwhile."""
    deadline = time.monotonic() + WAIT_MS / 1000
    while not is_so():
        assert time.monotonic() < deadline, "it is not so in time"
        page.wait_for_timeout(50)


def lit_words(page: Any, side: str) -> list[str]:
    return list(page.locator(f"{side} [data-at].lit").all_text_contents())
