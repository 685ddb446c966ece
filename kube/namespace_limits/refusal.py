"""Why the API server refuses a pod for what its namespace allows, as data."""

from __future__ import annotations

from typing import Literal, NamedTuple

from kube.tree import Path

RefusalKind = Literal["exceeded", "some", "unset", "min", "max", "ratio", "default"]
"""Of a ResourceQuota: ``exceeded``: the pod requests more than is left; ``some``: there is room for some pods of the workload only;
``unset``: every container must have an amount of the resource. Of a LimitRange: ``min``, ``max``, ``ratio``; ``default``: the limit
that it fills in is below the request."""


class Refusal(NamedTuple):
    """One amount that is refused. Amounts are in the units of ``kube.requests`` (CPU in thousandths)."""

    kind: RefusalKind
    name: str
    """Of the ResourceQuota or LimitRange."""
    resource: str
    """As the object writes it: ``requests.nvidia.com/gpu``."""
    need: int | None = None
    """What one pod, or the container, has of it; of a ratio its numerator. None if it has no amount where it must have one."""
    hard: int = 0
    """What the object allows."""
    used: int = 0
    """What other pods use of a quota; 0 where that is not known."""
    container: str = ""
    """The container that it is about; "" of the whole pod."""
    path: Path = ()
    """Where the amount stands in the pod, or would."""
    pods: int = 1
    """The pods of the workload."""

    @property
    def passing(self) -> bool:
        """True if the pod is created once others have ended."""
        return self.kind == "some" or (self.kind == "exceeded" and self.need is not None and self.need <= self.hard)
