"""Placement: terms as the scheduler reads them, and the smallest group of sets that have nothing in common."""

from __future__ import annotations

from typing import Any

import pytest

from kube.labels import ABSENT, Expression
from kube.pod import Pod
from policies.planning.feasibility import AuthorExpression, RequiredTerm, axes_of, list_bracketed, names_other_platform, terms_of
from tests.support.cases import golden
from tests.support.snapshots import build

CATALOG = golden.catalog_with()
SNAPSHOT = build(golden.policies_of([], CATALOG), CATALOG, platforms=("karpenter-aws", "gke", "gfd"))


WANTED = [
    *(Expression(key="k", operator="In", values=values) for values in (("a",), ("a", "b"), ("c",))),
    *(Expression(key="k", operator="NotIn", values=values) for values in (("a",), ("a", "b"), ("c",))),
    Expression(key="k", operator="Exists"),
    Expression(key="k", operator="DoesNotExist"),
]
AUTHORED = [AuthorExpression(e.key, e.operator, e.values, "") for e in WANTED]


def pod(terms: list[dict[str, Any]] | None, **selector: str) -> Pod:
    affinity = {} if terms is None else {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    return Pod({"spec": {"nodeSelector": selector, "affinity": affinity}})


def expression(key: str, operator: str = "In", *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def test_a_pod_without_terms_has_one_made_of_its_node_selector() -> None:
    """The nodeSelector alone."""
    (term,) = terms_of(pod(None, zone="a"), {})
    assert (term.index, [str(s) for s in term.expressions]) == (None, ["spec.nodeSelector zone=a"])


def test_the_node_selector_is_in_every_term() -> None:
    """It is ANDed to each; empty terms select nothing and are left out, and their index stays."""
    terms = terms_of(
        pod([{}, {"matchExpressions": [expression("x", "Exists")]}, {"matchFields": [expression("metadata.name", "In", "n")]}], zone="a"),
        {},
    )
    assert [t.index for t in terms] == [1, 2]
    assert [[s.key for s in t.expressions] for t in terms] == [["zone", "x"], ["zone"]]


def test_an_older_key_is_read_as_the_newer_one_and_shown_as_it_was_written() -> None:
    """Nodes carry both; a template whose label is the older one is still demanded by it."""
    aliases = CATALOG.label_aliases
    old, new = "beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"
    (term,) = terms_of(Pod({"spec": {"nodeSelector": {old: "p5.48xlarge"}}}), aliases)
    assert [(s.key, str(s)) for s in term.expressions] == [(new, f"spec.nodeSelector {old}=p5.48xlarge")]
    assert all(term.has(Expression(key=key, operator="In", values=("p5.48xlarge",))) for key in (old, new))
    (term,) = terms_of(pod([{"matchExpressions": [expression("failure-domain.beta.kubernetes.io/zone", "In", "a")]}]), aliases)
    assert [s.key for s in term.expressions] == ["topology.kubernetes.io/zone"]


def test_where_all_terms_are_empty_there_is_none() -> None:
    """Such a pod is scheduled nowhere."""
    assert terms_of(pod([{}]), {}) == ()


def test_said_names_its_place_and_a_few_values() -> None:
    """Long lists are cut in messages."""
    authored = AuthorExpression("k", "In", tuple("abcdefg"), "nodeSelectorTerms[0].matchExpressions[1]")
    assert str(authored) == "nodeSelectorTerms[0].matchExpressions[1] k In [a, b, c, d and 3 more]"
    assert str(AuthorExpression("k", "Exists", (), "there")) == "there k Exists"
    assert list_bracketed(["a"]) == "[a]"


def test_a_term_has_a_label_only_where_nothing_else_can_match() -> None:
    """One value, In."""
    term = RequiredTerm(
        0,
        {},
        (
            AuthorExpression("pool", "In", ("a",), ""),
            AuthorExpression("x", "In", ("a", "b"), ""),
            AuthorExpression("y", "NotIn", ("a",), ""),
        ),
    )
    assert term.has(Expression(key="pool", operator="In", values=("a",)))
    assert not any(term.has(Expression(key=key, operator="In", values=("a",))) for key in ("x", "y", "z"))
    assert not term.has(Expression(key="pool", operator="In", values=("b",)))


def test_a_term_has_an_expression_whatever_the_order_of_its_values() -> None:
    """Key, operator and the set of values."""
    term = RequiredTerm(0, {}, (AuthorExpression("k", "In", ("b", "a"), ""),))
    assert term.has(Expression(key="k", operator="In", values=("a", "b")))
    assert not term.has(Expression(key="k", operator="NotIn", values=("a", "b")))


@pytest.mark.parametrize("authored", AUTHORED, ids=str)
@pytest.mark.parametrize("wanted", WANTED, ids=lambda e: f"{e.operator} {e.values}")
def test_what_a_term_has_or_implies_holds_on_every_node_it_selects(authored: AuthorExpression, wanted: Expression) -> None:
    """By every value that a node may have for the label, and on a node without it; what a term has it implies."""
    term = RequiredTerm(0, {}, (authored,))
    nodes = [ABSENT, *((value,) for value in "abc")]
    known = frozenset("abc")
    selected = [node for node in nodes if Expression(*authored[:3]).may_hold(node, known)]
    if term.implies(wanted):
        assert all(wanted.may_hold(node, known) for node in selected)
    assert term.implies(wanted) or not term.has(wanted)


@pytest.mark.parametrize(
    ("authored", "foreign"),
    [
        (AuthorExpression("cloud.google.com/gke-accelerator", "In", ("nvidia-l4",), ""), True),
        (AuthorExpression("cloud.google.com/gke-accelerator", "NotIn", ("nvidia-l4",), ""), False),
        (AuthorExpression("karpenter.k8s.aws/instance-gpu-name", "Exists", (), ""), False),
        (AuthorExpression("team", "In", ("a",), ""), False),
    ],
    ids=str,
)
def test_a_positive_expression_on_anothers_key_is_the_others(authored: AuthorExpression, *, foreign: bool) -> None:
    """Only a positive one: NotIn also matches where the key is missing."""
    assert names_other_platform(SNAPSHOT, SNAPSHOT.tables["karpenter-aws"], RequiredTerm(0, {}, (authored,))) is foreign


@pytest.mark.parametrize(
    ("platform", "key", "axes"),
    [
        ("karpenter-aws", "karpenter.sh/capacity-type", ("capacity",)),
        ("karpenter-aws", "karpenter.k8s.aws/instance-gpu-name", ("machine",)),
        ("karpenter-aws", "nvidia.com/gpu.product", ()),
        ("karpenter-aws", "nvidia.com/gpu.sharing-strategy", ()),
        ("gke", "cloud.google.com/gke-gpu-partition-size", ("sharing",)),
        ("gke", "cloud.google.com/gke-accelerator", ("machine",)),
        ("gfd", "nvidia.com/gpu.product", ("machine", "sharing")),
        ("gfd", "nvidia.com/gpu.sharing-strategy", ("sharing",)),
        ("gke", "team", ()),
    ],
)
def test_the_axes_that_a_key_speaks_of(platform: str, key: str, axes: tuple[str, ...]) -> None:
    """Keys that come only after boot speak of none on platforms that make nodes."""
    assert axes_of(SNAPSHOT, SNAPSHOT.tables[platform], key) == axes
