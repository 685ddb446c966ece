"""Sphinx's settings for the site of the docs (`make docs`)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
REPOSITORY = "https://github.com/gpu-berth/berth/tree/main"
LINK = re.compile(r"(?<=\]\()(?!https?:|#)[^)#\s]+(?=\))")
ON_THE_SITE = (".md", ".png", ".svg")
OTHERS = ("README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "bench/RESULTS.md", "bench/PUBLIC_MANIFESTS.md")
"""Pages outside of docs/ that docs link to"""
NAVIGATION = {
    "Start": ("try", "installing", "audit", "recipes", "glossary"),
    "Policies": ("guardrails", "reference", "claims", "queues", "policy-tests", "scan"),
    "Operate": ("operations", "runbooks", "metrics", "console", "upgrading", "performance"),
    "Reference": ("codes", "command", "protocol"),
    "Develop": ("architecture", "laws", "image", "releasing"),
}
"""Caption -> pages of docs/ in the order of the sidebar. A page that is missing here comes last."""

project = "Berth"
copyright = "the authors of Berth, Apache-2.0"
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = [*OTHERS, "docs/*.md"]
exclude_patterns = [".*", "dist"]
myst_heading_anchors = 5
suppress_warnings = ["misc.highlighting_failure"]
html_theme = "furo"
html_title = "Berth"
html_copy_source = False


def sidebar() -> str:
    """Return the table of contents of the sidebar, as Markdown."""
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")}
    more = sorted(pages.difference(*NAVIGATION.values()))
    groups = {**NAVIGATION, **({"More": more} if more else {})}
    parts = [_part(caption, [f"docs/{name}" for name in names if name in pages]) for caption, names in groups.items()]
    return "\n".join([*parts, _part("Project", [name.removesuffix(".md") for name in OTHERS[1:]])])


def _part(caption: str, names: list[str]) -> str:
    return "\n".join(["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *names, "```", ""])


def _prepare(_app: Sphinx, name: str, content: list[str]) -> None:
    """Add the sidebar to the first page, and link files and folders that are not on the site to the repository."""
    folder = (ROOT / name).parent

    def target(link: re.Match[str]) -> str:
        path = (folder / link[0]).resolve()
        if path.suffix in ON_THE_SITE or not path.exists():
            return link[0]
        return f"{REPOSITORY}/{path.relative_to(ROOT)}"

    content[0] = LINK.sub(target, content[0]) + (sidebar() if name == root_doc else "")


def _first_page(app: Sphinx, error: Exception | None) -> None:
    """Send visitors of the folder to the README."""
    if error is None:
        refresh = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={root_doc}.html">'
        Path(app.outdir, "index.html").write_text(f'{refresh}<a href="{root_doc}.html">{project}</a>\n', encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Connect what this file adds to Sphinx."""
    app.connect("source-read", _prepare)
    app.connect("build-finished", _first_page)
