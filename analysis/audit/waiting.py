"""Why a stored pod waits for a node, in one word: who decides on its place, or what is in its way where it comes nearest. It is told as far
as an audit knows the cluster: by labels, taints and devices of nodes, and by NodePools; not by what is free of CPU and memory."""

from __future__ import annotations

from typing import Literal, get_args

from kube.pod import DEFAULT_SCHEDULER, Pod
from kube.scheduling import Blocker, wants
from policies.planning.plan import review_pod
from policies.pods.projection import extract
from policies.request import Request
from policies.rules.no_place import nearest_place
from policies.state.snapshot import NamespaceFacts

Waits = Literal["gated", "scheduler", "claims", "capacity", "taint", "label", "resource", "machines", "limits", "static", "unknown"]
"""``gated``: a scheduling gate holds it, mostly a queue's. ``scheduler``: another scheduler than Kubernetes' own decides. ``claims``:
resource claims do. ``capacity``: somewhere nothing known is in its way, so what is there is taken, starts, or is not bought yet. The others
are in its way where it comes nearest (``kube.scheduling``): ``taint``, ``label``, ``resource`` (no node has so many), and
of NodePools ``machines``, ``limits``, ``static``. ``unknown``: there may be places that are not known here, or it can't be told."""
WAITS: tuple[Waits, ...] = get_args(Waits)


def reason(request: Request, facts: NamespaceFacts) -> Waits:
    """Return why a pod without a node waits. ``request``: the pod as it is stored. Raises PodError."""
    spec = request.pod["spec"]
    if spec.get("schedulingGates"):
        return "gated"
    pod = Pod(extract(request.pod, facts.reads))
    if wants(request.pod).scheduler != DEFAULT_SCHEDULER:
        return "scheduler"
    if pod.claims:
        return "claims"
    found = nearest_place(review_pod(request, facts, pod), facts.snapshot)
    if found is None:
        return "unknown"
    return _word(found[0]) if found else "capacity"


def _word(blocker: Blocker) -> Waits:
    return next((one for one in WAITS if one == blocker.kind), "unknown")
