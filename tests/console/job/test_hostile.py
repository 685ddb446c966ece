"""Hostile text in the fields of "My job": nothing runs, nothing breaks, and what can't be judged is denied with words."""

from __future__ import annotations

import re
from functools import cache

import pytest
import yaml

from analysis.world.world import World
from tests.support.console.asked import asked
from tests.support.console.worlds import world
from tests.support.recorded import eks

BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 40))
MANY = "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec:\n  containers:\n" + "".join(
    f"  - {{name: c{i}, image: i, resources: {{limits: {{nvidia.com/gpu: 1}}}}}}\n" for i in range(1000)
)
SPEC = "{containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]}"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "<img src=x onerror=alert(1)>", "labels": {"a": "\u202e</textarea><script>alert(1)</script>"}},
    "spec": {"containers": [{"name": "</code><script>alert(1)</script>", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
}
TEXTS = {
    "bomb": BOMB,
    "deep json": "[" * 20_000,
    "deep yaml": "- " * 5_000,
    "deep flow": "{a: " * 5_000,
    "containers": MANY,
    "script": "<script>alert(1)</script>",
    "control": "\x00\x1b[31m\u202e",
    "markup": yaml.safe_dump(POD, allow_unicode=True),
    "one line": "apiVersion: v1\nkind: Pod\nmetadata: {name: x, annotations: {a: "
    + "x" * 150_000
    + "}}\nspec: {containers: [{name: c}]}\n",
    "documents": "---\nkind: Pod\n" * 5_000,
    "templates": "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: x}\nspec:\n  replicatedJobs:\n"
    + "".join(f"  - {{name: r{i}, template: {{spec: {{template: {{spec: {SPEC}}}}}}}}}\n" for i in range(500)),
    "wrong shapes": "apiVersion: v1\nkind: Pod\nmetadata: 3\nspec: [1]\n",
}


@cache
def at() -> World:
    return world(eks.objects())


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("field", ["manifest", "policy_text"])
def test_hostile_text_is_answered_with_words(name: str, field: str) -> None:
    """A page of bounded size, in which no tag is the author's, with what was typed in its field."""
    good = "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: c}]}\n"
    answer = asked(at(), "/job", form={"manifest": good, field: TEXTS[name], "namespace": "web"})
    assert answer.status == 200
    assert not re.search(r"<script>|<img|onerror=alert\(1\)>", answer.text)
    assert "\u202e" not in answer.text
    assert len(answer.text) < 2 * 2**20
    assert 'role="alert"' in answer.text or 'aria-label="Verdict"' in answer.text


def test_a_thousand_containers_are_denied_with_words() -> None:
    """As admission denies them."""
    text = asked(at(), "/job", form={"manifest": MANY, "namespace": "web"}).text
    assert "this object is too complex to evaluate" in text


def test_of_many_templates_the_first_are_judged() -> None:
    """And that is said."""
    text = asked(at(), "/job", form={"manifest": TEXTS["templates"], "namespace": "web"}).text
    assert "Only the first 16 of its 500 pod templates are checked." in text


@pytest.mark.parametrize(
    "fields", [{"namespace": "x" * 300}, {"object": "9" * 50}, {"object": "-1"}, {"namespace": "../../etc"}, {"policy": "<b>"}]
)
def test_odd_fields_are_answered(fields: dict[str, str]) -> None:
    """With a page, or with what the field wants."""
    answer = asked(at(), "/job", form={"manifest": "a: 1", **fields})
    assert answer.status in (200, 400, 404)
    assert "<b>" not in answer.text
