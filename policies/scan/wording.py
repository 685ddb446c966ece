"""The sentences of findings, made last: for each kind a title, what is so, and what to type next. A place ``{x}`` is
filled with the finding's value of that name; nothing reads a sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from policies.modes.wording import DISCOVER, keep_one
from policies.scan import obstacles
from policies.scan.finding import Finding, Kind, Value


class Row(NamedTuple):
    """The texts of one kind."""

    title: str
    """The heading under which findings of the kind stand."""
    fact: str
    advice: str
    why: str
    """Why it matters: one sentence under the heading."""


ROWS: Mapping[Kind, Row] = {
    "pending": Row(
        "Pods that wait for a GPU",
        "{reasons_text}",
        "berth why pod/{pod} -n {namespace}",
        "A pod that waits computes nothing, and whoever made it reads only Pending.",
    ),
    "never-fits": Row(
        "Requests that nothing in the cluster can serve",
        "{reasons_text}",
        "berth why pod/{pod} -n {namespace}",
        "Such a pod waits for ever: no node, empty or not, and no NodePool that could be read has what it asks for.",
    ),
    "misspelt-name": Row(
        "Misspelt resource names",
        "asks for {name}, which nothing offers",
        "write {right} in place of {name} in the manifest",
        "The API server stores any name; the pod waits for ever.",
    ),
    "run-on-spot": Row(
        "Long runs on spot capacity",
        "{length_text} on spot machines of {group_text}",
        "berth scan --suggest DIR writes a policy for them (default.longRuns: on-demand capacity for runs over 2h), in Audit",
        "A spot machine goes at 15 to 120 seconds' notice, and the run starts again from its last checkpoint.",
    ),
    "run-unprotected": Row(
        "Runs that an autoscaler may cut short",
        "lacks {lacks_text}",
        "set them in the pod template; berth scan --suggest DIR writes a policy that does (default.protectFor, "
        "default.gracePeriod), in Audit",
        "Consolidation and scale-down evict whatever does not say otherwise, and 30 seconds are too few for most checkpoints.",
    ),
    "notebook-on-large-gpu": Row(
        "Notebooks on large GPUs",
        "holds {each} x {model_text}",
        "give notebooks a small or shared GPU; berth scan --suggest DIR writes a policy for it where the cluster has one, in Audit",
        "A notebook computes for minutes a day and holds its GPU for all of it.",
    ),
    "nodes-untainted": Row(
        "GPU nodes that keep no other pods off",
        "no taint; {plain_text} without a device on them{owners_text}",
        "taint the group where its nodes are made (nvidia.com/gpu=present:NoSchedule), with ClusterGPUPolicy "
        "berth-default in Enforce first, so that GPU pods tolerate it",
        "Pods without a GPU take the CPU and memory that GPU pods need beside theirs, and keep the node from being scaled down.",
    ),
    "pool-consolidates": Row(
        "NodePools that consolidate under runs",
        "consolidationPolicy {policy} after {after}, with {runs_text} on its nodes",
        "set spec.disruption.consolidationPolicy: WhenEmpty, or have every run carry karpenter.sh/do-not-disrupt (default.protectFor)",
        "Karpenter replaces a node that is not full by a cheaper one, and evicts what runs there without a mark.",
    ),
    "pool-expires": Row(
        "NodePools whose nodes expire",
        "expireAfter {after}, with {runs_text} on its nodes",
        "set spec.template.spec.expireAfter: Never, or longer than the longest run",
        "Expiry heeds no do-not-disrupt: the drain begins whatever runs there.",
    ),
    "pool-no-grace": Row(
        "NodePools without terminationGracePeriod",
        "no terminationGracePeriod, with {runs_text} on its nodes",
        "set spec.template.spec.terminationGracePeriod to what the longest checkpoint takes, such as 1h",
        "A node that expires or is interrupted waits for pods with do-not-disrupt without an end, and is paid for.",
    ),
    "pool-short-grace": Row(
        "NodePools that cut the grace of pods",
        "terminationGracePeriod {grace}, but {longer_text} on its nodes want up to {longest}s",
        "set spec.template.spec.terminationGracePeriod above {longest}s",
        "Karpenter deletes a pod whose grace is longer as soon as the drain begins, so that it ends in time.",
    ),
    "pool-no-gpu-limit": Row(
        "NodePools without a limit for GPUs",
        "spec.limits has no accelerator{limits_text}",
        "set spec.limits, such as nvidia.com/gpu: 64",
        "One Job with a typing error in its parallelism buys GPU machines until the cloud's quota ends.",
    ),
    "pool-untainted": Row(
        "GPU NodePools without a taint",
        "spec.template.spec.taints keeps nothing off",
        "add the taint nvidia.com/gpu=present:NoSchedule to spec.template.spec.taints, with ClusterGPUPolicy "
        "berth-default in Enforce first",
        "Any pod may land on its nodes, and Karpenter may buy a GPU machine for a pod without a GPU.",
    ),
    "pool-family-without-gpu": Row(
        "NodePools with machines that report no GPU",
        "{families_text}: EC2 reports no GPU of them{all_text}",
        "name families with whole GPUs (g6, g5), or lay a NodeOverlay over them that adds nvidia.com/gpu",
        "Karpenter makes no node of such a machine for a pod that asks for nvidia.com/gpu.",
    ),
    "pool-unknown-machine": Row(
        "NodePools that name machines which do not exist",
        "names {unknown} in {key}, which no GPU machine of the catalog has{nothing_text}",
        "write {nearest} in place of {unknown}, or add the machine with --catalog FILE if it is newer than the catalog",
        "Karpenter takes any value, and buys nothing for those that no machine has.",
    ),
    "node-class-latest-image": Row(
        "Node classes whose image is always the newest",
        "alias {alias}, used by NodePools {pools_text}, with {runs_text} on their nodes",
        "pin the image: spec.amiSelectorTerms: [{{alias: {alias_family_text}@vYYYYMMDD}}], and move it when no run is on the nodes",
        "Each release of the image makes the nodes drift: they are replaced, often with another driver, under what runs there.",
    ),
    "advertised-twice": Row(
        "GPUs that are offered twice",
        "{resources_text} {offered} by the device plugin, and {published} devices of {driver} in ResourceSlices",
        "{keep_text}",
        "Each gives the same GPU away without the other: two pods get it, and one of them fails when it starts.",
    ),
    "labels-unmaintained": Row(
        "Labels that nobody maintains",
        "{labels_text}, and the GPU Operator runs no GPU Feature Discovery",
        DISCOVER + "; where labels are left behind without it: kubectl label node {pod} nvidia.com/gpu.product- nvidia.com/gpu.family-",
        "Selectors by them pick nodes by what was there before, or none; Berth writes no term on them unless some node shows living ones.",
    ),
    "labels-without-devices": Row(
        "Labels of GPUs that are not there",
        "nvidia.com/gpu.count {labels} ({product}), and no nvidia.com resource in the node's capacity{published_text}",
        "see whether the device plugin runs there; after a move to DRA remove the labels: kubectl label node NODE nvidia.com/gpu.product- "
        "nvidia.com/gpu.count-",
        "Selectors by these labels pick nodes on which the pod cannot run.",
    ),
    "labels-disagree": Row(
        "Labels that disagree with the node",
        "{label} says {says}; {is}",
        "restart GPU Feature Discovery there: kubectl delete pod -n gpu-operator -l app=gpu-feature-discovery "
        "--field-selector spec.nodeName=NODE",
        "Selectors and policies by these labels place pods on another GPU than they name.",
    ),
    "mig-not-configured": Row(
        "MIG that is not set up",
        "nvidia.com/mig.config.state is {state}{config_text}",
        "read the MIG manager's log: kubectl logs -n gpu-operator -l app=nvidia-mig-manager; no pod may hold a GPU there while it works",
        "The slices that the configuration names are not there, and pods that ask for them wait.",
    ),
    "unlisted-name": Row(
        "Accelerators that Berth's webhooks would not be called for",
        "on {nodes_text}, asked for by {pods_text}{classes_text}",
        "berth webhooks --resource-name {name}, or a line in a file for --catalog",
        "The registration is made of the names in the catalog: pods that ask by another one are never judged.",
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
    out |= {f"{key}_text": text(values) for key, text in _TEXTS.items()}
    kept = keep_one(str(values.get("driver")), pod)
    out |= {"nodes_text": _count(finding.nodes, "node"), "pods_text": _count(finding.pods, "pod"), "keep_text": kept}
    return out


def _listed(value: Value) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _owners(values: Mapping[str, Value]) -> str:
    return f": {_listed(owners)}" if (owners := values.get("owners", ())) else ""


def _limits(values: Mapping[str, Value]) -> str:
    return f", only {_listed(limits)}" if (limits := values.get("limits", ())) else ", nor anything else"


_TEXTS: Mapping[str, Callable[[Mapping[str, Value]], str]] = {
    "reasons": obstacles.text,
    "length": lambda values: {"says": "says that it runs for more than 2h, and is", "runs": "has run for more than 2h"}.get(
        str(values.get("length")), ""
    ),
    "group": lambda values: _group(values.get("group", ())),
    "lacks": lambda values: " and ".join(_lack(name) for name in _each(values.get("lacks", ()))),
    "model": lambda values: f"{values['model']} ({values['memory']} GB)" if values.get("model") else "GPU",
    "owners": _owners,
    "plain": lambda values: _count(values.get("plain"), "pod"),
    "runs": lambda values: _count(values.get("runs"), "run"),
    "longer": lambda values: _count(values.get("longer"), "run"),
    "limits": _limits,
    "families": lambda values: _listed(values.get("families", ())),
    "all": lambda values: ", and it names no other machine" if values.get("all") else "",
    "nothing": lambda values: ": the NodePool can make no node at all" if values.get("all") else "",
    "pools": lambda values: _listed(values.get("pools", ())),
    "alias_family": lambda values: str(values.get("alias", "")).partition("@")[0],
    "resources": lambda values: _listed(values.get("resources", ())),
    "published": lambda values: f"; a DRA driver publishes {values['published']} devices instead" if values.get("published") else "",
    "labels": lambda values: f"labels of an earlier run ({values['product']})" if values.get("product") else "no labels of a GPU's model",
    "config": lambda values: f", for the configuration {values['config']}" if values.get("config") else "",
    "classes": lambda values: f", of DeviceClasses {_listed(values['classes'])}" if values.get("classes") else "",
}


def _count(number: object, what: str) -> str:
    return f"{number or 'no'} {what}" if number in (0, 1) else f"{number} {what}s"


def _each(value: Value) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, tuple) else (str(value),)


def _group(value: Value) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _lack(name: str) -> str:
    return "more than 30s to write a checkpoint (terminationGracePeriodSeconds)" if name == "terminationGracePeriodSeconds" else name
