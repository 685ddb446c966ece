"""Where a pod could run in a cluster, read as kube-scheduler's filters and Karpenter read it. Pure, of Kubernetes
objects as they are; nothing here places a pod.

How to use it::

    from policies.placement.fleet import best, blockers, can_ever, fleet_of
    from kube.node import occupant
    from kube.scheduling import wants

    places = fleet_of(objects, catalog=catalog, tables=snapshot.tables, occupants=filter(None, map(occupant, pods)))
    pod = wants(manifest)                       # read once, for many places
    for group in places.groups:                 # nodes that are alike
        for node in group.nodes:
            blockers(pod, node, places)         # () if nothing is in the way
    for pool in places.pools:                   # Karpenter's NodePools
        blockers(pod, pool, places)
    best(pod, places)                           # now, later, unknown, never
    can_ever(pod, places)                       # False only if it is certain
    pod.unjudged                                # what kube-scheduler judges too, and nothing here

A Node needs metadata.name, metadata.labels, spec.taints, spec.unschedulable, status.allocatable, status.capacity and
status.conditions; a NodePool its metadata.name, spec, status.resources and status.conditions. A ``Blocker`` is data:
kind, key, what the pod asks, what the place has, the path in the pod, whether it may end by itself, and whether it is certain
or something unknown may prove it wrong. Unknown is never "impossible".

Checked are the filters NodeUnschedulable, NodeName, TaintToleration, NodeAffinity, NodePorts and NodeResourcesFit
(k8s.io/kubernetes pkg/scheduler/framework/plugins). Not judged, and named in ``Wants.unjudged``: affinity between pods,
topology spread, volumes, resource claims, scheduling gates. Not known here: an affinity that the scheduler's own
configuration adds, resources that it is configured to leave to an extender, and what preemption would make room for.
"""
