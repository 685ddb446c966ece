"""The screen "Berths" as somebody gets it: numbers, drawings, rights, and hostile objects."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit
from xml.etree import ElementTree

import pytest

from analysis.world.world import World
from console.berths.groups import groups
from console.world.scope import EVERYTHING, NONE, ListableNamespaces, Scope
from tests.support.console.asked import asked
from tests.support.console.large import large_objects, large_policies
from tests.support.console.worlds import world
from tests.support.counts import count
from tests.support.recorded import eks, gke, on_premises
from tests.support.recorded.parts import GPU, TAINT, Raw, node, pod

SVG = re.compile(r'<svg class="berth-drawing".*?</svg>', re.DOTALL)
HREF = re.compile(r'href="(/berths/group\?[^"#]*)')
NODES_ALONE = Scope(who="ada", nodes=True)


def _addresses(text: str) -> list[Mapping[str, str]]:
    return [dict(parse_qsl(urlsplit(html.unescape(one)).query)) for one in dict.fromkeys(HREF.findall(text))]


def _every_page(found: World, scope: Scope = EVERYTHING) -> list[str]:
    first = asked(found, "/berths", scope)
    pages = [first, *(asked(found, "/berths/group", scope, None, **one) for one in _addresses(first.text))]
    assert {one.status for one in pages} == {200}
    return [one.text for one in pages]


@pytest.mark.parametrize("cluster", [eks, gke, on_premises], ids=["eks", "gke", "on-premises"])
def test_drawings_are_well_formed_and_say_what_they_show(cluster: object) -> None:
    """Each is XML with a title that has the numbers, without a style, a script or anything from elsewhere."""
    found = world(cluster.objects(2))  # type: ignore[attr-defined]
    first, *others = _every_page(found)
    drawn = SVG.findall(first)
    assert len(drawn) == sum(len(group.lines) for group in groups(found))
    assert all(map(SVG.search, others))
    lines = [line for group in groups(found) for line in group.lines]
    for text, line in zip(drawn, lines, strict=True):
        root = ElementTree.fromstring(text)
        assert {one.tag for one in root.iter()} <= {"svg", "title", "path", "text"}
        assert not [key for one in root.iter() for key in one.attrib if key in ("style", "href") or key.startswith("on")]
        title = root.findtext("title") or ""
        assert root.get("aria-labelledby") == root.find("title").get("id")  # type: ignore[union-attr]
        assert f"{line.held} used, {line.free} free, {line.out} unavailable" in title
    assert not re.search(r"<style|style=|<script(?! src)| on[a-z]+=", "".join((first, *others)))


def test_ids_of_a_page_are_its_own() -> None:
    """No page has an id twice, and each label that is named is there."""
    for text in _every_page(world(on_premises.objects())):
        ids = re.findall(r' id="([^"]+)"', text)
        assert len(ids) == len(set(ids))
        assert set(re.findall(r'aria-labelledby="([^"]+)"', text)) <= set(ids)


def test_traps_are_marked_at_their_group() -> None:
    """A finding on a group of nodes, a NodePool or its node class is on the group's card, and leads to its own words."""
    found = world(eks.objects())
    first = asked(found, "/berths").text
    card = next(one for one in first.split('<section class="card"') if "gpu-train" in one)
    assert "NodePools that consolidate nodes with runs" in card
    assert "Node classes that always use the latest image" in card
    text = asked(found, "/berths/group", kind="NodePool", name="gpu-train", model="A100-40GB").text
    assert 'id="pool-consolidates"' in text
    assert "set spec.disruption.consolidationPolicy: WhenEmpty" in text


def test_nodes_need_the_right_to_list_them() -> None:
    """Without it both pages say what to ask for, and name no node, no group and no namespace."""
    found = world(eks.objects())
    for path in ("/berths", "/berths/group"):
        text = asked(found, path, Scope(who="ada; rm", pods=NONE), kind="NodePool", name="gpu-train", model="A100-40GB").text
        assert "--user=&#39;ada; rm&#39;" in text
        assert not [one for one in ('gpu-train"', "train-0", "research", "A100-40GB</") if one in text]


