"""The metrics of the CA that all replicas share."""

from __future__ import annotations

import pytest

from webhook.reload.shared_certificate import CaState, collect_ca


@pytest.mark.parametrize(
    ("state", "wanted"),
    [
        (None, {}),
        ((1.0, True), {"berth_ca_expiry_timestamp_seconds": 1.0, "berth_ca_trusted": 1.0}),
        ((1.0, False), {"berth_ca_expiry_timestamp_seconds": 1.0, "berth_ca_trusted": 0.0}),
        ((1.0, None), {"berth_ca_expiry_timestamp_seconds": 1.0, "berth_ca_trusted": 0.0}),
    ],
    ids=str,
)
def test_a_ca_without_a_registration_is_not_trusted(state: CaState | None, wanted: dict[str, float]) -> None:
    """The metric is 0 in place of vanishing: an alert compares it with 0."""
    assert {sample.name: sample.value for metric in collect_ca(state) for sample in metric.samples} == wanted
