"""Random pods as the API server would send them, and as nobody should: every shape that a rule reads."""

from __future__ import annotations

from random import Random
from typing import Any

from policies.request import Request
from tests.support.generators.random_cluster import ABSENT_CLAIM, CLAIMS, NAMESPACES, NODES, UNKNOWN_NODE
from tests.support.generators.random_fields import chance, some
from tests.support.generators.random_terms import affinity, key_of, value_of
from tests.support.generators.random_worlds import USERS, World

Raw = dict[str, Any]

_AMOUNTS = ("1", "1", "1", "1", "1", "2", "4", "8", 1, "1000m", "1e0", "2k", "0", "3")
_ODD_AMOUNTS = ("500m", "-1", "-500m", "$GPUS", "", "1.5", "0.5", True, "16", "1GPU", "1e-1", "\u0663")
_NAMES = ("nvidia.com/gpu",) * 12 + (
    "nvidia.com/mig-1g.10gb",
    "nvidia.com/mig-1g.5gb",
    "nvidia.com/mig-3g.40gb",
    "nvidia.com/mig-9g.99gb",
    "nvidia.com/mig-1g.10gb.shared",
    "nvidia.com/mig-1g.10gb.me",
    "nvidia.com/mig-1c.3g.20gb",
    "nvidia.com/gpu.shared",
    "nvidia.com/gpu.shared",
    "amd.com/gpu",
    "amd.com/gpu",
    "amd.com/cpx_nps4",
    "amd.com/spx_nps1",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
    "google.com/tpu",
    "habana.ai/gaudi",
    "deviceclass.resource.kubernetes.io/gpu.nvidia.com",
    "deviceclass.resource.kubernetes.io/odd",
    "deviceclass.resource.kubernetes.io/nic",
    "example.com/small-gpu",
    "example.com/amd-gpu",
    "example.com/mystery",
    "example.com/nic",
    "huawei.com/Ascend910",
    "example.com/vgpus",
    "nvdia.com/gpu",
    "nvidia.com/gpus",
    "nvidia.com/gpumem",
    "nvidia.com/gpucores",
    "alpha.kubernetes.io/nvidia-gpu",
    "example.com/foo",
)
_USUAL = ("nvidia.com/gpu",) * 14 + (
    "amd.com/gpu",
    "nvidia.com/mig-1g.10gb",
    "nvidia.com/gpu.shared",
    "gpu.intel.com/i915",
    "aws.amazon.com/neuron",
    "habana.ai/gaudi",
    "example.com/small-gpu",
)
_OWNERS: tuple[tuple[str, str], ...] = (
    ("batch/v1", "Job"),
    ("batch/v1", "Job"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("v1", "Node"),
    ("kubeflow.org/v1", "PyTorchJob"),
    ("ray.io/v1", "RayCluster"),
    ("apps.other.io/v1", "ReplicaSet"),
    ("argoproj.io/v1alpha1", "Workflow"),
    ("v1", "ReplicationController"),
)
_LABELS: tuple[tuple[str, str], ...] = (
    ("tier", "batch"),
    ("app", "x"),
    ("notebook-name", "n"),
    ("ray.io/cluster", "c"),
    ("kueue.x-k8s.io/queue-name", "q"),
    ("kueue.x-k8s.io/pod-group-name", "g"),
    ("kueue.x-k8s.io/podset", "main"),
    ("training.kubeflow.org/operator-name", "pytorchjob-controller"),
    ("serving.kserve.io/inferenceservice", "s"),
    ("nvidia.com/gpu-driver-upgrade-drain.skip", "false"),
)
_IN_A_POD_GROUP = {"kueue.x-k8s.io/pod-group-name": "g", "kueue.x-k8s.io/queue-name": "q", "kueue.x-k8s.io/managed": "true"}
"""of which one or another may be missing"""
_SCHEDULERS = ("default-scheduler", "default-scheduler", "kai-scheduler", "volcano", "runai-scheduler", "slurm-bridge-scheduler", "mine")


def _container(random: Random, index: int, names: tuple[str, ...], *, calm: bool) -> Raw:
    amounts: dict[str, Raw] = {"limits": {}, "requests": {}}
    if chance(random, 0.6):
        amounts["requests"] |= {"cpu": "1", "memory": "2Gi"}
        if chance(random, 0.5):
            amounts["limits"] |= {"cpu": random.choice(("1", "1000m", "2")), "memory": random.choice(("2Gi", "2048Mi", "4Gi"))}
    for name in names:
        amount = _amount(random, calm=calm)
        kind = random.random() * (0.8 if calm else 1)
        if kind < 0.95:
            amounts["limits"][name] = amount
        if kind < 0.8 or kind >= 0.95:
            amounts["requests"][name] = amount
        elif kind < 0.87:
            amounts["requests"][name] = random.choice(_AMOUNTS)
    out: Raw = {"name": f"c{index}", "image": "train:1"}
    resources = {side: values for side, values in amounts.items() if values or chance(random, 0.2)}
    if resources or chance(random, 0.5):
        out["resources"] = resources
    for probe in ("livenessProbe", "startupProbe", "readinessProbe"):
        if chance(random, 0.15):
            out[probe] = {"httpGet": {"path": "/", "port": 80}} | ({"terminationGracePeriodSeconds": 10} if chance(random, 0.3) else {})
    if chance(random, 0.1):
        out["x-unknown"] = {"a": [1, None, {"é": "\u2028"}], "b": 1.50}
    return out


def _amount(random: Random, *, calm: bool) -> object:
    if calm:
        return random.choice(("1", "1", "1", 1, "2", "8"))
    return random.choice(_ODD_AMOUNTS) if chance(random, 0.06) else random.choice(_AMOUNTS)


def _containers(random: Random, *, calm: bool) -> tuple[list[Raw], list[Raw]]:
    """Calm: what most people write, so that a fair part of all pods gets past every denial."""
    names = _USUAL if calm else _NAMES
    asked = some(random, names, 1, 1) if calm or chance(random, 0.85) else some(random, names, 0, 2)
    more = random.choice((0, 0, 1, 2))
    main = [_container(random, i, asked if i == 0 or chance(random, 0.3) else (), calm=calm) for i in range(more + 1)]
    init = []
    for i in range(random.choice((0, 0, 0, 1, 2))):
        one = _container(random, 10 + i, asked if chance(random, 0.4) else (), calm=calm)
        if chance(random, 0.4):
            one["restartPolicy"] = "Always"
        init.append(one)
    return main, init


# --- the whole ---------------------------------------------------------------------------------------------------------

_TOLERATIONS: tuple[Raw, ...] = (
    {"operator": "Exists"},
    {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "nvidia.com/gpu", "operator": "Exists"},
    {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
    {"key": "team", "operator": "Equal", "value": "research", "effect": "NoSchedule"},
    {"key": "team", "operator": "Exists"},
    {"key": "pool", "value": "t0"},
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
    {"operator": "Exists", "tolerationSeconds": 60, "effect": "NoExecute"},
    {"operator": "Exists", "effect": "NoSchedule"},
    {"key": "sku", "value": "gpu", "effect": "NoSchedule"},
    {"key": "dedicated", "operator": "Exists", "effect": "NoExecute"},
    {"key": "level", "operator": "Gt", "value": "100"},
    {"key": "level", "operator": "Lt", "value": "100", "effect": "NoSchedule"},
    {"key": "team", "operator": "Lt", "value": "0x10"},
    {"key": "dedicated", "operator": "Like", "value": "a"},
)
_ANNOTATIONS: tuple[tuple[str, str], ...] = (
    ("berth.dev/mig-slice", "10gb"),
    ("berth.dev/mig-slice", "20gb"),
    ("berth.dev/mig-slice", "5gb"),
    ("berth.dev/mig-slice", "11gb"),
    ("berth.dev/mig-slice", "ten"),
    ("berth.dev/node-template", "t0"),
    ("berth.dev/node-template", "t1"),
    ("berth.dev/node-template", "nope"),
    ("berth.dev/expected-duration", "30m"),
    ("berth.dev/expected-duration", "6h"),
    ("berth.dev/expected-duration", "+.5h"),
    ("berth.dev/expected-duration", "-6h"),
    ("berth.dev/expected-duration", "6 hours"),
    ("berth.dev/opt-out", "grace"),
    ("berth.dev/opt-out", "everything"),
    ("karpenter.sh/do-not-disrupt", "true"),
    ("karpenter.sh/do-not-disrupt", "2h"),
    ("karpenter.sh/do-not-disrupt", "48h"),
    ("karpenter.sh/do-not-disrupt", "no"),
    ("karpenter.sh/do-not-disrupt", "-48h"),
    ("karpenter.sh/do-not-disrupt", "+48.h"),
    ("karpenter.sh/do-not-evict", "true"),
    ("beta.evictor.cast.ai/eviction-disabled", "True"),
    ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
    ("cluster-autoscaler.kubernetes.io/safe-to-evict", "true"),
    ("gpu-fraction", "0.5"),
    ("gpu-fraction", ".25"),
    ("gpu-fraction", "1.5"),
    ("gpu-fraction", "half"),
    ("gpu-memory", "4000"),
    ("nvidia.com/container.c.gpu-memory.request", "20Gi"),
    ("nvidia.com/container.d.gpu-memory.limit", "x"),
    ("gpu-fraction-num-devices", "4"),
    ("other", "é\n"),
    ("kubernetes.io/config.mirror", "h"),
)
_ANNOTATION_WEIGHTS = tuple(1 if key == "kubernetes.io/config.mirror" else 4 for key, _ in _ANNOTATIONS)


def _metadata(random: Random, *, calm: bool) -> Raw:
    out: Raw = {"name": "p"}
    if chance(random, 0.2 if calm else 0.5):
        out["labels"] = dict(some(random, _LABELS, 0, 2))
        if chance(random, 0.2):
            out["labels"] |= {key: value for key, value in _IN_A_POD_GROUP.items() if chance(random, 0.85)}
    if chance(random, 0.1 if calm else 0.45):
        out["annotations"] = dict(random.choices(_ANNOTATIONS, _ANNOTATION_WEIGHTS, k=random.randint(0, 2)))
        if "gpu-fraction" in out["annotations"] and chance(random, 0.4):
            out["annotations"]["gpu-fraction-num-devices"] = random.choice(("2", "8", "0", "many"))
    if chance(random, 0.6):
        version, kind = random.choice(_OWNERS)
        out["ownerReferences"] = [{"apiVersion": version, "kind": kind, "name": "o", "uid": "u", "controller": chance(random, 0.95)}]
    return out


_CLAIM_FIELDS = {"ResourceClaimTemplate": "resourceClaimTemplateName", "ResourceClaim": "resourceClaimName"}


def _claim(random: Random) -> Raw:
    kind = random.choice(tuple(CLAIMS))
    return {_CLAIM_FIELDS[kind]: random.choice((*CLAIMS[kind], ABSENT_CLAIM))}


def pod(random: Random, world: World) -> Raw:
    calm = chance(random, 0.5)
    main, init = _containers(random, calm=calm)
    spec: Raw = {"containers": main}
    if init:
        spec["initContainers"] = init
    if chance(random, 0.45):
        spec["affinity"] = affinity(random, world)
    if chance(random, 0.2):
        spec["nodeSelector"] = {(key := key_of(random, world)): value_of(random, key) for _ in range(random.randint(0, 2))}
    if chance(random, 0.35):
        spec["tolerations"] = [dict(t) for t in some(random, _TOLERATIONS, 0, 2)]
    if chance(random, 0.7):
        spec["terminationGracePeriodSeconds"] = random.choice((30, 30, 0, 10, 120, 1800, 7200))
    if chance(random, 0.1):
        spec["activeDeadlineSeconds"] = random.choice((600, 7200, 20000))
    if chance(random, 0.06):
        spec["nodeName"] = random.choice((*NODES, UNKNOWN_NODE))
    if chance(random, 0.1 if calm else 0.35):
        spec["schedulerName"] = random.choice(_SCHEDULERS)
    if not calm and chance(random, 0.1):
        spec["resourceClaims"] = [{"name": f"g{i}", **_claim(random)} for i in range(random.choice((1, 1, 2)))]
        if chance(random, 0.6):
            for container in main + init:
                container.pop("resources", None)
    if chance(random, 0.3):
        spec["x-unknown"] = {"deep": [{"é": "\u2028", "n": None, "f": 1.0}], "e": []}
    out: Raw = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(random, calm=calm),
        "spec": spec,
        **({"x-top": [1]} if chance(random, 0.2) else {}),
    }
    _worded(Random(repr(out)), out)
    _running(Random(f"running {out!r}"), out)
    _queued(Random(f"queued {out!r}"), out)
    return out


def _queued(random: Random, pod: Raw) -> None:
    """Put in what queue systems read, as ``_running`` does."""
    metadata, spec = pod["metadata"], pod["spec"]
    if chance(random, 0.1):
        part, key, value = random.choice(_QUEUES)
        metadata.setdefault(part, {})[key] = value
    if chance(random, 0.1):
        metadata.setdefault("labels", {}).update({"kueue.x-k8s.io/managed": "true", "kueue.x-k8s.io/queue-name": random.choice("ab")})
        if chance(random, 0.8):
            spec["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
            spec.pop("nodeName", None)


_QUEUES = (
    ("labels", "kai.scheduler/queue", "a"),
    ("labels", "kai.scheduler/queue", "b"),
    ("annotations", "scheduling.volcano.sh/queue-name", "a"),
    ("annotations", "slurmjob.slinky.slurm.net/partition", "a"),
    ("annotations", "pod-group-name", "own"),
    ("annotations", "kai.scheduler/skip-podgrouper", "true"),
    ("annotations", "scheduling.k8s.io/group-name", "own"),
    ("labels", "scheduling.x-k8s.io/pod-group", "own"),
    ("annotations", "kueue.x-k8s.io/pod-suspending-parent", "statefulset"),
    ("annotations", "volcano.sh/queue-name", "a"),
)


def _running(random: Random, pod: Raw) -> None:
    """Put in what says how a pod runs, as authors and the API server write it: a seed that once found something gives the same of all
    else."""
    spec, metadata = pod["spec"], pod["metadata"]
    if chance(random, 0.1):
        spec["priorityClassName"] = "system-node-critical"  # which every cluster has
    elif chance(random, 0.3):
        spec |= {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}
    if chance(random, 0.02):
        spec["runtimeClassName"] = "own"
    if chance(random, 0.2):
        metadata.setdefault("labels", {})["batch.kubernetes.io/job-name"] = random.choice(("a", "b"))
    if chance(random, 0.1) and spec.get("affinity", {}) is not None:
        spec.setdefault("affinity", {})["podAffinity"] = random.choice(({}, {_REQUIRED: []}, _BESIDE))
    if chance(random, 0.4):
        token = f"kube-api-access-{random.randrange(10**5)}"
        spec["volumes"] = [{"name": token, "emptyDir": {}}, _DATA, *some(random, _VOLUMES, 0, 1)]
        for container in spec["containers"]:
            container["volumeMounts"] = [{"name": token, "mountPath": "/var/run/secrets"}, *some(random, _MOUNTS, 0, 1)]


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_BESIDE = {_REQUIRED: [{"topologyKey": "rack", "labelSelector": {}}]}
_DATA = {"name": "data", "emptyDir": {}}
_VOLUMES = (
    {"name": "berth-shared-memory", "emptyDir": {"medium": "Memory"}},
    {"name": "berth-shared-memory", "hostPath": {"path": "/"}},
)
_MOUNTS = ({"name": "data", "mountPath": "/dev/shm"}, {"name": "data", "mountPath": "//dev//shm/x"}, {"name": "data", "mountPath": "/data"})


_WORDS: tuple[tuple[str, str], ...] = (
    ("berth.dev/mig-slice", "none"),
    ("berth.dev/mig-slice", "none"),
    ("berth.dev/opt-out", "grace"),
    ("berth.dev/opt-out", "grace"),
    ("nvidia.com/container.c0.gpu-memory.request", "4Gi"),
    ("nvidia.com/use-gputype", "A100"),
    ("hami.io/gpu-scheduler-policy", "binpack"),
)
_PARTS = ("nvidia.com/gpumem-percentage", "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores")


def _worded(random: Random, pod: Raw) -> None:
    """With one more word, or part of a device. Drawn from what else the pod is: a seed that once found something gives the same of all
    else."""
    if chance(random, 0.1):
        key, value = random.choice(_WORDS)
        pod["metadata"].setdefault("annotations", {}).setdefault(key, value)
    if chance(random, 0.03):
        resources = pod["spec"]["containers"][0].setdefault("resources", {})
        resources.setdefault("limits", {})[random.choice(_PARTS)] = "1"


_CALLERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("system:serviceaccount:kube-system:daemon-set-controller", ("system:serviceaccounts",)),
    ("system:kube-controller-manager", ()),
    ("system:node:node-t4", ("system:nodes", "system:authenticated")),
    ("system:serviceaccount:dev:daemon-set-controller", ("system:serviceaccounts",)),
)
"""who is spared placement, and who is named nearly so"""


_ANYBODY = ("system:authenticated",)


def request(random: Random, world: World) -> Request:
    """Of a pod that somebody makes: mostly a user, now and then what makes pods of DaemonSets, or a kubelet."""
    asked = pod(random, world)
    user, groups = random.choice(_CALLERS) if chance(random, 0.15) else (random.choice(USERS), _ANYBODY)
    namespace, maker = random.choice(NAMESPACES), Random(f"maker {asked!r}")
    if user in USERS and chance(maker, 0.15):
        user = maker.choice(_MAKERS)
    return Request(namespace=namespace, user=user, groups=groups, pod=asked)


_MAKERS = ("system:serviceaccount:kube-system:job-controller", "system:serviceaccount:volcano-system:volcano-controllers")


def authored(random: Random, world: World) -> Request:
    """Of a pod that a user makes."""
    return Request(namespace=random.choice(NAMESPACES), user=random.choice(USERS), groups=_ANYBODY, pod=pod(random, world))
