"""Which kinds a server has."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.client.errors import Garbled
from cluster.watch.discovery import served

KIND = "APIGroupDiscoveryList"


def group(name: str, **versions: list[dict[str, Any]]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "versions": [{"version": version, "resources": found} for version, found in versions.items()]}


def resource(plural: str, *verbs: str) -> dict[str, Any]:
    return {"resource": plural, "verbs": list(verbs or ("get", "list", "watch"))}


def test_what_can_be_followed_is_found_in_all_its_versions() -> None:
    """In the server's order; what can't be listed and watched is not followed."""
    groups = [
        group("ray.io", v1=[resource("rayjobs"), resource("rayclusters")], v1alpha1=[resource("rayjobs")]),
        group("x.example", v1=[resource("reviews", "create"), resource("things", "get", "list")]),
    ]
    assert served({"kind": KIND, "items": groups}) == {("ray.io", "rayjobs"): ("v1", "v1alpha1"), ("ray.io", "rayclusters"): ("v1",)}


@pytest.mark.parametrize("body", [None, [], "x", {"kind": "APIGroupList", "groups": []}])
def test_another_answer_is_none(body: Any) -> None:
    """Of a server before Kubernetes 1.30, or of a proxy."""
    with pytest.raises(Garbled, match="without aggregated discovery"):
        served(body)


@pytest.mark.parametrize("items", [7, [None, 7], [{"metadata": [], "versions": {}}], [group("x", v1=[{"resource": 7, "verbs": "list"}])]])
def test_no_content_can_make_it_raise(items: Any) -> None:
    """Groups of other servers are passed on as they come."""
    assert served({"kind": KIND, "items": items}) == {}
