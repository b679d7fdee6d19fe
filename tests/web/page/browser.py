"""Runs all checks of `checks.py` in Chromium; run in its own environment.

It takes JSON as its only argument, the fields of `Sites`. It prints JSON: why each check failed, empty if it did not.
"""

import json
import sys
import traceback
from pathlib import Path

import axe_playwright_python
from playwright.sync_api import sync_playwright

from tests.web.page.checks import CHECKS
from tests.web.page.visit import Sites, Visit


def main() -> None:
    """Runs the checks."""
    sites = Sites(**json.loads(sys.argv[1]))
    axe = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    failures = {}
    with sync_playwright() as playwright:
        # Containers have no sandbox for it; and the pages are ours.
        browser = playwright.chromium.launch(executable_path=sites.chromium, args=["--no-sandbox"])
        for check in CHECKS:
            visit = Visit(browser, sites, axe)
            try:
                check(visit)
                failures[check.__name__] = "\n".join(visit.complaints)
            except Exception:  # noqa: BLE001 # told by the test of that name
                failures[check.__name__] = traceback.format_exc()
            finally:
                visit.close()
        browser.close()
    print(json.dumps(failures))


if __name__ == "__main__":
    main()
