"""Brings the reference to MkDocs when it collects its files (`hooks` in mkdocs.yml)."""

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from docs.generate.api import FILES, PROTOS
from docs.generate.pages import PAGES


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages, and the protos themselves beside the page that renders them."""
    for path, make in PAGES.items():
        files.append(File.generated(config, path, content=make()))
    for name in FILES:
        files.append(File.generated(config, f"reference/{name}", abs_src_path=str(PROTOS / name)))
    return files
