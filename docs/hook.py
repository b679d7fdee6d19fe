"""Brings the protos to MkDocs, beside the page that renders them (`hooks` in mkdocs.yml)."""

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs.generate.api import FILES, PROTOS


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the files."""
    for name in FILES:
        files.append(File.generated(config, f"reference/{name}", abs_src_path=str(PROTOS / name)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Has links that lead to the protos in the repository lead to them in the site."""
    return markdown.replace("](../../protos/babelserve/v1/", "](")
