"""How the page looks, to people and to screen readers."""

from typing import Any

from tests.web.page.visit import ARABIC, Visit, translate


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
    translate(page, f"{ARABIC}\n\nThe keeper lights the lamp.")
    page.hover("#output [data-index='0']")
    assert visit.violations(page) == []
    visit.take_picture(page, "page-right-to-left")
    page.focus("#output [tabindex='0']")
    page.keyboard.press("ArrowLeft")
    assert page.locator("#output [data-at].lit").first.text_content() == ARABIC.split()[0]


def nothing_is_wrong_where_the_page_itself_is_turned(visit: Visit) -> None:
    page = visit.open()
    page.evaluate("() => { document.documentElement.dir = 'rtl'; }")
    show_lights(page)
    assert visit.violations(page) == []
    source, target = page.locator("#source-pane").bounding_box(), page.locator("#target-pane").bounding_box()
    assert target["x"] + target["width"] <= source["x"] + 1
    assert page.evaluate("() => document.documentElement.scrollWidth") == 1280


def the_page_of_the_api_shows_it(visit: Visit) -> None:
    page = visit.open(f"{visit.sites.open}/docs", fragment="")

    page.locator("h2", has_text="POST /v1/translate").nth(1).wait_for()
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
