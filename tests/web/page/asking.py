"""When the page asks the server, and what it says when that fails."""

from tests.web.page.visit import TEXT, Visit, finished, translate, wait_for, wait_until

HOSTILE = "<img src=x onerror=document.title='broken'> <b>A dog</b> runs. &lt;script&gt;"
LOCALES = ("en-GB", "de-AT", "fr")  # no model translates French: then it is the first language of all


def a_key_is_no_request(visit: Visit) -> None:
    page = visit.open()
    page.focus("#source")
    page.clock.install(time=0)
    page.clock.pause_at(1000)

    page.keyboard.type("A dog runs.")
    page.clock.resume()
    finished(page)

    assert len(visit.asked("/v1/translate/stream")) == 1


def an_edit_ends_the_translation_before(visit: Visit) -> None:
    page = visit.open()
    page.fill("#source", f"{TEXT} " * 400)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#output [role=button]")

    assert translate(page, "A dog runs.") == "Ein Hund läuft."
    first, _ = visit.asked("/v1/translate/stream")
    wait_until(page, lambda: first.failure == "net::ERR_ABORTED")


def escape_stops(visit: Visit) -> None:
    page = visit.open()
    page.fill("#source", f"{TEXT} " * 400)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#output [role=button]")

    page.keyboard.press("Escape")

    assert page.text_content("#status") == "Stopped."
    assert page.get_attribute("#output", "aria-busy") == "false"
    (request,) = visit.asked("/v1/translate/stream")
    wait_until(page, lambda: request.failure == "net::ERR_ABORTED")


def the_address_has_the_languages_alone(visit: Visit) -> None:
    page = visit.open(fragment="#de/en")

    assert translate(page, "Ein Hund läuft.") == "A dog is running."
    assert page.url == f"{visit.sites.open}/#de/en"
    assert {request.url.partition("#")[0].partition("?")[2] for _, request in visit.requests} == {""}
    assert all(request.url.startswith(visit.sites.open) for _, request in visit.requests)
    assert page.context.cookies() == []
    assert page.evaluate("() => [localStorage.length, sessionStorage.length]") == [0, 0]


def wrong_languages_in_the_address_do_no_harm(visit: Visit) -> None:
    page = visit.open(fragment="#<img src=x>/%zz")

    assert page.input_value("#source-language") in ("de", "en")
    assert translate(page, "Berlin.")


def the_first_language_is_one_that_the_reader_prefers(visit: Visit) -> None:
    chosen = {locale: visit.open(fragment="", locale=locale).input_value("#source-language") for locale in LOCALES}

    assert chosen == {"en-GB": "en", "de-AT": "de", "fr": "de"}


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
    page.on("response", lambda response: answers.append(response))  # noqa: PLW0108 # Playwright takes no built-in function
    page.wait_for_selector("#key-form")
    assert visit.violations(page) == []
    page.fill("#key", "wrong")
    page.keyboard.press("Enter")
    wait_for(page, "#failure", "^The server does not know this key.$")
    page.fill("#key", "key")
    page.keyboard.press("Enter")
    page.wait_for_selector("#key-form", state="hidden")
    assert page.evaluate("() => [localStorage.length, Object.values(sessionStorage)]") == [0, ["key"]]

    for number in range(30):
        translate(page, f"A dog runs through {number + 3} old towns near the sea.")
        if any(response.status == 429 for response in answers):
            break
    refusals = [response for response in answers if response.status == 429]
    assert refusals
    sent = [each.timing["startTime"] for each in visit.asked("/v1/translate/stream")]
    for response in refusals:  # the browser's own times, because news of them come late
        timing = response.request.timing
        waited = min(at for at in sent if at > timing["startTime"]) - timing["startTime"] - timing["responseStart"]
        assert waited >= 1000 * int(response.headers["retry-after"]) - 5, waited


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
