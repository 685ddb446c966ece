"""Runtime class: a GPU pod runs by the runtime that its platform has for GPUs.

Reads   spec.runtimeClassName
Writes  spec.runtimeClassName, where there is none: ``default.runtimeClass``. The API server's own RuntimeClass
        admission sets overhead and nodes of the class afterwards, for it is called again once a webhook has changed a
        pod (k8s.io/apiserver pkg/admission/plugin/webhook/mutating/reinvocationcontext.go)
Judges  nothing
Never   changes one that is written, that of a DaemonSet's pod or of a mirror pod
"""

from __future__ import annotations

from collections.abc import Iterator

from kube.tree import Path
from policies.planning.plan import Plan
from policies.request import Request
from policies.verdict import Edit, Remark

NAME = "runtime_class"
_PATH: Path = ("spec", "runtimeClassName")


def mutate(request: Request, plan: Plan) -> Iterator[Edit | Remark]:
    """Write the class, or tell the platform team that its policies differ."""
    default = plan.settings.running.runtime_class
    if default is None or not plan.actor.fills or plan.pod.spec.get("runtimeClassName"):
        return
    if default.value is None:
        yield default.differs("runtimeClass", NAME)
    else:
        yield Edit(op="add", path=_PATH, value=default.value, rule=NAME, policies=default.policies)
