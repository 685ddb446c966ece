"""The table of messages: what docs/codes.md says of each code, and that every template has its use."""

from __future__ import annotations

import re
import string
from functools import cache
from pathlib import Path

from kube.tree import dotted
from policies.messages import SHARED, SPARED, TABLE, At, phrase, shorter
from policies.messages.row import rendered
from policies.verdict import Violation

ROOT = Path(__file__).parents[3]
CODES = (ROOT / "docs" / "codes.md").read_text()
SECTIONS = dict(re.findall(r"^### (BERTH-\d{3}): (.*?)(?=^###? |\Z)", CODES, re.MULTILINE | re.DOTALL))


def test_every_code_is_documented_under_its_title() -> None:
    """In the table's order: denials, what answers say of themselves, warnings."""
    assert re.findall(r"^### (BERTH-\d{3}): (.+)$", CODES, re.MULTILINE) == [(code, row.title) for code, row in TABLE.items()]


def test_the_documentation_says_who_hears_it() -> None:
    """Each code that authors are not warned of says so in its section, and no other does."""
    platform = {code for code, row in TABLE.items() if row.audience == "platform"}
    assert {code for code, text in SECTIONS.items() if "**Shown to**" in text} == platform


def test_a_page_is_the_anchor_of_its_section() -> None:
    """Lower case, dashes for spaces, no other punctuation, as GitHub makes it of the heading."""
    assert TABLE["BERTH-117"].page == "docs/codes.md#berth-117-a-shared-gpu-where-whole-gpus-are-required"
    assert TABLE["BERTH-151"].page == "docs/codes.md#berth-151-an-invalid-annotation"


@cache
def strings() -> frozenset[str]:
    """Every quoted word or words outside of the table: the names of templates are among them."""
    files = [f for folder in ("analysis", "policies", "webhook") for f in (ROOT / folder).rglob("*.py") if f.parent.name != "messages"]
    return frozenset(text for file in files for text in re.findall(r'"([a-z][a-z ]*)"', file.read_text()))


def test_every_template_is_used() -> None:
    """Under its name; the shorter of two with the other one."""
    templates = {"shared": SHARED, **{code: row.templates for code, row in TABLE.items()}}
    names = [(code, name) for code, by_name in templates.items() for name in by_name]
    assert [(code, name) for code, name in names if name.removesuffix(" shorter") not in strings()] == []


def test_no_row_hides_a_shared_template() -> None:
    """A name means one template: what rows share is not said otherwise by one of them."""
    assert {code: names for code, row in TABLE.items() if (names := row.templates.keys() & SHARED.keys())} == {}


def test_who_is_spared() -> None:
    """Of the denials of a placement (``docs/laws.md``, law 10: "guardrails hold for every author"); all others hold for every pod."""
    assert SPARED["all"] == frozenset()
    assert SPARED["none"] == {"BERTH-121", "BERTH-122", "BERTH-123", "BERTH-124", "BERTH-125"}
    assert SPARED["node"] == SPARED["none"] - {"BERTH-124"}
    assert SPARED["left"] == SPARED["none"] - {"BERTH-121", "BERTH-122"}


def test_values_stand_where_the_template_says() -> None:
    """Lists joined as their format says, phrases and paths inside, braces in values as they are."""
    row = TABLE["BERTH-121"]
    one = phrase("several", own=(phrase("resource", name="a/{b}"), phrase("count", count=2, name="c")), demands=("x", "y", "z"))
    assert rendered(row, SHARED, one, dotted) == "resource a/{b} and 2 c in one pod violate x and y and z"
    found = phrase("selector", where=At(("spec", "nodeSelector")), key="k", value="v")
    assert rendered(row, SHARED, found, lambda path: "/".join(map(str, path))) == "spec/nodeSelector k=v"
    assert rendered(row, SHARED, phrase("one of", values=("a", "b")), dotted) == "one of a, b"
    assert rendered(TABLE["BERTH-217"], {"t": "{there:;}"}, phrase("t", there=("a", "b")), dotted) == "a; b"


def test_a_long_name_is_not_said_twice() -> None:
    """The shorter of two fixes is taken where code, fact and fix would pass 200 characters, by the paths of the pod."""

    def fix(name: str) -> str:
        path = ("spec", "containers", 0, "resources", "requests", name)
        advice = phrase("fix", path=At(path), around=At(path[:-1]))
        found = phrase("fact", container="c", amount="x", name=name)
        return Violation(code="BERTH-102", found=found, advice=advice, rule="r").fix

    assert fix("nvidia.com/gpu") == 'set spec.containers[0].resources.requests["nvidia.com/gpu"] to a whole number'
    assert fix(f"example.com/{'x' * 60}") == "set it to a whole number in spec.containers[0].resources.requests"
    assert shorter("BERTH-101", phrase("why")) is None


def test_values_of_templates_have_plain_names() -> None:
    """No attribute, index or conversion is looked up in a value."""
    every = [template for row in TABLE.values() for template in row.templates.values()] + list(SHARED.values())
    parts = [part for template in every for part in string.Formatter().parse(template)]
    assert [name for _, name, _, conversion in parts if name is not None and (not name.isidentifier() or conversion)] == []
    assert {how for _, _, how, _ in parts if how} == {"and", "or", ";"}
