"""``python -m cli.docs`` writes the pages of docs/ that come from the source."""

from __future__ import annotations

from pathlib import Path

from policies.objects.reference import reference_markdown

DOCS = Path(__file__).parent.parent / "docs"


def main() -> None:
    """Rewrite docs/reference.md."""
    (DOCS / "reference.md").write_text(reference_markdown(), encoding="utf-8")


if __name__ == "__main__":
    main()
