"""Updates of a pod by which it would be judged as another pod than it is.

Most updates are judged by what they add (``policies.rules``). Labels and annotations can be added, changed and taken
away at any time, and schedulers read those that are there when they place the pod.
"""

from __future__ import annotations

from kube.pod import Pod
from kube.tree import Raw
from policies.pods.permissions import FRACTION_DEVICES, FRACTIONS, annotated_fraction, flavored, fraction_keys


def as_asked(pod: Pod, old_pod: Raw | None) -> Pod:
    """Return the pod; one from which an update takes the last annotation that asks for a part of a GPU still has it."""
    old = Pod(old_pod).annotations if old_pod is not None and not annotated_fraction(pod) else {}
    if not (keys := fraction_keys(old)):
        return pod
    annotations = {**{key: old[key] for key in keys}, **pod.annotations}
    return Pod({**pod.raw, "metadata": {**pod.metadata, "annotations": annotations}})


def asks_anew(pod: Pod, old_pod: Raw | None, queues: tuple[str, ...]) -> bool:
    """Return whether an updated pod is judged as a new one: if it asks for another part of a GPU than before, or has left the queue
    system to which its placement was left. ``queues``: those whose flavors place pods."""
    old = Pod(old_pod or {})
    if flavored(old) in queues and flavored(pod) != flavored(old):
        return True
    if not annotated_fraction(pod):
        return False
    keys = (*FRACTIONS, *fraction_keys(pod.annotations), FRACTION_DEVICES)
    return any(old.annotations.get(key) != pod.annotations.get(key) for key in keys)
