"""Links of the pages lead somewhere, pages that the source names exist, and the site has all pages.

``make docs`` finds dead links too; it needs packages that ``make check`` does not install.
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.module_imports import LAYERS

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "bench").glob("*.md"))]
SOURCES = ("bench", "deploy", "tests", *LAYERS)
SUFFIXES = {".py", ".yaml", ".yml", ".html", ".tpl", ".txt", ".json"}
FENCE = re.compile(r"^ *(```+|~~~+).*?^ *\1\s*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
HEADING = re.compile(r"^#+ +(.+?) *#*$", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)\)")
NAMED = re.compile(r"(?<![\w/-])(?:\.\./)*(docs/[a-z-]+\.md)(?:#([\w-]+)(?!\.\.|[\w-]))?")
OF_OTHERS = {"docs/driver-attributes.md", "docs/missing.md", "docs/workload.md"}
"""Pages of other repositories, and one of a test"""


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    slugs: list[str] = []
    for title in HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
        repeated = sum(re.fullmatch(rf"{re.escape(slug)}(-\d+)?", other) is not None for other in slugs)
        slugs.append(f"{slug}-{repeated}" if slug in slugs else slug)
    return frozenset(slugs)


def dead_links(page: Path) -> Iterator[str]:
    """Yield the links of a page to a file or an anchor that does not exist."""
    text = CODE.sub("", FENCE.sub("", page.read_text(encoding="utf-8")))
    for link in LINK.findall(text):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    """Each relative link is to a file or a folder, and each anchor to a heading."""
    assert list(dead_links(page)) == []


def test_pages_that_the_source_names_exist() -> None:
    """In messages, help, templates, alerts, comments and tests: each ``docs/NAME.md``, with the heading of its anchor."""
    files = [path for folder in SOURCES for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    named = [(path, *names) for path in files for names in NAMED.findall(path.read_text(encoding="utf-8"))]
    dead = {
        f"{path.relative_to(ROOT)} names {name}#{anchor}".rstrip("#")
        for path, name, anchor in named
        if name not in OF_OTHERS and not ((ROOT / name).exists() and (not anchor or anchor in anchors(ROOT / name)))
    }
    assert len(named) > 50
    assert sorted(dead) == []


def test_the_sidebar_of_the_site_has_every_page() -> None:
    """Each page of docs/ once, under a caption of docs/site/conf.py."""
    navigation: dict[str, tuple[str, ...]] = runpy.run_path(str(ROOT / "docs" / "site" / "conf.py"))["NAVIGATION"]
    listed = [name for names in navigation.values() for name in names]
    assert sorted(listed) == sorted(page.stem for page in (ROOT / "docs").glob("*.md"))
