"""Classes 4, 5 and 7: names that nobody listed, namespaces that nobody made yet, and policies of somebody else's namespace."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.e2e.bypasses.attempts.places import OFF, at
from tests.e2e.bypasses.guardrails import DO_NOT_DISRUPT, LABEL, P5_NODE, SPOT_NODE, asking, with_
from tests.e2e.bypasses.steps import kept, with_own_default
from tests.e2e.bypasses.way import KEPT_OFF, Attempt, Outcome, Tenant, Way, changes, creates, lands, outcome
from tests.e2e.workloads import gpus, pod
from tests.testcluster.addons.berth import SCOPE
from tests.testcluster.controlplane.api import Raw

RENAMED = ("nvidia.com/h100", "acme.example/gpu", "huawei.com/Ascend910", "cambricon.com/mlu", "hygon.com/dcu", "aliyun.com/gpu-count")
"""Resources that device plugins offer on a node here, and that no catalog lists"""
EXTENDED = "ways.example/gpu"
"""``extendedResourceName`` of a DeviceClass"""
EXCLUDED = ("gpu-operator", "nvidia-device-plugin", "kueue-system", "kube-amd-gpu")
"""Namespaces of operators that this cluster does not have"""


def _renamed() -> Iterator[Way]:
    for name in (*RENAMED, EXTENDED):
        twin = creates(pod(gpus(2, name)))
        yield Way(name=f"8 of {name}", guard="max", attack=creates(pod(gpus(8, name))), twin=twin)
        long = pod(gpus(8, name), terminationGracePeriodSeconds=3600)
        yield Way(name=name, guard="grace", attack=creates(long), twin=twin)
        every = pod(gpus(1, name), tolerations=[{"operator": "Exists"}])
        yield Way(name=name, guard="forbid", attack=creates(every), twin=twin)
        yield Way(name=f"8 of {name}", guard="large", attack=creates(long), twin=twin)
        beside = asking(gpus(3), gpus(3, name))
        yield Way(name=f"GPUs beside {name}", guard="max", attack=creates(beside), twin=twin)
        marked = changes(pod(gpus(1, name)), {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}})
        yield Way(name=f"{name}, annotated later", guard="protection", attack=marked, twin=twin)
    small = pod({"requests": {EXTENDED: "1", "cpu": "1"}, "limits": {EXTENDED: "1"}})
    amounts = {"cpu": "1", "memory": "1Gi", EXTENDED: "1"}
    twin = creates(pod({"requests": amounts, "limits": amounts}))
    yield Way(name=EXTENDED, guard="guaranteed", attack=creates(small), twin=twin)


def within(namespace: str, made: Raw, labels: Callable[[Tenant], dict[str, str]]) -> Attempt:
    """In a namespace of this name, which the platform's self-service makes for whoever asks."""

    def tried(tenant: Tenant) -> Outcome:
        api = tenant.cluster.api
        value = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels(tenant)}}
        api.try_create(value)  # the twin finds it there
        return outcome(api.try_create(made, namespace, dry_run=True))

    return tried


def _excluded() -> Iterator[Way]:
    labels = {SCOPE: "ways", LABEL: "max"}
    for name in EXCLUDED:
        attack, twin = (within(name, pod(gpus(count)), lambda tenant: labels) for count in (8, 4))
        yield Way(name=f"a namespace called {name}", guard="max", attack=attack, twin=twin)


OWN: Raw = {"apiVersion": "berth.dev/v1alpha1", "kind": "GPUPolicy", "metadata": {"name": "NAME"}}


def _own() -> Iterator[Way]:
    """A namespace's own policies only tighten."""

    def after(spec: Raw, made: Raw) -> Attempt:
        policy = {**OWN, "spec": {"mode": "Enforce", **spec}}

        def tried(tenant: Tenant) -> Outcome:
            first = creates(policy)(tenant)
            if not first.passed:
                return first
            found = creates(made)(tenant)
            tenant.api.call("DELETE", tenant.api.path_of({**policy, "metadata": {"name": tenant.name}}, tenant.namespace))
            return found

        return tried

    yield from _defaults()
    more = {"require": {"gpusPerPod": {"max": 8}}}
    yield Way(name="an own policy of more GPUs", guard="max", attack=after(more, pod(gpus(8))), twin=after(more, pod(gpus(4))))
    longer = {"default": {"gracePeriod": "1h"}}
    yield Way(
        name="an own policy of a longer grace", guard="grace",
        attack=after(longer, pod(terminationGracePeriodSeconds=3600)), twin=after(longer, with_(pod(), terminationGracePeriodSeconds=60)),
    )  # fmt: skip


def _defaults() -> Iterator[Way]:
    """Defaults of a namespace's own are written within what is required."""
    other = {"tolerate": [{"key": "team", "value": "other", "effect": "NoSchedule"}]}
    codes = (KEPT_OFF, "BERTH-")

    def annotated(value: Raw) -> str:
        return str(value["metadata"].get("annotations", {}).get(DO_NOT_DISRUPT))

    def runs_long(value: Raw) -> bool:
        return value["spec"].get("activeDeadlineSeconds") not in range(1, 3601)

    wrong: dict[str, tuple[str, Raw, Callable[[Raw], bool]]] = {
        "tolerates": ("forbid", other, lambda value: any(one.get("value") == "other" for one in value["spec"].get("tolerations", ()))),
        "protects for ever": ("protection", {"protectFor": "Always"}, lambda value: annotated(value) == "true"),
        "gives slices": ("sharing", {"mig": {"slice": "10gb"}}, lambda value: "mig" in str(value["spec"]["containers"][0]["resources"])),
        "lets it run longer": (
            "runtime",
            {"maxRuntime": "48h"},
            runs_long,
        ),
    }
    for name, (guard, default, is_wrong) in wrong.items():
        attack = kept(with_own_default(default, pod()), is_wrong)
        yield Way(name=f"an own default {name}", guard=guard, attack=attack, twin=creates(pod()), codes=codes)
    attack, twin = (with_own_default({"queue": {"kai": queue}}, pod()) for queue in ("other", "team-a"))
    yield Way(name="an own default of another queue", guard="kai", attack=attack, twin=twin)
    attack = with_own_default({"capacity": ["spot"]}, at(SPOT_NODE), lands)
    yield Way(name="an own default of spot", guard="capacity", attack=attack, twin=lands(at(P5_NODE)), codes=(*OFF, *codes))


WAYS = (*_renamed(), *_excluded(), *_own())
