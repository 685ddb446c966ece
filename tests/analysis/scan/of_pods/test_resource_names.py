"""Names of accelerators that no registration catches, and misspelt ones."""

from __future__ import annotations

from tests.support.recorded.parts import GPU, node, pod
from tests.support.recorded.scanned import scanned


def test_a_name_that_looks_like_an_accelerator_is_found_on_nodes_and_pods() -> None:
    """Those of the catalog are not, nor names of other devices."""
    devices = {"acme.example/npu": 4, GPU: 1, "vpc.amazonaws.com/efa": 4, "example.com/printer": 1}
    found = scanned([node("n", {}, devices), pod("p", "ns", {"acme.example/npu": 1, "example.com/printer": 1}, on="n")])
    (one,) = found.of("unlisted-name")
    assert (one.where.name, one.pods, one.nodes, one.gpus, one.names) == ("acme.example/npu", 1, 1, 1, ("ns/p",))


def test_a_misspelt_name_is_told_with_the_right_one() -> None:
    """And not as something that nothing can serve besides."""
    found = scanned([node("n", {}, {GPU: 1}), pod("p", "ns", {"nvdia.com/gpu": 1})])
    assert [(one.kind, dict(one.values)) for one in found.report.findings if one.where.kind == "Pod"] == [
        ("misspelt-name", {"name": "nvdia.com/gpu", "right": GPU})
    ]