def test_pods_and_policies_of_others_are_numbers_alone() -> None:
    """Whoever may list nodes and no pods, policies or NodePools reads of no pod, owner, namespace, policy and limit."""
    found = world(eks.objects())
    names = {one for pod in found.seen.pods for one in (pod.stored.name, pod.workload.name)} | {"shop-5d4", "research", *found.policies}
    for text in _every_page(found, NODES_ALONE):
        assert not [one for one in names if re.search(rf"(?<![\w-]){re.escape(one)}(?![\w-])", text)]
    text = asked(found, "/berths/group", NODES_ALONE, kind="NodePool", name="gpu-train", model="A100-40GB").text
    assert "1 that you may not list" in text
    assert "You may not list NodePools" in text
    assert "Limits of the NodePool" not in text
    web = Scope(who="ada", nodes=True, pods=ListableNamespaces(names=frozenset({"web"})))
    text = asked(found, "/berths/group", web, kind="NodePool", name="gpu-serve", model="A10G").text
    assert "web/llm-0-0" in text
    assert "Runs here unchanged" in text
    assert "policies that you may not list" in text
    assert "ClusterGPUPolicy/" not in text
    assert "<span>research</span>" not in text


def test_a_group_that_is_not_there_is_not_shown() -> None:
    """Nor is a device that it does not have."""
    found = world(eks.objects())
    assert asked(found, "/berths/group", kind="NodePool", name="gone").status == 404
    assert asked(found, "/berths/group").status == 404
    assert asked(found, "/berths/group", kind="NodePool", name="gpu-train", model="A100-40GB", resource="x").status == 400
    assert asked(found, "/berths", sort="colour").status == 400


def test_a_cluster_without_gpus_says_what_to_do() -> None:
    """An empty page is no page without words."""
    assert "kubectl get nodes" in asked(world([], []), "/berths").text


def test_an_unknown_price_is_told() -> None:
    """Where no price of a machine or a model is known: in one word, and no dollars that are idle."""
    text = asked(world([node("n0", {}, {GPU: 8})], []), "/berths").text
    assert "<dt>Price per hour</dt><dd>unknown</dd>" in text
    assert "<dt>Idle per hour</dt>" not in text


def test_a_nodepool_without_nodes_is_there() -> None:
    """With the machines that Karpenter could make, and who may land on them."""
    found = world(large_objects(nodes=20, pods=10), large_policies(3))
    text = asked(found, "/berths", page="1").text + asked(found, "/berths", page="2").text
    assert "NodePool burst-l40s" in text
    assert "g6e.12xlarge" in text
    assert "NodePool general" not in text
    text = asked(found, "/berths/group", kind="NodePool", name="burst-l40s").text
    assert "Runs here unchanged" in text
    assert '<th scope="row">g6e.12xlarge</th>' in text


def test_a_large_cluster_has_small_pages() -> None:
    """Their size is that of their parts, not of the cluster: 500 nodes and 10,000 pods where counts are full."""
    nodes, pods, policies = count(60, 500), count(400, 10_000), count(20, 200)
    found = world(large_objects(nodes, pods), large_policies(policies))
    pages = _every_page(found)
    assert max(map(len, pages)) < 80_000
    assert all(text.count('scope="row"') <= 40 for text in pages)


EVIL = "<script>alert(1)</script>\u202e\"'&" + "x" * 100_000


def test_hostile_objects_neither_run_nor_grow_a_page() -> None:
    """Names, labels, taints, resource names and amounts of anything, as only a dump of files may have them."""
    labels = {"karpenter.sh/nodepool": EVIL, "nvidia.com/gpu.product": EVIL, f"nvidia.com/{EVIL}": EVIL, "karpenter.k8s.aws/x": "}}{{7*7}}"}
    many = {f"nvidia.com/mig-{at}g.{EVIL[:200]}": 3 for at in range(50)}
    nodes = [
        node(EVIL, labels, {GPU: 10**18, **many}, *({"key": f"{at}{EVIL}", "value": EVIL, "effect": "NoSchedule"} for at in range(100))),
        node(
            "plain", {"karpenter.sh/nodepool": "</title><img src=x>", "node.kubernetes.io/instance-type": "p4d.24xlarge"}, {GPU: 8}, TAINT
        ),
    ]
    odd: Raw = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "odd", "labels": None},
        "spec": [],
        "status": {"capacity": {GPU: "x"}},
    }
    found = world([*nodes, odd, pod(EVIL, EVIL, {GPU: 1}, on=EVIL)], [])
    for one in ("/berths", "/berths/group"):
        for fields in [{}] if one == "/berths" else _addresses(asked(found, "/berths").text):
            answered = asked(found, one, EVERYTHING, None, **fields)
            assert answered.status == 200
            assert len(answered.body) < 400_000
            assert "<script>" not in answered.text
            assert "<img" not in answered.text
            assert "\u202e" not in answered.text
            assert all(ElementTree.fromstring(text) is not None for text in SVG.findall(answered.text))
    assert asked(found, "/berths/group", kind="NodePool", name=EVIL).status == 400
