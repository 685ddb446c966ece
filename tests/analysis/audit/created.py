"""Pods as they are created and as the API server has them afterwards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from analysis.audit.stored_pod import stored, widest
from kube.pod import REQUIRED, PodError
from policies.engine import evaluate
from policies.request import Request
from policies.state.snapshot import NamespaceFacts
from policies.verdict import Verdict
from tests.support.generators.random_worlds import catalog
from tests.support.generators.strategies import Case

Raw = dict[str, Any]
WIDE = widest(catalog())


def as_stored(pod: Raw, namespace: str, node: str = "") -> Raw:
    """As the API server has it once a scheduler has bound it."""
    spec = {**pod["spec"], **({"nodeName": node} if node else {})}
    return {**pod, "metadata": {**pod["metadata"], "namespace": namespace, "name": "p", "uid": "u"}, "spec": spec}


def created(case: Case) -> tuple[Request, Verdict, NamespaceFacts] | None:
    """The request of one whose account is known, and the verdict on it; None for what no API server would store."""
    facts, asked = case.world.snapshot.facts_for(case.request.namespace), case.request
    if asked.pod.get("spec", {}).get("nodeName"):
        return None
    try:
        known = stored(as_stored(asked.pod, asked.namespace), WIDE).request()
        request = replace(
            asked, pod=_without_empty(asked.pod), user=known.user, groups=known.groups, phase="mutate", operation="CREATE", old_pod=None
        )
        return request, evaluate(request, facts), facts
    except (PodError, AttributeError, TypeError, KeyError):
        return None


def _without_empty(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_empty(one) for one in value]
    if not isinstance(value, dict):
        return value
    parts = ("annotations", "labels", "tolerations", "nodeSelector", "affinity", "nodeAffinity", REQUIRED, "limits", "requests")
    found = {key: _without_empty(one) for key, one in value.items()}
    return {key: one for key, one in found.items() if key not in parts or one}
