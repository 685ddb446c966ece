"""Values in templates: escaped, on one line, bounded."""

from __future__ import annotations

from console.server.rendering import LONGEST, MOST_TYPED, environment


def rendered(source: str, **values: object) -> str:
    return environment().from_string(source).render(**values)


def test_every_value_is_escaped_flat_and_bounded() -> None:
    """Script tags, marks of direction, control characters and megabytes."""
    assert rendered("{{ a }}", a="<script>") == "&lt;script&gt;"
    assert rendered('<p title="{{ a }}">', a='"><b>') == '<p title="&#34;&gt;&lt;b&gt;">'
    assert rendered("{{ a }}", a="x\u202ey\x1b[31m\nz") == "x y [31m z"
    assert len(rendered("{{ a }}", a="x" * 1_000_000)) == LONGEST


def test_a_text_of_many_lines_has_them() -> None:
    """It is escaped and bounded too."""
    assert rendered("{{ a|typed }}", a="a:\n  b: <c>\x07\u202e") == "a:\n  b: &lt;c&gt;  "
    assert len(rendered("{{ a|typed }}", a="x" * (MOST_TYPED + 5))) == MOST_TYPED


def test_dollars() -> None:
    """Cents up to a hundred, none above, a dash where they are not known."""
    assert [rendered("{{ a|usd }}", a=one) for one in (None, 0.5, 99.994, 1204.4)] == ["–", "$0.50", "$99.99", "$1,204"]
