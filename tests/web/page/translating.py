"""What the page does with texts."""

from tests.web.page.visit import ARABIC, TEXT, TRANSLATION, Visit, finished, lit_words, translate, wait_for


def texts_are_translated_and_painted_at_once(visit: Visit) -> None:
    page = visit.open()

    assert translate(page, TEXT) == TRANSLATION
    assert page.get_attribute("#output", "aria-busy") == "false"
    assert page.get_attribute("#output", "lang") == "de"
    measured = "performance.getEntriesByName('first sentence')"
    for number in range(2, 6):  # the least of several, because the machine may do other things
        page.wait_for_function(f"() => {measured}.length === {number - 1}")
        translate(page, f"{TEXT} A man sits on {number} benches.")
    milliseconds = page.evaluate(f"() => Math.min(...{measured}.map((each) => each.duration))")
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


def a_click_on_a_word_shows_how_the_sentence_may_go_on_instead(visit: Visit) -> None:
    page = visit.open()
    translate(page, "The old lighthouse stands on a cliff.")
    page.hover("#output [data-index='0']")

    page.locator("#output [data-at]", has_text="Lichthaus").click()

    wait_for(page, "#alternatives button", "Leuchtturm")
    shown = page.locator("#alternatives button").all_text_contents()
    assert all(text.startswith("Das alte ") and "Lichthaus" not in text for text in shown)
    assert len(shown) >= 3


def a_long_text_is_whole(visit: Visit) -> None:
    page = visit.open()
    text = "\n A dog runs in the park.\n\n  The old man sits 😀 on a red bench.\tA man sits.\n" * 60

    shown = translate(page, text)

    expected = page.request.post(
        f"{visit.sites.open}/v1/translate", data={"contents": [text], "targetLanguageCode": "de"}
    )
    assert shown == expected.json()["translations"][0]["text"]
    assert page.locator("#backdrop [data-index]").count() == 180


def pieces_of_a_stream_are_all_written(visit: Visit) -> None:
    page = visit.open()

    written, pauses = page.evaluate(
        """async () => {
        const { Pace } = await import("./page/pace.mjs");
        const written = [], pauses = [], due = new Map();
        const { setTimeout, clearTimeout } = window;
        window.setTimeout = (act, milliseconds) => {
            due.set(pauses.push(milliseconds), act);
            return pauses.length;
        };
        window.clearTimeout = (timer) => due.delete(timer);
        const elapse = () => {  // runs at most 100 timers; a timer may set others, which run too
            for (let left = 100; due.size && left; left--) {
                const [timer, act] = due.entries().next().value;
                due.delete(timer);
                act();
            }
        };
        const pace = new Pace((items) => {
            written.push([...items]);
            for (const end = performance.now() + 21; performance.now() < end; );
        });
        pace.add([1]);
        pace.add([2]);
        pace.add([3, 4]);
        elapse();
        pace.add([5]);
        pace.add([6]);
        pace.finish();
        pace.add([7]);
        pace.add([8]);
        pace.stop();
        elapse();
        Object.assign(window, { setTimeout, clearTimeout });
        return [written, pauses];
        }"""
    )

    assert min(pauses) >= 4 * 20
    assert written == [[1], [2, 3, 4], [5], [6], [7]]


def languages_are_offered_as_the_models_have_them(visit: Visit) -> None:
    page = visit.open()

    offered = page.evaluate(
        """async () => {
        const { Languages } = await import("./page/languages.mjs");
        const languages = new Languages({
            models: [
                { name: "a", languagePairs: [{ sourceLanguageCode: "fr", targetLanguageCode: "en" }] },
                { name: "b", sourceLanguageCodes: ["en", "es"], targetLanguageCodes: ["de", "es"] },
            ],
            pivotLanguageCodes: ["en"],
        });
        const models = (source, target) => languages.models(source, target)?.map((model) => model.name) ?? [];
        return [
            languages.first, languages.sources, languages.targets("fr"), languages.targets("es"), languages.canDetect,
            models("fr", "en"), models("fr", "de"), models("es", "de"), models("auto", "es"),
        ];
        }"""
    )

    assert offered == [
        ["en", "de"], ["en", "fr", "es"], ["en", "de", "es"], ["de"], True, ["a"], [], ["b"], [],
    ]  # fmt: skip


def a_detected_language_is_said(visit: Visit) -> None:
    page = visit.open()
    stream = (
        'data: {"sentenceIndex":1,"sentenceCount":2,"sentence":{"sourceText":"B.","text":"b."}}\n\n'
        'data: {"sentenceCount":2,"leading":" ","sentence":{"sourceText":"A.","text":"a.","separator":" "},'
        '"detectedLanguageCode":"fr"}\n\nevent: end\ndata: {}\n\n'
    )
    page.route("**/v1/translate/stream", lambda route: route.fulfill(content_type="text/event-stream", body=stream))

    assert translate(page, " A. B.") == " a. b."
    assert page.text_content("#status") == "Translated. The text seems to be French."
    assert page.get_attribute("#source", "lang") == "fr"


def swapping_translates_back(visit: Visit) -> None:
    page = visit.open()
    translate(page, "A dog runs.")

    page.click("#swap")

    wait_for(page, "#output", "^A dog is running.$")
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


def texts_of_files_are_opened_and_dropped(visit: Visit) -> None:
    page = visit.open()
    html = b"<p>A <b>dog</b> runs.</p>\r\n"
    page.set_input_files("#file", {"name": "page.html", "mimeType": "text/html", "buffer": html})

    assert finished(page) == "<p>Ein <b>Hund</b> läuft.</p>\n"
    with page.expect_download() as saved:
        page.click("#save")
    assert saved.value.suggested_filename == "page.de.html"
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
        { kept: [{ text: "42", placement: "PLACEMENT_MISSING" }] },
        { terms: [{ source: "dog", status: "TERM_STATUS_MISSED" }] },
        { finishReason: "FINISH_REASON_COPIED", sourceText: "12:30" },
        ])"""
    )
    assert [words.split()[0:3] for words in said] == [
        ["One", "sentence", "reached"],
        ["One", "sentence", "began"],
        ["Check", "these", "numbers:"],
        ["These", "terms", "were"],
    ]
