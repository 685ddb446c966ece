"""The registration that is shipped, before a real API server."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.testcluster.controlplane.cluster import Cluster

SHIPPED = Path(__file__).parents[3] / "deploy" / "chart" / "files" / "webhooks-claims-fail.yaml"


def test_the_shipped_registration_is_accepted(cluster: Cluster) -> None:
    """By Service, on a dry run: fields, CEL conditions and their cost. Nothing is dropped of what it says, and nothing is warned of."""
    for value in yaml.safe_load_all(SHIPPED.read_text()):
        reply = cluster.api.try_create(value, dry_run=True)
        assert (reply.ok, reply.warnings) == (True, ()), reply.message
        stored = {webhook["name"]: webhook for webhook in reply.body["webhooks"]}
        for webhook in value["webhooks"]:
            assert {key: stored[webhook["name"]].get(key) for key in webhook} == webhook


def test_a_broken_condition_is_denied(cluster: Cluster) -> None:
    """The API server does compile them: the same file with one of them cut short does not pass."""
    value = next(yaml.safe_load_all(SHIPPED.read_text()))
    value["webhooks"][0]["matchConditions"][-1]["expression"] += " &&"
    reply = cluster.api.try_create(value, dry_run=True)
    assert reply.status == 422
    assert "matchConditions[1].expression" in reply.message
