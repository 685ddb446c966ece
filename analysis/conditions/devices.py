"""Find devices that nodes offer twice: whatever policies count or place, two pods can get one GPU."""

from __future__ import annotations

from policies.facts.device_modes import offered_twice
from policies.state.snapshot import Snapshot


def advertised_twice(snapshot: Snapshot, namespace: str) -> tuple[str, ...]:
    """Return one sentence per DRA driver, for the cluster's policies: no team can fix it."""
    return () if namespace else tuple(offered_twice(one) for one in snapshot.advertised.twice)
