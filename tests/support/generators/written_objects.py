"""Typed policies and templates as the Kubernetes objects that say so: the inverse of ``policies.objects.parse``.

Only what differs from the default is written, so that nothing stands there which a person would have left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from kube.duration import format_duration as span
from kube.labels import LabelSelector
from kube.taints import TolerationPattern
from policies.objects.parse import Understood
from policies.policy import (
    API_VERSION,
    Allow,
    Bounds,
    Default,
    InNotIn,
    LongRuns,
    MachineFields,
    Match,
    MigDefault,
    NodeTemplate,
    Policy,
    Require,
)

Raw = dict[str, Any]


def written(one: Policy | NodeTemplate) -> Raw:
    """The object, with no more metadata than its name and namespace."""
    if isinstance(one, NodeTemplate):
        return _object("GPUNodeTemplate", one.name, None, _template(one))
    kind = "ClusterGPUPolicy" if one.namespace is None else "GPUPolicy"
    return _object(kind, one.name, one.namespace, _policy(one))


def read_back(understood: Understood) -> Policy | NodeTemplate | None:
    """What an object says, of either type."""
    return understood.acting


def _object(kind: str, name: str, namespace: str | None, spec: Raw) -> Raw:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": _given(name=name, namespace=namespace), "spec": spec}


def _given(**fields: Any) -> Raw:
    """Without those that say nothing. A map that is there and empty may say something: a selector that matches everything."""
    return {name.rstrip("_"): value for name, value in fields.items() if value not in (None, [], False)}


def _unless_empty(value: Raw) -> Raw | None:
    return value or None


def _policy(one: Policy) -> Raw:
    return _given(
        mode=None if one.mode == "Audit" else one.mode,
        match=_unless_empty(_match(one.match, one.exclude_users)),
        require=_unless_empty(_require(one.require)),
        default=_unless_empty(_default(one.default)),
        allow=_unless_empty(_allow(one.allow)),
    )


def _match(match: Match, exclude_users: Sequence[str]) -> Raw:
    return _given(
        namespaceSelector=_selector(match.namespace_selector),
        podSelector=_selector(match.pod_selector),
        workloads=[*match.workloads],
        gpus=_bounds(match.gpus),
        exclude={"users": [*exclude_users]} if exclude_users else None,
    )


def _selector(selector: LabelSelector | None) -> Raw | None:
    if selector is None:
        return None
    expressions = [_given(key=e.key, operator=e.operator, values=[*e.values]) for e in selector.match_expressions]
    return _given(matchLabels=_unless_empty(dict(selector.match_labels)), matchExpressions=expressions)


def _bounds(bounds: Bounds | None) -> Raw | None:
    return None if bounds is None else {n: v for n, v in (("min", bounds.min), ("max", bounds.max)) if v is not None}


def _in_not_in(names: InNotIn | None) -> Raw | None:
    return None if names is None else _given(in_=[*names.in_], notIn=[*names.not_in])


def _machine(machine: MachineFields, memory: str) -> Raw:
    return _given(
        families=_in_not_in(machine.families),
        models=_in_not_in(machine.models),
        instanceFamilies=_in_not_in(machine.instance_families),
        **{memory: _bounds(machine.gpu_memory)},
    )


def _long_runs(long_runs: LongRuns | None) -> Raw | None:
    if long_runs is None:
        return None
    unknown: Mapping[str, Any] = {} if long_runs.unknown_is_long else {"unknownIsLong": False}
    return {"over": span(long_runs.over), "capacity": [*long_runs.capacity], **unknown}


def _tolerations(patterns: Sequence[TolerationPattern]) -> list[Raw]:
    return [_given(key=p.key, value=p.value, effect=p.effect) for p in patterns]


def _span(seconds: int | None) -> str | None:
    return None if seconds is None else span(seconds)


def _at_most(seconds: int | None) -> Raw | None:
    return None if seconds is None else {"max": span(seconds)}


def _require(require: Require) -> Raw:
    limit = require.gpus_per_pod
    return _given(
        **_machine(require.machine, "gpuMemory"),
        capacity=[*require.capacity],
        longRuns=_long_runs(require.long_runs),
        sharing=[*require.sharing],
        gpusPerPod=None if limit is None else _given(max=limit.max, oneOf=[*limit.one_of]),
        requestsEqualLimits=[*require.requests_equal_limits],
        gracePeriod=_unless_empty(_given(min=_span(require.grace_min), max=_span(require.grace_max))),
        protection=_at_most(require.protection_max),
        tolerations={"forbid": _tolerations(require.forbid_tolerations)} if require.forbid_tolerations else None,
        maxRuntime=_span(require.max_runtime),
        queue=None if require.queue is None else _given(**{name: [*names] for name, names in asdict(require.queue).items()}),
    )


def _default(default: Default) -> Raw:
    protect = default.protect_for
    return _given(
        acceleratorTaints="Tolerate" if default.accelerator_taints else None,
        nodeTemplate=default.node_template,
        **_machine(default.machine, "gpuMemory"),
        capacity=[*default.capacity],
        longRuns=_long_runs(default.long_runs),
        mig=_mig(default.mig),
        gracePeriod=_span(default.grace),
        protectFor=span(protect) if isinstance(protect, int) else protect,
        tolerate=_tolerations(default.tolerate),
        repair=[*default.repair],
        maxRuntime=_span(default.max_runtime),
        sharedMemory=None if default.shared_memory is None else str(default.shared_memory),
        runtimeClass=default.runtime_class,
        priorityClass=default.priority_class,
        schedulerName=default.scheduler_name,
        topology=default.topology,
        networkDevices="All" if default.network_devices else None,
        queue=None if default.queue is None else _given(**asdict(default.queue)),
    )


def _mig(mig: MigDefault | None) -> Raw | None:
    if mig is None:
        return None
    return {"slice": f"{mig.slice_gb}gb"} if mig.slice_gb is not None else {"usableMemory": f"{mig.usable_mib}Mi"}


def _allow(allow: Allow) -> Raw:
    return _given(
        nodeTemplates=[*allow.node_templates], tolerations=_tolerations(allow.tolerations), priorityClasses=[*allow.priority_classes]
    )


def _template(one: NodeTemplate) -> Raw:
    gpus = _given(
        vendors=[*one.vendors],
        **_machine(one.machine, "memory"),
        sharing=[*one.sharing],
        migProfiles=[*one.mig_profiles],
    )
    taints = [{"key": t.key, **({"value": t.value} if t.value else {}), "effect": t.effect} for t in one.taints]
    return _given(gpus=_unless_empty(gpus), capacity=[*one.capacity], labels=dict(one.labels), taints=taints)


def sayable(one: Policy | NodeTemplate, never: Sequence[str] = ("node.kubernetes.io/",)) -> Policy | NodeTemplate:
    """The same as far as an object can say it: values given twice count once, and no pod tolerates what is ``never`` to be."""
    if isinstance(one, NodeTemplate):
        return replace(one, taints=tuple(t for t in one.taints if not t.key.startswith(tuple(never))))
    return replace(
        one,
        require=replace(one.require, forbid_tolerations=_once(one.require.forbid_tolerations)),
        default=replace(one.default, tolerate=_once(one.default.tolerate)),
        allow=replace(one.allow, tolerations=_once(one.allow.tolerations)),
    )


def _once(patterns: Sequence[TolerationPattern]) -> tuple[TolerationPattern, ...]:
    return tuple(dict.fromkeys(patterns))
