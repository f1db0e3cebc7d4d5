"""Hooks of mkdocs: files outside of docs/ become pages, and links to them point there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.utils import get_relative_url

ROOT = Path(__file__).parents[1]
PAGES = ("CONTRIBUTING.md", "CHANGELOG.md", "results/*.md")
SHIM = "https://unpkg.com/iframe-worker/shim"
PICTURES = re.compile(r"!\[[^]]*\]\(([^):]+\.png)\)")
LINKED = re.compile(r"\]\(\.\./([^)]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of PAGES, their pictures, and other files that a page links to by `../`."""
    outside = {file for pattern in PAGES for file in ROOT.glob(pattern)}
    for page in list(files.documentation_pages()):
        outside |= {ROOT / target.split("#")[0] for target in LINKED.findall(page.content_string)}
    for added in [file for file in outside if file.suffix == ".md"]:
        pictures = PICTURES.findall(added.read_text("utf-8"))
        outside |= {added.parent / picture for picture in pictures}
    for file in sorted(outside):
        name = file.relative_to(ROOT).as_posix()
        files.append(File.generated(config, name, abs_src_path=str(file)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links of pages in docs/ out of it, and of the added pages into it, to the site's."""
    if page.file.generated_by:
        return markdown.replace("](docs/", "](").replace("](../docs/", "](../")
    return LINKED.sub(r"](\1)", markdown)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Load the script for search in pages opened as files from the site, not from the network."""
    return output.replace(SHIM, get_relative_url("assets/iframe-worker.js", page.url))


def on_post_template(output_content: str, **_: Any) -> str:
    """Do the same in the page for missing pages."""
    return output_content.replace(SHIM, "assets/iframe-worker.js")
