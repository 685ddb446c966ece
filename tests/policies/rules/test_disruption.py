"""Disruption: how long a value protects for, as whoever reads it reads it."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

import pytest

from kube import duration
from policies.planning.requirements import FOREVER
from policies.rules.disruption import lasts
from tests.support.cases import golden

PROTECTIONS = {(p.where, p.key): p for p in golden.catalog_with().protections}
KARPENTER, AUTOSCALER = ("annotations", "karpenter.sh/do-not-disrupt"), ("annotations", "cluster-autoscaler.kubernetes.io/safe-to-evict")
CAST = ("labels", "autoscaling.cast.ai/removal-disabled")


@pytest.mark.parametrize(
    ("where", "value", "seconds"),
    [
        (KARPENTER, "true", FOREVER),
        (KARPENTER, "True", 0),
        (KARPENTER, "", 0),
        (KARPENTER, "90m", 5400),
        (KARPENTER, "1500ms", Fraction(3, 2)),
        (KARPENTER, "-90m", 0),
        (KARPENTER, "0", 0),
        (KARPENTER, "999999999h", 0),
        (KARPENTER, "1s" * 600, duration.LONGEST),
        (AUTOSCALER, "false", FOREVER),
        (AUTOSCALER, "False", 0),
        (AUTOSCALER, "48h", 0),
        (CAST, "true", FOREVER),
        (CAST, "1", FOREVER),
        (CAST, "until Monday", FOREVER),
        (CAST, "false", 0),
        (CAST, "", 0),
    ],
    ids=lambda value: str(value)[:40],
)
def test_how_long_a_value_protects(where: tuple[Literal["annotations", "labels"], str], value: str, seconds: Fraction | int) -> None:
    """Exactly where the reader's source is known; where it is not, all that is not plainly false lasts for ever."""
    assert lasts(PROTECTIONS[where], value) == seconds
