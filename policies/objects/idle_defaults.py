"""Defaults of a policy that can act on no pod that the policy matches: whoever reads the policy is warned of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kube.tree import Path, map_at

_DAEMON_SET = "DaemonSet"
_OF_DAEMON_SETS = frozenset({"acceleratorTaints", "tolerate", "capacity", "longRuns"})
"""The defaults that act on a pod of a DaemonSet (``policies.pods.actors.DAEMON``): its node is given, and it is no run. A capacity
adds the toleration of its taint."""


def find_idle_defaults(spec: Mapping[Any, Any]) -> Iterator[tuple[Path, str]]:
    """Yield (path, what is odd) of each default in the spec of a valid policy that can't act."""
    default, match = map_at(spec, "default"), map_at(spec, "match")
    if match.get("workloads") == [_DAEMON_SET]:
        names = sorted(default.keys() - _OF_DAEMON_SETS)
        if names:
            yield ("default",), f"{', '.join(names)}: no effect on pods of a {_DAEMON_SET}, which only get tolerations; remove it"
    least = map_at(match, "gpus").get("min")
    if "mig" in default and isinstance(least, int) and least > 1:
        yield ("default", "mig"), f"does nothing: a slice replaces one whole GPU, and match.gpus.min is {least}"
