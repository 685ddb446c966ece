"""What is read of an AdmissionReview, whatever stands in it; its first bytes are in tests/webhook/admission/test_unevaluated_reviews."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kube.review import ANYBODY, PODS, deny, object_kind, object_name, old_object, resource_of, user_of

REVIEWS = Path(__file__).parents[1] / "reviews"


def test_every_recorded_review_says_what_it_is_about() -> None:
    """As a real API server wrote them."""
    for path in sorted(REVIEWS.iterdir()):
        document = json.loads(path.read_bytes())
        request = document["request"]
        resource, known = resource_of(document), object_kind(request)
        assert resource is not None
        assert known is not None
        assert (resource == PODS) is path.name.startswith("pods-"), path.name
        assert known[1].lower() == resource[1].removesuffix("s"), path.name
        assert user_of(request) == (request["userInfo"]["username"], tuple(request["userInfo"].get("groups", ()))), path.name
        assert old_object(request) == request.get("oldObject"), path.name


@pytest.mark.parametrize("request_", [None, [], {"resource": "pods"}, {"resource": {"group": None, "resource": "pods"}}, {"resource": {}}])
def test_a_resource_that_is_not_said_is_none(request_: object) -> None:
    """Nothing is taken for a pod that is not said to be one."""
    assert resource_of({"request": request_}) is resource_of(request_) is None


@pytest.mark.parametrize("info", [None, "admin", {}, {"username": None, "groups": "system:nodes"}])
def test_a_user_that_cannot_be_read_is_anybody(info: object) -> None:
    """And in no group."""
    assert user_of({"userInfo": info}) == (ANYBODY, ())


@pytest.mark.parametrize(
    ("request_", "metadata", "name"),
    [
        ({"name": "a"}, {"name": "b", "generateName": "c-"}, "a"),
        ({"name": ""}, {"name": "b", "generateName": "c-"}, "b"),
        ({"name": 1}, {"generateName": "c-"}, "c-"),
        ({}, [], ""),
    ],
)
def test_the_name_of_the_object(request_: dict[str, Any], metadata: object, name: str) -> None:
    """A generated one has only its beginning when it is reviewed."""
    assert object_name(request_, {"metadata": metadata}) == name


def test_only_an_update_has_an_old_object() -> None:
    """And a kind has a version and a name."""
    assert old_object({"operation": "UPDATE", "oldObject": {"a": 1}}) == {"a": 1}
    assert old_object({"operation": "CREATE", "oldObject": {"a": 1}}) is old_object({"operation": "UPDATE", "oldObject": []}) is None
    assert object_kind({"kind": {"group": "", "version": "v1", "kind": "Pod"}}) == ("v1", "Pod")
    assert object_kind({"kind": {"group": "apps", "kind": "Deployment"}}) is None


def test_a_denial_repeats_the_uid() -> None:
    """With a status of Kubernetes."""
    status = {"status": "Failure", "code": 403, "reason": "Forbidden", "message": "no"}
    assert deny("u", "no") == {"uid": "u", "allowed": False, "status": status}
