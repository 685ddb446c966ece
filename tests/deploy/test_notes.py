"""What Helm says after an installation: what to do next, and how to switch Berth off."""

from __future__ import annotations

import pytest

from policies.objects.crd import NAMES
from policies.policy import GROUP
from tests.testcluster.addons.helm import CHART, helm

BRAKE = "kubectl delete mutatingwebhookconfiguration,validatingwebhookconfiguration zz-berth"


def notes(*options: str) -> str:
    """Of a first installation under the name gpus, in the namespace platform."""
    said = helm("install", "gpus", str(CHART), "--namespace=platform", "--dry-run=client", *options)
    return said.rpartition("NOTES:")[2]


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ([], "helm -n platform upgrade gpus CHART --reset-then-reuse-values --set library.policies='{berth-default}'"),
        (["--set", "library.policies={training}"], "library.policies (training) are NOT installed yet"),
        (["--set", "catalog.notAccelerators[0].name=a.b/c"], "--set-file registration.manifests=FILE"),
        (["--set", "certificates.source=secret,certificates.secretName=mine"], "Berth waits for the Secret platform/mine"),
    ],
    ids=["no policies", "policies that wait", "a catalog", "a Secret"],
)
def test_what_to_do_next_is_said(options: list[str], wanted: str) -> None:
    """By the names of this release, and with the emergency brake in one line."""
    said = notes(*options)
    assert wanted in said
    assert BRAKE in said
    assert all(f"upgrade gpus CHART --reset-then-reuse-values --set maxMode={mode} --wait\n" in said for mode in ("Audit", "Enforce"))
    listed = f"kubectl get {','.join(f'{names.plural}.{GROUP}' for names in NAMES.values())} -A\n"
    assert listed in said, "a category fails until kubectl has discovered the kinds"
    assert "deployment/gpus-berth" in said
