"""`python -m docs.generate` (`make reference`): writes the reference into `docs/reference`, as the source is now."""

from docs.generate.pages import PAGES, ROOT


def main() -> None:
    """Writes every page."""
    for path, make in PAGES.items():
        (ROOT / path).parent.mkdir(exist_ok=True)
        (ROOT / path).write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
