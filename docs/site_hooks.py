"""Hooks of mkdocs: CONTRIBUTING.md and results/ belong to the site, and links point to them."""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]


def on_files(files: Files, config: Any) -> Files:
    """Add the pages and figures that are outside of docs/."""
    results = sorted([*ROOT.glob("results/*.md"), *ROOT.glob("results/*.png")])
    for file in (ROOT / "CONTRIBUTING.md", *results):
        name = file.relative_to(ROOT).as_posix()
        files.append(File.generated(config, name, abs_src_path=str(file)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Point links out of docs/, and into it, to the pages of the site."""
    return markdown.replace("](../", "](").replace("](docs/", "](")
