"""The sentences of findings, made last: for each kind a title, what is so, and what to type next. A place ``{x}`` is
filled with the finding's value of that name; nothing reads a sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from analysis.scan import obstacles
from analysis.scan.finding import Finding, Kind, Value
from policies.facts.device_modes import DISCOVER, keep_one


class FindingTexts(NamedTuple):
    """The texts of one kind."""

    title: str
    """The heading under which findings of the kind stand."""
    fact: str
    advice: str
    why: str
    """Why it matters: one sentence under the heading."""


ROWS: Mapping[Kind, FindingTexts] = {
    "pending": FindingTexts(
        "Pending GPU pods",
        "{reasons_text}{room_text}",
        "berth why pod/{pod} -n {namespace}",
        "A pending pod does no work, and its author sees only Pending.",
    ),
    "never-fits": FindingTexts(
        "Pods that can never be scheduled",
        "{reasons_text}",
        "berth why pod/{pod} -n {namespace}",
        "No node, even when empty, and no NodePool has what these pods request, so they stay pending forever.",
    ),
    "rollout-waits": FindingTexts(
        "Rolling updates that wait for their own old pods",
        "Deployment {deployment} ends no old pod before a new one is ready (maxSurge {surge}, maxUnavailable 0), and its old pods "
        "({old}) hold the {resource} that is missing",
        "in Deployment {deployment}, set spec.strategy.rollingUpdate to maxSurge: 0 and maxUnavailable: 1, so that an old pod ends first",
        "The new pod needs the GPU of an old one, which ends only once the new one is ready: the update never ends.",
    ),
    "misspelt-name": FindingTexts(
        "Misspelled resource names",
        "requests {name}, which no node has",
        "in the manifest, write {right} instead of {name}",
        "The API server accepts any resource name; the pod stays pending forever.",
    ),
    "run-on-spot": FindingTexts(
        "Long runs on spot capacity",
        "{length_text} on spot nodes of {group_text}",
        "berth scan --suggest DIR writes a policy in Audit that moves runs over 2h to on-demand capacity (default.longRuns)",
        "A spot node can be reclaimed with 15 to 120 seconds' notice. The run then restarts from its last checkpoint.",
    ),
    "run-unprotected": FindingTexts(
        "Unprotected runs",
        "lacks {lacks_text}",
        "set it in the pod template; berth scan --suggest DIR writes a policy in Audit that does (default.protectFor, default.gracePeriod)",
        "Consolidation and scale-down evict pods without protection, and 30 seconds are too short for most checkpoints.",
    ),
    "notebook-on-large-gpu": FindingTexts(
        "Notebooks on large GPUs",
        "uses {each} x {model_text}",
        "give notebooks a smaller or shared GPU; berth scan --suggest DIR writes a policy in Audit if the cluster has one",
        "A notebook computes for minutes a day but occupies its GPU all day.",
    ),
    "nodes-untainted": FindingTexts(
        "GPU nodes without a taint",
        "no taint; {plain_text} without a GPU on them{owners_text}",
        "add the taint nvidia.com/gpu=present:NoSchedule to the node group; first put ClusterGPUPolicy berth-default in Enforce, "
        "so that GPU pods tolerate it",
        "Pods without a GPU use the CPU and memory that GPU pods need, and prevent scale-down of the node.",
    ),
    "pool-consolidates": FindingTexts(
        "NodePools that consolidate nodes with runs",
        "consolidationPolicy {policy} after {after}, with {runs_text} on its nodes",
        "set spec.disruption.consolidationPolicy: WhenEmpty, or annotate every run with karpenter.sh/do-not-disrupt (default.protectFor)",
        "Karpenter replaces a partly used node with a cheaper node, and evicts pods without karpenter.sh/do-not-disrupt.",
    ),
    "pool-expires": FindingTexts(
        "NodePools whose nodes expire",
        "expireAfter {after}{default_text}, with {runs_text} on its nodes",
        "set spec.template.spec.expireAfter{most_text} longer than the longest run",
        "Expiry ignores karpenter.sh/do-not-disrupt: Karpenter drains the node while pods run there.",
    ),
    "pool-no-grace": FindingTexts(
        "NodePools without terminationGracePeriod",
        "no terminationGracePeriod, with {runs_text} on its nodes",
        "set spec.template.spec.terminationGracePeriod to the time of the longest checkpoint, for example 1h",
        "A node that expires or is interrupted waits for pods with karpenter.sh/do-not-disrupt without a limit, and costs money meanwhile.",
    ),
    "pool-short-grace": FindingTexts(
        "NodePools that shorten the grace period of pods",
        "terminationGracePeriod {grace}, but {longer_text} on its nodes have a grace period of up to {longest}s",
        "set spec.template.spec.terminationGracePeriod above {longest}s",
        "When a drain begins, Karpenter deletes pods with a longer grace period early, so that they end in time.",
    ),
    "pool-no-gpu-limit": FindingTexts(
        "NodePools without a limit",
        "spec.limits bounds no GPU machines{limits_text}",
        "set spec.limits, for example {resource}: 64",
        "A Job with a typo in its parallelism can start GPU machines up to the cloud quota.",
    ),
    "pool-untainted": FindingTexts(
        "GPU NodePools without a taint",
        "spec.template.spec.taints has no GPU taint",
        "first put ClusterGPUPolicy berth-default in Enforce, then add the taint {resource}=present:NoSchedule to "
        "spec.template.spec.taints",
        "Any pod can be scheduled there, and a NodePool without replicas may start a GPU machine for a pod without a GPU.",
    ),
    "pool-family-without-gpu": FindingTexts(
        "NodePools with machines that report no GPU",
        "{families_text}: EC2 reports no GPU for these machines{all_text}",
        "use families with whole GPUs (g6, g5), or add nvidia.com/gpu with a NodeOverlay",
        "Karpenter does not start these machines for a pod that requests nvidia.com/gpu.",
    ),
    "pool-unknown-machine": FindingTexts(
        "NodePools with unknown machines",
        "requires {unknown} in {key}, but no GPU machine in the catalog matches{nothing_text}",
        "write {nearest} instead of {unknown}; if the machine is newer than the catalog, add it with --catalog FILE",
        "Karpenter accepts any value, and starts no machine for a value that does not exist.",
    ),
    "node-class-latest-image": FindingTexts(
        "Node classes that always use the latest image",
        "alias {alias}, used by NodePools {pools_text}, with {runs_text} on their nodes",
        "pin the image (spec.amiSelectorTerms: [{{alias: {alias_family_text}@vYYYYMMDD}}]), and update it when no run is on the nodes",
        "With each image release the nodes drift: Karpenter replaces them during runs, often with another driver version.",
    ),
    "gpus-missing": FindingTexts(
        "GPU nodes without all of their GPUs",
        "{label_text} says that a node has {expected_text}, and it offers {offered_text}; {cause_text}",
        "{repair_text}",
        "Such a node is paid for and runs no GPU pod; Karpenter counts on it, and creates no other one, until it is initialized.",
    ),
    "gpus-unhealthy": FindingTexts(
        "GPUs that are unhealthy",
        "{resources_text}: {capacity} on the node, {allocatable} allocatable",
        "kubectl get pods -A -o wide --field-selector spec.nodeName={pod} shows whether the device plugin runs there; if it does, its log "
        "and dmesg on the node have the error (for NVIDIA an Xid), and the node must be replaced or its GPU reset",
        "The device plugin has stopped, or reports broken devices: no pod can get them.",
    ),
    "slices-missing": FindingTexts(
        "MIG slices that a node does not offer",
        "{label_text}, and the node offers {offered_text}",
        "restart the device plugin there: kubectl delete pod -n gpu-operator -l app=nvidia-device-plugin-daemonset "
        "--field-selector spec.nodeName={pod}; then check the MIG manager's log: kubectl logs -n gpu-operator -l app=nvidia-mig-manager",
        "Pods that request these slices stay pending, although the labels show them.",
    ),
    "advertised-twice": FindingTexts(
        "GPUs that are advertised twice",
        "{resources_text} {offered} by the device plugin, and {published} devices of {driver} in ResourceSlices",
        "{keep_text}",
        "The device plugin and the DRA driver can give the same GPU to two pods, and one of the pods fails to start.",
    ),
    "labels-unmaintained": FindingTexts(
        "Labels without GPU Feature Discovery",
        "{labels_text}, and the GPU Operator runs no GPU Feature Discovery",
        DISCOVER + "; to remove old labels: kubectl label node {pod} nvidia.com/gpu.product- nvidia.com/gpu.family-",
        "Selectors on these labels match old or no nodes. Berth writes no terms on them unless a node has maintained labels.",
    ),
    "labels-without-devices": FindingTexts(
        "GPU labels on nodes without GPUs",
        "nvidia.com/gpu.count {labels} ({product}), and no nvidia.com resource in the node's capacity{published_text}",
        "check that the device plugin runs there; after a move to DRA, remove the labels: kubectl label node NODE "
        "nvidia.com/gpu.product- nvidia.com/gpu.count-",
        "Selectors on these labels match nodes on which the pod cannot run.",
    ),
    "labels-disagree": FindingTexts(
        "Labels that do not match the node",
        "{label} is {says}; the node: {is}",
        "restart GPU Feature Discovery there: kubectl delete pod -n gpu-operator -l app=gpu-feature-discovery "
        "--field-selector spec.nodeName=NODE",
        "Selectors and policies on these labels place pods on the wrong GPU.",
    ),
    "mig-not-configured": FindingTexts(
        "MIG that is not configured",
        "nvidia.com/mig.config.state is {state}{config_text}",
        "check the MIG manager's log: kubectl logs -n gpu-operator -l app=nvidia-mig-manager; no pod may use a GPU there meanwhile",
        "The configured slices do not exist, so pods that request them stay pending.",
    ),
    "unlisted-name": FindingTexts(
        "Accelerators that Berth's webhooks do not cover",
        "on {nodes_text}, requested by {pods_text}{classes_text}",
        "add it with berth webhooks --resource-name {name}, or to a --catalog file",
        "The registration lists the resource names of the catalog. Berth is not called for pods with other names.",
    ),
    "quota-counts-nothing": FindingTexts(
        "Quotas that limit nothing",
        "spec.hard has {entries}, for which no pod counts",
        "{right_text}; then run: kubectl describe resourcequota {name} -n {namespace}",
        "Of extended resources a ResourceQuota counts requests.NAME alone. The API server stores other entries without a warning.",
    ),
}
ORDER: tuple[Kind, ...] = tuple(ROWS)
"""Kinds in the order of the report: what waits first, then what may be lost, what is wasted, what is set wrongly."""


def title(kind: Kind) -> str:
    """Return the heading of a kind."""
    return ROWS[kind].title


def why(kind: Kind) -> str:
    """Return why findings of a kind matter."""
    return ROWS[kind].why


def fact(finding: Finding) -> str:
    """Return what is so, as a part of a sentence."""
    return ROWS[finding.kind].fact.format_map(_places(finding))


def advice(finding: Finding) -> str:
    """Return what to type next."""
    return ROWS[finding.kind].advice.format_map(_places(finding))


def _places(finding: Finding) -> dict[str, object]:
    values, where = finding.values, finding.where
    pod = finding.names[0] if finding.names else where.name
    out: dict[str, object] = {"pods": finding.pods, "nodes": finding.nodes, "name": where.name, "namespace": where.namespace, "pod": pod}
    out |= {key: _listed(value) if isinstance(value, tuple) and key != "reasons" else value for key, value in values.items()}
    out |= {f"{key}_text": text({**values, "node": pod}) for key, text in _TEXTS.items()}
    kept = keep_one(str(values.get("driver")), pod)
    room = values.get("room")
    few = isinstance(room, int) and 0 <= room < finding.pods
    out["room_text"] = f"; there is room for {room} of these {finding.pods} pods now" if few and finding.pods > 1 else ""
    out |= {"nodes_text": _count(finding.nodes, "node"), "pods_text": _count(finding.pods, "pod"), "keep_text": kept}
    return out


def _listed(value: Value) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _owners(values: Mapping[str, Value]) -> str:
    return f": {_listed(owners)}" if (owners := values.get("owners", ())) else ""


def _devices(number: object, values: Mapping[str, Value], few: str) -> str:
    """Return ``4 nvidia.com/gpu``. ``few``: the word for a number that is 0 or not known."""
    return f"{number or few} {_listed(values.get('resources', ())) or 'accelerators'}"


def _cause(values: Mapping[str, Value]) -> str:
    """Return what may be the cause: that what offers them does not run there, or the driver."""
    plugin = values.get("plugin", "")
    match values.get("cause"):
        case "kept-off":
            return f"DaemonSet {plugin} does not run there: {obstacles.describe_obstacles(values)}"
        case "elsewhere":
            return f"DaemonSet {plugin} runs on other nodes, but not there"
        case "runs":
            return f"DaemonSet {plugin} runs there, so its driver or the device itself is the cause"
        case "mig":
            return f"its MIG configuration is {values.get('state')} (label nvidia.com/mig.config.state)"
        case "none":
            return f"no DaemonSet of a device plugin{_of_vendor(values)} was found"
    return "its device plugin does not run there, or its driver or the device fails"


def _of_vendor(values: Mapping[str, Value]) -> str:
    return f" for {values['vendor']}" if values.get("vendor") else ""


def _repair(values: Mapping[str, Value]) -> str:
    """Return what to type next about GPUs that a node does not offer."""
    namespace, _, plugin = str(values.get("plugin", "")).partition("/")
    match values.get("cause"):
        case "kept-off" | "elsewhere":
            return f"kubectl edit daemonset {plugin} -n {namespace}, and let it run there: add the toleration, or the label to the node" + (
                " (the GPU Operator: spec.daemonsets.tolerations of its ClusterPolicy)" if values.get("vendor") == "nvidia" else ""
            )
        case "runs":
            return f"kubectl logs -n {namespace} daemonset/{plugin} (the pod on that node), and nvidia-smi or its counterpart on the node"
        case "mig":
            return "kubectl logs -n gpu-operator -l app=nvidia-mig-manager shows why; no pod may use a GPU there meanwhile"
        case "none":
            return f"install the device plugin{_of_vendor(values)} (for NVIDIA the GPU Operator, which brings the driver too)"
    return (
        f"kubectl get pods -A -o wide --field-selector spec.nodeName={values.get('node')} shows whether a device plugin runs there; "
        "if none does, compare its tolerations with the node's taints; if one does, read its log"
    )


def _limits(values: Mapping[str, Value]) -> str:
    return f": it limits only {_listed(limits)}" if (limits := values.get("limits", ())) else " (it is empty)"


def _right_quota(values: Mapping[str, Value]) -> str:
    """Return what to do with entries that count nothing: ``right`` has those that the quota lacks."""
    right = values.get("right", ())
    return f"write {_listed(right)} instead" if right else f"remove {_listed(values.get('entries', ()))}"


_TEXTS: Mapping[str, Callable[[Mapping[str, Value]], str]] = {
    "reasons": obstacles.describe_obstacles,
    "length": lambda values: {"says": "expected to run for more than 2h,", "runs": "running for more than 2h,"}.get(
        str(values.get("length")), ""
    ),
    "group": lambda values: _group(values.get("group", ())),
    "lacks": lambda values: " and ".join(_lack(name) for name in _each(values.get("lacks", ()))) + _removed(values),
    "model": lambda values: f"{values['model']} ({values['memory']} GB)" if values.get("model") else "GPU",
    "owners": _owners,
    "plain": lambda values: _count(values.get("plain"), "pod"),
    "runs": lambda values: _count(values.get("runs"), "run"),
    "longer": lambda values: _count(values.get("longer"), "run"),
    "limits": _limits,
    "default": lambda values: " (the default, because none is set)" if values.get("default") else "",
    "most": lambda values: f" (at most {values['most']} here)" if values.get("most") else ": Never, or",
    "families": lambda values: _listed(values.get("families", ())),
    "all": lambda values: ", and the NodePool allows no other machine" if values.get("all") else "",
    "nothing": lambda values: ", so the NodePool can create no node" if values.get("all") else "",
    "pools": lambda values: _listed(values.get("pools", ())),
    "alias_family": lambda values: str(values.get("alias", "")).partition("@")[0],
    "resources": lambda values: _listed(values.get("resources", ())),
    "published": lambda values: f"; a DRA driver publishes {values['published']} devices instead" if values.get("published") else "",
    "labels": lambda values: f"labels of an earlier run ({values['product']})" if values.get("product") else "no labels with the GPU model",
    "config": lambda values: f", for the configuration {values['config']}" if values.get("config") else "",
    "label": lambda values: f"label {values['label']}={values['says']}" if values.get("label") else "",
    "expected": lambda values: _devices(values.get("expected"), values, "some"),
    "offered": lambda values: _devices(values.get("offered"), values, "no"),
    "cause": _cause,
    "repair": _repair,
    "right": _right_quota,
    "classes": lambda values: f", of DeviceClasses {_listed(values['classes'])}" if values.get("classes") else "",
}


def _count(number: object, what: str) -> str:
    return f"{number or 'no'} {what}" if number in (0, 1) else f"{number} {what}s"


def _each(value: Value) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, tuple) else (str(value),)


def _group(value: Value) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _removed(values: Mapping[str, Value]) -> str:
    return f" ({_listed(removed)} is an old name that is not read any more)" if (removed := values.get("removed", ())) else ""


def _lack(name: str) -> str:
    return "a grace period over 30s for a checkpoint (terminationGracePeriodSeconds)" if name == "terminationGracePeriodSeconds" else name


def describe_subject(finding: Finding) -> str:
    """Return the place: ``Job research/train``, ``NodePool gpu``, ``pods in web``."""
    kind, namespace, name = finding.where
    if not name:
        return f"pods without an owner in {namespace}"
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def describe_weight(finding: Finding) -> str:
    """Return what hangs on it: ``(2 pods, 16 GPUs, 43.92 USD/h)``."""
    parts = [_count(finding.nodes, "node")] if finding.nodes else []
    parts += [_count(finding.pods, "pod")] if finding.pods else []
    parts += [_count(finding.gpus, "GPU")] if finding.gpus else []
    parts += [f"{finding.usd:.2f} USD/h"] if finding.usd is not None else []
    return f" ({', '.join(parts)})" if parts else ""
