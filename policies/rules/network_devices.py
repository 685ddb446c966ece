"""Network devices: a container that takes a whole machine's GPUs takes its fast network too, without which training
over several machines goes at a fraction of its speed.

Reads   resources of containers, and the machines on which the plan lets the pod run
Writes  all network devices of the machine in requests and limits of the container with its GPUs (``default.networkDevices``)
Checks  nothing
Never   asks for some of a machine's devices; adds to a pod that names any; acts where machines differ or are not known
"""

from __future__ import annotations

from collections.abc import Iterator

from catalog import Network
from kube.pod import is_requested
from policies.messages import cut_text, phrase
from policies.planning.plan import Plan
from policies.planning.requirements import Demands
from policies.request import Request
from policies.verdict import Edit, Remark, at_field

NAME = "network_devices"


def mutate(request: Request, plan: Plan) -> Iterator[Edit | Remark]:
    """Write the devices, or tell the author that they depend on the machine."""
    policies = plan.demands.merged(_policies)
    if not policies or plan.actor.resources != "yes" or plan.slice is not None or len(plan.asked) != 1:
        return
    asked = plan.asked[0]
    having = [container for container in plan.pod.containers if is_requested(container, asked.resource.name)]
    if len(having) != 1 or having[0].init or asked.count.least != asked.count.most:
        return
    kinds, others = _networks(plan, asked.resource.name)
    named = {name for _, network in kinds for name, _ in network}
    if {count for count, _ in kinds} != {asked.count.least} or any(
        name in amounts for c in plan.pod.containers for amounts in (c.limits, c.requests) for name in named
    ):
        return
    if others or len(kinds) > 1:
        texts = sorted(f"{count} {name}" for _, network in kinds for name, count in network)
        found = phrase("text", kinds=cut_text(", ".join([*texts, *(["none known"] if others else [])]), 60), policies=policies)
        yield Remark(code="BERTH-229", found=found, rule=NAME, fields=at_field("spec.default.networkDevices", policies))
        return
    ((_, network),) = kinds
    for name, number in network:
        for side in ("limits", "requests"):
            path = (*having[0].path, "resources", side, name)
            yield Edit(op="add", path=path, value=str(number), rule=NAME, policies=policies)


def _policies(demands: Demands) -> tuple[str, ...]:
    return tuple(sorted(compiled.id for scope in demands.scopes for compiled in scope if compiled.policy.default.network_devices))


def _networks(plan: Plan, resource: str) -> tuple[set[Network], bool]:
    """Return the networks of the machines that the pod may run on, and whether there are others that have none or of which
    it is not known. Machines that share their GPUs in time are left aside: nobody has such a one alone."""
    names = list(plan.space.wanted)
    found, others = set[Network](), resource not in names
    for cell in plan.space.cells if resource in names else ():
        rows = cell.offered[names.index(resource)] & plan.inside & ~cell.table.by_sharing.get("TimeSliced", 0)
        for network, having in cell.table.by_network.items():
            if rows & having:
                found.add(network)
                rows &= ~having
        others = others or bool(rows)
    return found, others
