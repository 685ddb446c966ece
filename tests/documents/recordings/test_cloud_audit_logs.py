"""GKE's Cloud Audit Logs as the audit events that they were made of; and whatever else a log may hold in their place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.replay.creations import Creation, creation
from documents.recordings.cloud_audit_logs import event
from tests.cli.replaying.events import cloud_entry, lines, pod
from tests.cli.replaying.events import event as audited
from tests.documents.recordings.test_recordings import values
from tests.support.counts import count
from tests.support.generators.random_worlds import catalog

Raw = dict[str, Any]


def read(entry: object) -> Creation | str:
    return creation(event(entry) if isinstance(entry, dict) else entry, catalog())


def test_an_entry_is_the_event_that_it_was_made_of() -> None:
    """The pod, the namespace, who asked, which event it is; the type that Google adds is none of the pod's fields."""
    whole = audited(pod(), 7, namespace="research", annotations={"mutate.pods.berth.dev/would": "[]"})
    wanted, found = creation(whole, catalog()), read(cloud_entry(whole))
    assert isinstance(wanted, Creation)
    assert isinstance(found, Creation)
    assert (found.request.pod, found.request.namespace, found.request.user) == (wanted.request.pod, "research", "admin")
    assert (found.identity, found.then) == (wanted.identity, wanted.then)


@pytest.mark.parametrize(
    ("user", "groups"),
    [
        ("someone@example.com", ()),
        ("system:node:gke-1", ("system:nodes",)),
        ("system:serviceaccount:kube-system:job-controller", ("system:serviceaccounts", "system:serviceaccounts:kube-system")),
        ("system:kube-scheduler", ()),
    ],
)
def test_groups_are_known_only_where_the_name_fixes_them(user: str, groups: tuple[str, ...]) -> None:
    """The form has none; those of nodes and service accounts follow from the API server's own authenticators."""
    found = read(cloud_entry(audited(pod(), user={"username": user})))
    assert isinstance(found, Creation)
    assert found.request.groups == groups


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"methodName": "io.k8s.core.v1.pods.delete"}, "verb"),
        ({"methodName": "io.k8s.core.v1.pods.binding.create"}, "verb"),
        ({"methodName": "io.k8s.core.v1.pods.update"}, "update"),
        ({"methodName": "io.k8s.core.v1.pods.patch"}, "update"),
        ({"methodName": "io.k8s.core.v1.configmaps.create"}, "resource"),
        ({"methodName": "io.k8s.batch.v1.jobs.create"}, "resource"),
        ({"methodName": "io.k8s.core.v1.pods"}, "resource"),
        ({"methodName": "google.container.v1.ClusterManager.CreateCluster"}, "resource"),
        ({"methodName": ""}, "resource"),
        ({"methodName": None}, "kind"),
        ({"methodName": 7}, "kind"),
        ({"request": None}, "level"),
        ({"request": "a pod"}, "level"),
        ({"request": {"spec": 7}}, None),
        ({"resourceName": 7}, None),
        ({"resourceName": "core/v1/namespaces"}, None),
        ({"resourceName": "core/v1/namespaces/kube-system/pods/x"}, "excluded"),
        ({"authenticationInfo": "nobody"}, None),
        ({"authenticationInfo": {"principalEmail": ["x"]}}, None),
        ({"response": [], "status": 3}, None),
        ({"status": {"code": 7}, "response": {"kind": "Status", "code": "403"}}, None),
    ],
)
def test_other_methods_and_wrong_types_have_their_reason(changes: Raw, reason: str | None) -> None:
    """None: a creation all the same, of which less is known."""
    entry = cloud_entry(audited(pod()))
    entry["protoPayload"] |= changes
    found = read(entry)
    assert (found if isinstance(found, str) else None) == reason


def test_what_lasts_has_one_end() -> None:
    """Of two entries of one request the first is not its end; one that has no operation is whole."""
    entry = cloud_entry(audited(pod()))
    assert read(entry | {"operation": {"first": True}}) == "stage"
    assert isinstance(read(entry | {"operation": {"last": True}}), Creation)
    assert isinstance(read({key: value for key, value in entry.items() if key != "operation"}), Creation)


def test_other_logs_pass_as_they_are() -> None:
    """An entry with another payload, or none."""
    entries: list[Raw] = [{"protoPayload": None}, {"protoPayload": []}, {"jsonPayload": {"message": "x"}}, {"textPayload": "x"}]
    for entry in entries:
        assert event(entry) is entry


def test_a_log_that_is_cut_loses_the_cut_line_alone(tmp_path: Path) -> None:
    """As with the API server's own."""
    one, two, three = (lines(cloud_entry(audited(pod(), number))).encode() for number in range(3))
    file = tmp_path / "sink.json"
    file.write_bytes(one[20:] + two + three[:-30])
    found, unread = values(file)
    assert [one["auditID"] for one in found if isinstance(one, dict)] == ["id-1"]
    assert unread == ["beginning", "end"]


NAMES = st.text(max_size=8) | st.sampled_from(["kind", "code", "@type"])
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
FIELDS = ["methodName", "resourceName", "request", "response", "authenticationInfo", "status", "@type"]


@settings(max_examples=count(60, 2000))
@given(st.dictionaries(st.sampled_from(FIELDS), ANY), st.dictionaries(st.sampled_from(["insertId", "labels", "operation"]), ANY))
def test_whatever_stands_there_is_read_or_has_a_reason(payload: Raw, changes: Raw) -> None:
    """No value of any field breaks the reading of the others."""
    entry = cloud_entry(audited(pod())) | changes
    entry["protoPayload"] |= payload
    assert isinstance(read(json.loads(json.dumps(entry))), (Creation, str))
