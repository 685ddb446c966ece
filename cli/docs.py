"""``python -m cli.docs`` writes the pages of docs/ that come from the source."""

from __future__ import annotations

import re
from pathlib import Path

from cli import VERSION
from cli.about.manual import page
from cli.about.tree import commands
from policies.objects.reference import reference_markdown

DOCS = Path(__file__).parent.parent / "docs"


def _released() -> str:
    """Return the date of this version in the changelog; until it has one, of the newest that has one."""
    dates: dict[str, str] = dict(
        re.findall(r"^## \[(.+)\] - (.+)$", (DOCS.parent / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    )
    return dates.get(VERSION, next(iter(dates.values())))


def main() -> None:
    """Rewrite docs/reference.md and the manual page."""
    (DOCS / "reference.md").write_text(reference_markdown(), encoding="utf-8")
    (DOCS / "berth.1").write_text(page(commands(), _released()), encoding="utf-8")


if __name__ == "__main__":
    main()
