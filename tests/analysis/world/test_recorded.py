"""Recorded creations under the policies of a world."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analysis.world.recorded import Recorded
from policies.document import InputError
from policies.policy import API_VERSION
from tests.support.console.asked import asked
from tests.support.console.worlds import world
from tests.support.generators.random_worlds import catalog
from tests.support.recorded import eks

REVIEWS = Path(__file__).resolve().parents[2] / "reviews"
EIGHT: dict[str, Any] = {
    "apiVersion": API_VERSION, "kind": "ClusterGPUPolicy", "metadata": {"name": "one"}, "spec": {"require": {"gpusPerPod": {"max": 1}}},
}  # fmt: skip


def test_what_would_have_been_denied_is_counted() -> None:
    """By policy and namespace, as many as switching the policy to Enforce denies."""
    recorded = Recorded([str(REVIEWS)], catalog())
    audit = world(eks.objects(), [EIGHT], recorded)
    assert audit.replayed is not None
    counted = audit.replayed.values()
    assert sum(one.denied for one in counted) > 0
    assert all(one.denied + one.changed <= one.pods for one in counted)
    enforced = world(eks.objects(), [{**EIGHT, "spec": {**EIGHT["spec"], "mode": "Enforce"}}], recorded)
    assert enforced.replayed is not None
    assert sum(one.denied for one in enforced.replayed.values()) == 0, "in Enforce it would do nothing more"
    text = asked(audit, "/impact/cell", policy="ClusterGPUPolicy/one").text
    assert f"this policy would have changed 0 and denied {sum(one.denied for one in counted)}" in text


def test_a_recording_without_creations_is_an_error(tmp_path: Path) -> None:
    """It says what reads it."""
    (tmp_path / "empty.json").write_text('{"kind": "Event", "apiVersion": "audit.k8s.io/v1"}\n')
    with pytest.raises(InputError, match="records no creation"):
        Recorded([str(tmp_path)], catalog())
