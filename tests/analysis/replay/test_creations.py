"""Entries as creations of pods: who decided what of them then, and which webhooks had changed them before."""

from __future__ import annotations

import json
from typing import Any

import pytest

from analysis.replay.creations import Creation, creation
from tests.cli.replaying.events import event, of_job, pod
from tests.support.generators.random_worlds import catalog

MUTATE = "mutate.pods.berth.dev"


def noted(number: int, webhook: str, *patch: dict[str, Any], turn: int = 0) -> dict[str, str]:
    about = {"configuration": "c", "webhook": webhook}
    where = f"webhook.admission.k8s.io/round_{turn}_index_{number}"
    found = {f"mutation.{where}": json.dumps({**about, "mutated": bool(patch)})}
    return found | ({f"patch.{where}": json.dumps({**about, "patch": patch, "patchType": "JSONPatch"})} if patch else {})


def made(annotations: dict[str, str], **fields: Any) -> Creation:
    found = creation(event(pod(), annotations=annotations, **fields), catalog())
    assert isinstance(found, Creation)
    return found


def label(name: str) -> dict[str, Any]:
    return {"op": "add", "path": "/metadata/labels", "value": {name: "yes"}}


def test_webhooks_before_ours_have_changed_the_pod_and_later_ones_have_not() -> None:
    """By round and index, as numbers: 2 comes before 10."""
    annotations = noted(10, MUTATE) | noted(2, "early.example.com", label("early")) | noted(11, "late.example.com", label("late"))
    assert made(annotations).request.pod["metadata"]["labels"] == {"early": "yes"}
    again = noted(0, MUTATE) | noted(1, "late.example.com", label("late")) | noted(0, MUTATE, label("again"), turn=1)
    found = made(again)
    assert "labels" not in found.request.pod["metadata"]
    assert found.then is not None
    assert len(found.then.patches) == 1


def test_a_pod_that_berth_was_not_asked_about_has_no_record() -> None:
    """Other webhooks' notes are none; Berth's own are, even if it changed nothing."""
    assert made({}).then is None
    assert made(noted(0, "other.example.com", label("x"))).then is None
    assert made(noted(0, "notberth.dev", label("x"))).then is None
    assert made(noted(0, "mutate.berth.dev.example.com", label("x"))).then is None
    asked = made(noted(0, MUTATE)).then
    assert asked is not None
    assert (asked.patches, asked.audit_outcomes, asked.denied) == ((), (), None)


def test_a_denial_of_either_phase_is_a_record() -> None:
    """By its annotation."""
    denied = made({"validate.pods.berth.dev/denied": '[{"code":"BERTH-111","rule":"device_counts"}]'}).then
    assert denied is not None
    assert denied.decision().denied


def test_what_is_no_json_in_a_note_says_nothing() -> None:
    """Whoever wrote it."""
    odd = {
        f"{MUTATE}/would": "{",
        f"{MUTATE}/denied": '{"a": 1}',
        "patch.webhook.admission.k8s.io/round_x_index_99999999999999999999": "[",
        "mutation.webhook.admission.k8s.io/": "x",
    }
    found = made(odd).then
    assert found is not None
    assert found.decision().reasons == ()


@pytest.mark.parametrize(
    ("labels", "owner", "wanted"),
    [
        ({"pod-template-hash": "5d4f"}, ("ReplicaSet", "llm-5d4f"), ("Deployment", "llm")),
        ({"pod-template-hash": "1006159464"}, ("ReplicaSet", "llm-5d4f"), ("ReplicaSet", "llm-5d4f")),
        ({}, ("Job", "train"), ("Job", "train")),
        ({}, None, ("Pod", "")),
    ],
)
def test_the_workload_of_a_pod(labels: dict[str, str], owner: tuple[str, str] | None, wanted: tuple[str, str]) -> None:
    """Its owner; a Deployment by the hash in the name of its ReplicaSet."""
    one = pod() if owner is None else of_job("p", owner[1])
    one["metadata"]["labels"] = labels
    if owner is not None:
        one["metadata"]["ownerReferences"][0]["kind"] = owner[0]
    found = creation(event(one), catalog())
    assert isinstance(found, Creation)
    assert found.workload == wanted


def test_who_asked_is_whom_the_webhook_saw() -> None:
    """The impersonated user, as the API server passes it on."""
    found = made({}, impersonatedUser={"username": "anna", "groups": ["ml", 1]})
    assert (found.request.user, found.request.groups, found.request.namespace) == ("anna", ("ml",), "team")


def test_a_pod_made_by_server_side_apply_has_the_defaults_of_the_api_server() -> None:
    """The event has what was applied, without them."""
    bare = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"resources": {"limits": {"a/b": "1"}}}]}}
    found = creation(event(bare, verb="patch"), catalog())
    assert isinstance(found, Creation)
    spec = found.request.pod["spec"]
    assert (spec["terminationGracePeriodSeconds"], spec["containers"][0]["resources"]["requests"]) == (30, {"a/b": "1"})
    shapes: list[Any] = [{"metadata": {}}, {"spec": 1}, {"spec": {"containers": 1}}, {"spec": {"containers": [1]}, "metadata": []}]
    for odd in shapes:
        assert isinstance(creation(event(pod(), verb="patch") | {"requestObject": odd}, catalog()), Creation | str)
