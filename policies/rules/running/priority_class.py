"""Priority class: a GPU pod has the priority that its platform means for it.

Reads   spec.priorityClassName, spec.priority, spec.preemptionPolicy
Writes  spec.priorityClassName, where there is none: ``default.priorityClass``. The API server's Priority admission
        has by then written the priority of pods without a class; it denies a pod whose number is not that of its
        class, and is called again once a webhook has changed the pod: so what it wrote is removed
        (k8s.io/kubernetes plugin/pkg/admission/priority/admission.go, admitPod)
Judges  nothing
Never   changes one that is written, or that the API server gave as the cluster's default; gives by a GPUPolicy what
        no ClusterGPUPolicy allows
"""

from __future__ import annotations

from collections.abc import Iterator

from kube.pod import OF_NO_CLASS
from kube.tree import Path
from policies.messages import phrase
from policies.objects.wording import cut_text
from policies.planning.plan import Plan
from policies.request import Request
from policies.verdict import Edit, Remark, at_field

NAME = "priority_class"
_PATH: Path = ("spec", "priorityClassName")


def mutate(request: Request, plan: Plan) -> Iterator[Edit | Remark]:
    """Remove what the API server wrote of a pod without a class, and write the class."""
    running = plan.settings.running
    default = running.priority_class
    if default is None or not plan.actor.fills or plan.pod.spec.get("priorityClassName"):
        return
    if default.value is None:
        yield default.differs("priorityClass", NAME)
        return
    own = all(policy.startswith("GPUPolicy/") for policy in default.policies)
    if own and default.value not in running.priority_classes:
        found, on = phrase("class not allowed", name=cut_text(default.value, 40)), at_field("spec.default.priorityClass", default.policies)
        yield Remark(code="BERTH-225", found=found, rule=NAME, policies=default.policies, fields=on)
        return
    for field in OF_NO_CLASS:
        if field in plan.pod.spec:
            yield Edit(op="remove", path=("spec", field), rule=NAME, policies=default.policies)
    yield Edit(op="add", path=_PATH, value=default.value, rule=NAME, policies=default.policies)
