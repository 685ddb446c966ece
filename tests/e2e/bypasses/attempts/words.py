"""Classes 0e, 0h and 8: a word that its consumer understands and we do not, two words of which the better one counts, and a forbidden
taint that is tolerated in whatever words."""

from __future__ import annotations

from collections.abc import Iterator

from tests.e2e.bypasses.guardrails import ALLOWED, CAPACITY, DO_NOT_DISRUPT, FORBIDDEN, PLACES, annotated, asking, marked, selecting, with_
from tests.e2e.bypasses.way import Way, creates
from tests.e2e.workloads import TOLERATION, gpus, pod
from tests.testcluster.controlplane.api import Raw

GO = (
    "48h",
    "+48h",
    "48.h",
    "48.0h",
    "2880.m",
    "172800s",
    "172800000ms",
    "172800000000us",
    "172800000000\u00b5s",
    "172800000000\u03bcs",
    "172800000000000ns",
    "24h1s",
    "24h.5m",
    "24h0.1s",
    "24h1ns",
    f"{'0' * 40}48h",
    f"48.{'0' * 40}h",
    f"{'0h' * 20}48h",
    "2562047h47m16.854775807s",
    "true",
)
"""What Go's time.ParseDuration reads as more than 24h, and the word for ever (sigs.k8s.io/karpenter reads no other)"""
FOREVER: dict[str, tuple[str, str, str]] = {
    "Cluster Autoscaler's": ("annotations", "cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
    "CAST AI's": ("annotations", "autoscaling.cast.ai/removal-disabled", "true"),
    "the GPU Operator's": ("labels", "nvidia.com/gpu-driver-upgrade-drain.skip", "true"),
}
TOLERATIONS: dict[str, Raw] = {
    "every taint": {"operator": "Exists"},
    "every taint that keeps off": {"operator": "Exists", "effect": "NoSchedule"},
    "every taint that evicts": {"operator": "Exists", "effect": "NoExecute"},
    "every taint for a while": {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
    "every value": {"key": "team", "operator": "Exists"},
    "every value, by one effect": {"key": "team", "operator": "Exists", "effect": "NoExecute"},
    "the taint": FORBIDDEN,
    "the taint, without an operator": {"key": "team", "value": "other"},
    "the taint, by every effect": {"key": "team", "operator": "Equal", "value": "other"},
    "the taint, preferred": {**FORBIDDEN, "effect": "PreferNoSchedule"},
    "the taint, for a year": {**FORBIDDEN, "effect": "NoExecute", "tolerationSeconds": 31536000},
}
ASKING: dict[str, Raw] = {
    "a slice": pod(gpus(1, "nvidia.com/mig-1g.10gb")),
    "a DRA resource": pod(gpus(1, "deviceclass.resource.kubernetes.io/ways-gpu")),
    "a Neuron device": pod(gpus(1, "aws.amazon.com/neuron")),
    "a fraction": pod({}, {"annotations": {"gpu-fraction": "0.5"}}),
}
WEEK = 7 * 24 * 3600
DURATION = "berth.dev/expected-duration"


def _protections() -> Iterator[Way]:
    twin = creates(annotated(**{DO_NOT_DISRUPT: "12h"}))
    for value in GO:
        yield Way(
            name=f"{value[:12]!a}, {len(value)} characters",
            guard="protection",
            attack=creates(annotated(**{DO_NOT_DISRUPT: value})),
            twin=twin,
        )
    for name, (where, key, value) in FOREVER.items():
        marks: Raw = {where: {key: value}}
        honest: Raw = {where: {key: "true" if value == "false" else "false"}}
        yield Way(name=f"{name} word", guard="protection", attack=creates(marked(pod(), **marks)), twin=creates(marked(pod(), **honest)))
        both = marked(marked(pod(), **marks), annotations={DO_NOT_DISRUPT: "1m"})
        yield Way(name=f"{name} beside a short one", guard="protection", attack=creates(both), twin=twin)


def _runs() -> Iterator[Way]:
    """On spot, where only runs of at most two hours may be."""

    def on_spot(annotation: str | None, deadline: int | None) -> Raw:
        metadata = {} if annotation is None else {"metadata": {"annotations": {DURATION: annotation}}}
        return selecting(CAPACITY, "spot", **metadata, **({} if deadline is None else {"activeDeadlineSeconds": deadline}))

    twin = creates(on_spot("1h", 3600))
    spot = {
        "a minute, and a deadline of a week": on_spot("1m", WEEK),
        "100 hours, and a deadline of a minute": on_spot("100h", 60),
        "a deadline of a week": on_spot(None, WEEK),
        "nothing": on_spot(None, None),
        "just over two hours": on_spot("2h0m0.5s", None),
        "just over two hours in nanoseconds": on_spot("2h1ns", None),
    }
    for name, made in spot.items():
        yield Way(name=f"runs for {name}", guard="long-runs", attack=creates(made), twin=twin, codes=PLACES)
    for value in ("2d", "", "-1h", "0", "1h ", "\u0661h", "1e3h"):
        codes = (*PLACES, "BERTH-151")
        yield Way(name=f"runs for {value!a}", guard="long-runs", attack=creates(on_spot(value, None)), twin=twin, codes=codes)


def _graces() -> Iterator[Way]:
    twin = creates(pod(terminationGracePeriodSeconds=600))

    def probed(probe: str, *, init: bool = False) -> Raw:
        container = asking(gpus())["spec"]["containers"][0]
        long = {probe: {"httpGet": {"path": "/", "port": 80}, "terminationGracePeriodSeconds": 3600}}
        if init:
            sidecar = {"name": "side", "image": "registry.example/side:1", "restartPolicy": "Always", **long}
            return pod(initContainers=[sidecar])
        return pod(containers=[{**container, **long}])

    for probe in ("livenessProbe", "startupProbe"):
        yield Way(name=f"{probe}'s own", guard="grace", attack=creates(probed(probe)), twin=twin)
        yield Way(name=f"{probe}'s own, of a sidecar", guard="grace", attack=creates(probed(probe, init=True)), twin=twin)
        short = with_(probed(probe), terminationGracePeriodSeconds=1)
        yield Way(name=f"{probe}'s own beside a short one", guard="grace", attack=creates(short), twin=twin)
    opted = with_(annotated(**{"berth.dev/opt-out": "grace"}), terminationGracePeriodSeconds=3600)
    yield Way(name="opted out", guard="grace", attack=creates(opted), twin=twin)
    yield Way(name="one second too long", guard="grace", attack=creates(pod(terminationGracePeriodSeconds=601)), twin=twin)
    most = pod(terminationGracePeriodSeconds=2**63 - 1)
    yield Way(name="the longest that there is", guard="grace", attack=creates(most), twin=twin)


def _tolerations() -> Iterator[Way]:
    twin = creates(pod(tolerations=[TOLERATION, ALLOWED]))
    for name, toleration in TOLERATIONS.items():
        yield Way(name=name, guard="forbid", attack=creates(pod(tolerations=[toleration])), twin=twin)
    many = [{**ALLOWED, "key": f"key-{n}"} for n in range(50)]
    yield Way(name="the last of many", guard="forbid", attack=creates(pod(tolerations=[*many, FORBIDDEN])), twin=twin)
    for operator, value, within in (("Gt", "5", "9"), ("Lt", "9", "5")):
        numeric, honest = ({"key": "level", "operator": operator, "value": one, "effect": "NoSchedule"} for one in (value, within))
        attack, twin = creates(pod(tolerations=[numeric])), creates(pod(tolerations=[honest]))
        yield Way(name=operator, guard="ranges", attack=attack, twin=twin)
    for name, made in ASKING.items():
        wrong = with_(made, tolerations=[TOLERATIONS["every taint"]])
        yield Way(name=f"every taint, by {name}", guard="forbid", attack=creates(wrong), twin=creates(with_(made, tolerations=[ALLOWED])))


WAYS = (*_protections(), *_runs(), *_graces(), *_tolerations())
