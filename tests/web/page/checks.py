"""What the page must do, each a function that drives Chromium; `browser.py` runs them where there is Playwright."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

TEXT = "A dog runs in the park. The old man sits on a red bench."
TRANSLATION = "Ein Hund läuft im Park. Der alte Mann sitzt auf einer roten Bank."
ARABIC = "المنارة القديمة تقف على جرف فوق البحر."
HOSTILE = "<img src=x onerror=document.title='broken'> <b>A dog</b> runs. &lt;script&gt;"
WAIT_MS = 15_000


@dataclass(frozen=True, slots=True)
class Sites:
    """What the checks run against.

    Attributes:
        open: address of a server that lets everybody in.
        closed: of one that asks for a key, which is "key", and has a small quota.
        chromium: the program.
        pictures: the folder that takes pictures of the page; none are taken if it is empty.
    """

    open: str
    closed: str
    chromium: str
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
        page.goto((address or self.sites.open) + "/" + fragment)
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


def lit_words(page: Any, side: str) -> list[str]:
    return list(page.locator(f"{side} [data-at].lit").all_text_contents())


def texts_are_translated_and_painted_at_once(visit: Visit) -> None:
    page = visit.open()

    assert translate(page, TEXT) == TRANSLATION
    assert page.get_attribute("#output", "aria-busy") == "false"
    assert page.get_attribute("#output", "lang") == "de"
    page.wait_for_timeout(50)
    (milliseconds,) = page.evaluate("() => performance.getEntriesByName('first sentence').map((each) => each.duration)")
    assert milliseconds <= 150, milliseconds


def pointing_lights_both_sides(visit: Visit) -> None:
    page = visit.open()
    translate(page, f"😀 {TEXT}")

    page.hover("#output [data-index='0']")
    page.locator("#output [data-at]", has_text="Hund").hover()
    assert (lit_words(page, "#backdrop"), lit_words(page, "#output")) == (["dog"], ["Hund"])
    bench = page.evaluate(
        """() => {
        const range = document.createRange();
        const node = document.querySelector("#backdrop [data-index='1']").firstChild;
        range.setStart(node, node.data.indexOf("bench") + 1);
        range.setEnd(node, node.data.indexOf("bench") + 2);
        const { x, y } = range.getBoundingClientRect();
        return [x + 1, y + 5];
        }"""
    )
    page.mouse.move(*bench)
    page.mouse.move(bench[0] + 1, bench[1])
    assert (lit_words(page, "#backdrop"), lit_words(page, "#output")) == (["bench"], ["Bank"])
    page.mouse.move(5, 5)
    assert page.locator(".lit").count() == 0


def the_text_behind_the_box_lies_exactly_below_it(visit: Visit) -> None:
    page = visit.open(viewport={"width": 700, "height": 800})
    translate(page, "A dog runs in the park, and a word that is long: " + "x" * 90 + ".\n\n\tTwo  blanks.\n" * 20)

    box, behind = page.locator("#source").bounding_box(), page.locator("#backdrop").bounding_box()
    assert box == behind
    assert page.evaluate("() => document.getElementById('source').scrollHeight") <= box["height"]
    assert page.text_content("#backdrop") == page.input_value("#source") + "\n"


def the_caret_lights_its_word(visit: Visit) -> None:
    page = visit.open()
    translate(page, TEXT)

    page.evaluate("() => document.getElementById('source').setSelectionRange(3, 3)")
    page.keyboard.press("ArrowRight")

    assert (lit_words(page, "#backdrop"), lit_words(page, "#output")) == (["dog"], ["Hund"])


def a_keyboard_is_enough_for_other_translations(visit: Visit) -> None:
    page = visit.open()
    before = translate(page, TEXT)

    page.focus("#clear")
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.textContent") == "Ein Hund läuft im Park."
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert lit_words(page, "#backdrop") == ["dog"]
    page.keyboard.press("ArrowDown")
    assert page.evaluate("() => document.activeElement.dataset.index") == "1"
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    wait_for(page, "#alternatives button", "Park")
    page.keyboard.press("Escape")
    assert page.locator("#alternatives").is_hidden()
    assert page.evaluate("() => document.activeElement.dataset.index") == "0"
    page.keyboard.press("Enter")
    wait_for(page, "#alternatives button", "Park")
    page.keyboard.press("ArrowDown")
    chosen = page.evaluate("() => document.activeElement.textContent")
    assert visit.violations(page) == []
    page.keyboard.press("Enter")

    assert page.text_content("#output").startswith(f"{chosen} Der alte Mann")
    assert page.text_content("#output") != before
    assert page.evaluate("() => document.activeElement.dataset.index") == "0"


def a_click_on_a_word_shows_translations_without_it_first(visit: Visit) -> None:
    page = visit.open()
    translate(page, "A dog runs.")
    page.hover("#output [data-index='0']")

    page.locator("#output [data-at]", has_text="läuft").click()

    wait_for(page, "#alternatives button", "Hund")
    first = page.locator("#alternatives button").first
    assert "läuft" not in first.text_content()
    assert first.locator("strong").count() == 1


def a_key_is_no_request(visit: Visit) -> None:
    page = visit.open()
    page.focus("#source")

    page.keyboard.type("A dog runs.", delay=20)
    finished(page)

    assert len(visit.asked("/v1/translate/stream")) == 1


def an_edit_ends_the_translation_before(visit: Visit) -> None:
    page = visit.open()
    page.fill("#source", f"{TEXT} " * 400)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#output [role=button]")

    assert translate(page, "A dog runs.") == "Ein Hund läuft."
    first, second = visit.asked("/v1/translate/stream")
    assert first.failure == "net::ERR_ABORTED"
    assert second.failure is None


def escape_stops(visit: Visit) -> None:
    page = visit.open()
    page.fill("#source", f"{TEXT} " * 400)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#output [role=button]")

    page.keyboard.press("Escape")

    assert page.text_content("#status") == "Stopped."
    assert page.get_attribute("#output", "aria-busy") == "false"
    assert visit.asked("/v1/translate/stream")[0].failure == "net::ERR_ABORTED"


def a_long_text_is_whole(visit: Visit) -> None:
    page = visit.open()
    text = "\n A dog runs in the park.\n\n  The old man sits 😀 on a red bench.\tA man sits.\n" * 60

    shown = translate(page, text)

    expected = page.request.post(
        f"{visit.sites.open}/v1/translate", data={"contents": [text], "targetLanguageCode": "de"}
    )
    assert shown == expected.json()["translations"][0]["text"]
    assert page.locator("#backdrop [data-index]").count() == 180


def the_address_has_the_languages_alone(visit: Visit) -> None:
    page = visit.open(fragment="#de/en")

    assert translate(page, "Ein Hund läuft.") == "A dog runs."
    assert page.url == f"{visit.sites.open}/#de/en"
    assert {request.url.partition("#")[0].partition("?")[2] for _, request in visit.requests} == {""}
    assert all(request.url.startswith(visit.sites.open) for _, request in visit.requests)
    assert page.context.cookies() == []
    assert page.evaluate("() => [localStorage.length, sessionStorage.length]") == [0, 0]


def wrong_languages_in_the_address_do_no_harm(visit: Visit) -> None:
    page = visit.open(fragment="#<img src=x>/%zz")

    assert page.input_value("#source-language") in ("de", "en")
    assert translate(page, "Berlin.")


def swapping_translates_back(visit: Visit) -> None:
    page = visit.open()
    translate(page, "A dog runs.")

    page.click("#swap")

    wait_for(page, "#output", "^A dog runs.$")
    assert page.input_value("#source") == "Ein Hund läuft."
    assert page.url.endswith("#de/en")


def copying_clearing_and_saving(visit: Visit) -> None:
    page = visit.open(permissions=["clipboard-read", "clipboard-write"])
    translation = translate(page, TEXT)

    page.click("#copy")
    wait_for(page, "#status", "^Copied.$")
    assert page.evaluate("() => navigator.clipboard.readText()") == translation
    with page.expect_download() as saved:
        page.click("#save")
    assert saved.value.suggested_filename == "translation.de.txt"
    assert saved.value.path().read_text(encoding="utf-8") == translation
    page.click("#clear")
    assert (page.input_value("#source"), page.text_content("#output")) == ("", "")
    assert page.is_disabled("#copy")


def terms_are_used_and_wrong_lines_are_named(visit: Visit) -> None:
    page = visit.open()
    page.click("summary")
    page.fill("#glossary", "bench = Sitzbank\n\ndog=Köter")

    assert "Köter" in translate(page, TEXT)
    assert "Sitzbank" in page.text_content("#output")
    page.fill("#glossary", "bench = Sitzbank\ndog")
    wait_for(page, "#glossary-error", "^Line 2 needs a word on both sides")
    assert visit.violations(page) == []


def files_are_opened_and_dropped(visit: Visit) -> None:
    page = visit.open()
    html = b"<p>A <b>dog</b> runs.</p>\r\n"
    page.set_input_files("#file", {"name": "page.html", "mimeType": "text/html", "buffer": html})

    assert finished(page) == "<p>Ein <b>Hund</b> läuft.</p>\n"
    with page.expect_download() as saved:
        page.click("#save")
    assert saved.value.suggested_filename == "page.de.html"
    page.set_input_files("#file", {"name": "a.docx", "mimeType": "", "buffer": b"PK\x03\x04\x00\xff"})
    wait_for(page, "#failure", r"^a\.docx is not text in UTF-8")
    page.set_input_files("#file", {"name": "long.txt", "mimeType": "", "buffer": b"a" * (3 << 20)})
    wait_for(page, "#failure", r"^long\.txt has 3\.0 MiB\. A text may have 2\.$")
    page.evaluate(
        """() => {
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(new File(["A dog runs."], "dog.txt"));
        const target = document.getElementById("source");
        target.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
        }"""
    )
    wait_for(page, "#output", "^Ein Hund läuft.$")
    assert page.input_value("#format") == "text/plain"


def what_should_be_checked_is_said(visit: Visit) -> None:
    page = visit.open()
    translate(page, f"{ARABIC} A dog runs.")

    assert page.locator("#notes li").all_text_contents() == [
        "One sentence stayed as written, because the model cannot read it."
    ]
    assert page.get_attribute("#output [data-index='0']", "class") == "sentence copied"
    said = page.evaluate(
        """async () => (await import("./page/words.mjs")).notesOf([
        { finishReason: "FINISH_REASON_LENGTH" }, undefined, { finishReason: "FINISH_REASON_REPETITION" },
        { kept: [{ text: "42", placement: "PLACEMENT_MISSING" }], terms: [{ source: "dog", status: "TERM_STATUS_MISSED" }] },
        { finishReason: "FINISH_REASON_COPIED", sourceText: "12:30" },
        ])"""
    )
    assert [words.split()[0:3] for words in said] == [
        ["One", "sentence", "reached"],
        ["One", "sentence", "began"],
        ["Check", "these", "numbers:"],
        ["These", "terms", "were"],
    ]


def refusals_and_broken_connections_are_said_in_words(visit: Visit) -> None:
    page = visit.open()
    page.click("summary")
    page.fill("#glossary", f"dog = {'x' * 201}")
    page.fill("#source", "A dog runs.")
    wait_for(page, "#failure", "^The server refused this: .*200 characters")
    page.fill("#glossary", "")
    page.context.set_offline(True)
    page.fill("#source", "A dog.")

    wait_for(page, "#failure", "^The server cannot be reached")
    page.context.set_offline(False)
    page.keyboard.press("Control+Enter")
    assert finished(page) == "Ein Hund."
    assert page.text_content("#failure") == ""


def a_key_is_asked_for_and_waits_are_as_told(visit: Visit) -> None:
    answers = []
    page = visit.open(visit.sites.closed)
    page.on("response", lambda response: answers.append((time.monotonic(), response)))
    page.wait_for_selector("#key-form")
    assert visit.violations(page) == []
    page.fill("#key", "wrong")
    page.keyboard.press("Enter")
    wait_for(page, "#failure", "^The server does not know this key.$")
    page.fill("#key", "key")
    page.keyboard.press("Enter")
    page.wait_for_selector("#key-form", state="hidden")
    assert page.evaluate("() => [localStorage.length, Object.values(sessionStorage)]") == [0, ["key"]]

    for number in range(5):
        translate(page, f"A dog runs through {number + 3} old towns near the sea.")
        if any(response.status == 429 for _, response in answers):
            break
    refusals = [(at, response) for at, response in answers if response.status == 429]
    assert refusals
    for at, response in refusals:
        seconds = int(response.headers["retry-after"])
        later = min(sent for sent, request in visit.requests if sent > at and request.url == response.url)
        assert later - at >= seconds - 0.05, (later - at, seconds)


def an_edit_does_not_cut_a_wait_short(visit: Visit) -> None:
    page = visit.open()
    page.route(
        "**/v1/translate/stream", lambda route: route.fulfill(status=429, headers={"retry-after": "60"}, body="{}")
    )
    page.fill("#source", "A dog runs.")
    wait_for(page, "#countdown", r"^Next try in \d+ s\.$")
    assert page.text_content("#status") == "The server is busy. The page waits for its turn."
    sent = len(visit.asked("/v1/translate/stream"))

    page.fill("#source", "A dog sits.")
    page.keyboard.press("Control+Enter")
    wait_for(page, "#countdown", r"^Next try in \d+ s\.$")
    page.keyboard.press("Escape")

    assert len(visit.asked("/v1/translate/stream")) == sent
    assert page.text_content("#countdown") == ""


def hostile_texts_stay_texts(visit: Visit) -> None:
    page = visit.open()

    assert "<img" in translate(page, HOSTILE)
    assert page.locator("#output img, #backdrop img, #output b").count() == 0
    assert page.title() == "Translate · babelserve"


def hostile_answers_stay_texts(visit: Visit) -> None:
    page = visit.open()
    data = (
        '{"leading":"H","sentenceCount":1,"sentence":{"sourceText":"H","text":"H","separator":"H","sourceEnd":9999,'
        '"finishReason":"FINISH_REASON_COPIED","kept":[{"text":"H","placement":"PLACEMENT_MISSING"}],'
        '"links":[{"targetEnd":99999,"sourceEnd":99999}]},"model":"H","modelVersion":"H","detectedLanguageCode":"H"}'
    ).replace("H", HOSTILE)
    stream = f"data: {data}\n\nevent: end\ndata: {{}}\n\n"
    page.route("**/v1/translate/stream", lambda route: route.fulfill(content_type="text/event-stream", body=stream))
    page.fill("#source", "A dog.")
    wait_for(page, "#status", "^Translated by <img")
    page.hover("#output [data-index='0']")
    assert page.locator("main img, #output b, main script").count() == 0
    page.unroute("**/v1/translate/stream")
    failure = '{"error":{"code":400,"message":"H"}}'.replace("H", HOSTILE)
    page.route("**/v1/translate/stream", lambda route: route.fulfill(status=400, body=failure))
    page.fill("#source", "A man.")
    wait_for(page, "#failure", "^The server refused this: <img")
    assert page.locator("main img").count() == 0
    assert page.title() == "Translate · babelserve"


def scripts_of_elsewhere_and_markup_are_refused_by_the_browser(visit: Visit) -> None:
    page = visit.open()

    refused = page.evaluate(
        """() => { try { document.body.innerHTML = "<p>"; return ""; } catch (error) { return error.name; } }"""
    )

    assert refused == "TypeError"
    visit.complaints.clear()  # the browser says so


def nothing_is_wrong_by_day(visit: Visit) -> None:
    page = visit.open()
    assert visit.violations(page) == []
    show_lights(page)
    assert visit.violations(page) == []
    visit.take_picture(page, "page-light")


def nothing_is_wrong_by_night(visit: Visit) -> None:
    page = visit.open(color_scheme="dark")
    show_lights(page)
    assert visit.violations(page) == []
    visit.take_picture(page, "page-dark")


def nothing_is_wrong_on_a_phone(visit: Visit) -> None:
    page = visit.open(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    show_lights(page)
    assert visit.violations(page) == []
    upper, lower = page.locator("#source-pane").bounding_box(), page.locator("#target-pane").bounding_box()
    assert lower["y"] >= upper["y"] + upper["height"]
    assert page.evaluate("() => document.documentElement.scrollWidth") == 390
    visit.take_picture(page, "page-phone")


def nothing_is_wrong_from_right_to_left(visit: Visit) -> None:
    page = visit.open()
    page.evaluate("() => { document.documentElement.dir = 'rtl'; }")
    translate(page, f"{ARABIC}\n\nThe keeper lights the lamp.")
    page.hover("#output [data-index='0']")
    assert visit.violations(page) == []
    source, target = page.locator("#source-pane").bounding_box(), page.locator("#target-pane").bounding_box()
    assert target["x"] + target["width"] <= source["x"] + 1
    assert page.evaluate("() => document.documentElement.scrollWidth") == 1280
    assert page.evaluate("() => getComputedStyle(document.getElementById('output')).direction") == "rtl"
    page.focus("#output [tabindex='0']")
    page.keyboard.press("ArrowLeft")
    assert page.locator("#output [data-at].lit").first.text_content() == ARABIC.split()[0]
    visit.take_picture(page, "page-right-to-left")


def the_page_of_the_api_shows_it(visit: Visit) -> None:
    page = visit.open(f"{visit.sites.open}/docs", fragment="")

    assert page.locator("h2", has_text="POST /v1/translate").count() == 2
    page.locator("a", has_text="TranslateRequest").first.click()
    assert page.url.endswith("#TranslateRequest")
    assert visit.violations(page) == []


def show_lights(page: Any) -> None:
    """Translates a few sentences, and points at a word."""
    translate(
        page,
        "The old lighthouse stands on a cliff above the sea. Every evening, the keeper climbs the stairs and lights the"
        " lamp.\n\nShips can see the light from 20 miles away, even in a storm.",
    )
    page.hover("#output [data-index='1']")
    page.locator("#output [data-at]", has_text="Abend").hover()


CHECKS: list[Callable[[Visit], None]] = [
    texts_are_translated_and_painted_at_once,
    pointing_lights_both_sides,
    the_text_behind_the_box_lies_exactly_below_it,
    the_caret_lights_its_word,
    a_keyboard_is_enough_for_other_translations,
    a_click_on_a_word_shows_translations_without_it_first,
    a_key_is_no_request,
    an_edit_ends_the_translation_before,
    escape_stops,
    a_long_text_is_whole,
    the_address_has_the_languages_alone,
    wrong_languages_in_the_address_do_no_harm,
    swapping_translates_back,
    copying_clearing_and_saving,
    terms_are_used_and_wrong_lines_are_named,
    files_are_opened_and_dropped,
    what_should_be_checked_is_said,
    refusals_and_broken_connections_are_said_in_words,
    a_key_is_asked_for_and_waits_are_as_told,
    an_edit_does_not_cut_a_wait_short,
    hostile_texts_stay_texts,
    hostile_answers_stay_texts,
    scripts_of_elsewhere_and_markup_are_refused_by_the_browser,
    nothing_is_wrong_by_day,
    nothing_is_wrong_by_night,
    nothing_is_wrong_on_a_phone,
    nothing_is_wrong_from_right_to_left,
    the_page_of_the_api_shows_it,
]
