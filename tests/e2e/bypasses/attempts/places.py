"""Class 0g, and the nodes of 0d: where the pod runs, by a name, a label or a platform that nobody thought of, and past a node's taints.

Nodes here stand for real ones: a spot machine of Karpenter on which feature discovery and a device plugin run too, GKE's, a node of another
team's. A pod that is stored has got through only where it runs: kube-scheduler is asked.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.e2e.bypasses.attempts.actors import on, pinned_to
from tests.e2e.bypasses.guardrails import (
    AMD_NODE,
    CAPACITY,
    CPU,
    FORBIDDEN_NODE,
    GKE_NODE,
    H100_NODE,
    P5_NODE,
    PLACES,
    PRODUCT,
    SPOT_NODE,
    T4_NODE,
    marked,
    with_,
)
from tests.e2e.bypasses.way import KEPT_OFF, Attempt, Way, controlled, creates, lands
from tests.e2e.workloads import NVIDIA, TOLERATION, affinity, expression, gpus, pod
from tests.testcluster.controlplane.api import Raw

HOST = "kubernetes.io/hostname"
SLICE, LARGEST, SHARED = (f"nvidia.com/{name}" for name in ("mig-1g.10gb", "mig-7g.80gb", "gpu.shared"))
OFF = (*PLACES, KEPT_OFF)


def at(node: str, resource: str = NVIDIA, **selector: str) -> Raw:
    """A pod that only this node can take."""
    return pod(gpus(1, resource), nodeSelector={HOST: node, **selector}, tolerations=[TOLERATION])


def terms(*required: Raw) -> Raw:
    return pod(affinity=affinity(*required), tolerations=[TOLERATION])


def field(*values: str, operator: str = "In") -> Raw:
    return {"matchFields": [expression("metadata.name", *values, operator=operator)]}


CUT = {"a slice": SLICE, "the largest slice": LARGEST, "a replica": SHARED}
"""Names that feature discovery's platform lists and Karpenter's does not, where somebody may have cut them by hand all the same."""


def _of_karpenter(asked: str) -> Iterator[tuple[str, Raw]]:
    """By a label that holds it to the platform whose table lacks the name."""
    for name, selector in {
        "and how it is sold": {CAPACITY: "spot"},
        "and its machine": {"karpenter.k8s.aws/instance-family": "g4dn"},
    }.items():
        yield name, with_(at(SPOT_NODE, asked), nodeSelector=selector)


def _lands() -> Iterator[Way]:
    """On spot under on-demand, on a T4 under Hopper: by a selector that leaves one platform possible, or none that is known."""
    twin = lands(at(H100_NODE))
    spot = {
        "its host's name": at(SPOT_NODE),
        "a product's label": with_(at(SPOT_NODE), nodeSelector={HOST: SPOT_NODE, PRODUCT: "Tesla-T4"}),
        "a family's label": with_(at(SPOT_NODE), nodeSelector={HOST: SPOT_NODE, "nvidia.com/gpu.family": "turing"}),
        "a slice": at(SPOT_NODE, SLICE),
        "the largest slice": at(SPOT_NODE, LARGEST),
        "a replica": at(SPOT_NODE, SHARED),
        "a slice, and a NodePool": with_(at(SPOT_NODE, SLICE), nodeSelector={HOST: SPOT_NODE, "karpenter.sh/nodepool": "gpu"}),
        **{f"{what}, {name}": made for what, asked in CUT.items() for name, made in _of_karpenter(asked)},
        "an instance type": with_(at(SPOT_NODE), nodeSelector={HOST: SPOT_NODE, "node.kubernetes.io/instance-type": "g4dn.xlarge"}),
    }
    for name, made in spot.items():
        yield Way(name=name, guard="capacity", attack=lands(made), twin=twin, codes=OFF)
    for name in ("a product's label", "a slice", "its host's name", "a slice, and how it is sold", "a replica, and its machine"):
        yield Way(name=name, guard="long-runs", attack=lands(spot[name]), twin=twin, codes=OFF)
    inside = lands(at(P5_NODE))
    for guard in ("families", "memory", "instances"):  # how machines of a platform that nobody lists are sold can't be said
        yield Way(name="a node of a platform that is not in force", guard=guard, attack=lands(at(GKE_NODE)), twin=inside, codes=OFF)
    for guard in ("families", "models", "memory"):
        yield Way(name="its host's name", guard=guard, attack=lands(at(T4_NODE)), twin=inside, codes=OFF)
        yield Way(name="a slice on spot", guard=guard, attack=lands(at(SPOT_NODE, SLICE)), twin=inside, codes=OFF)
    for what, asked in CUT.items():
        for name, made in _of_karpenter(asked):
            for guard in ("sharing", "memory"):
                yield Way(name=f"{what}, {name}", guard=guard, attack=lands(made), twin=inside, codes=OFF)
    yield Way(name="a replica", guard="sharing", attack=lands(at(SPOT_NODE, SHARED)), twin=twin, codes=OFF)


def _terms() -> Iterator[Way]:
    """Required terms are ORed: one that is inside hides another."""
    inside, outside = ({"matchExpressions": [expression(HOST, node)]} for node in (H100_NODE, T4_NODE))
    odd = {
        "one term inside, its node full": terms({"matchExpressions": [expression(HOST, "ways-nowhere")]}, outside),
        "two nodes by matchFields": terms(field("ways-nowhere"), field(T4_NODE)),
        "a field and a label": terms({**field(T4_NODE), **outside}),
        "every node but others": terms({"matchExpressions": [expression(HOST, H100_NODE, operator="NotIn"), expression(HOST, T4_NODE)]}),
        "a memory above": terms({"matchExpressions": [expression("nvidia.com/gpu.memory", "1", operator="Gt"), expression(HOST, T4_NODE)]}),
        "an empty term beside it": terms({}, outside),
        "no label of accelerators": terms(
            {"matchExpressions": [expression("nvidia.com/gpu.present", "true"), expression(HOST, T4_NODE)]},
        ),
    }
    for name, made in odd.items():
        yield Way(name=name, guard="families", attack=lands(made), twin=lands(terms(inside)), codes=OFF)


def _named() -> Iterator[Way]:
    """By the node's name, which kube-scheduler's filters never see."""
    honest = creates(on(H100_NODE)(pod()))
    for put, how in ((on, "spec.nodeName"), (pinned_to, "matchFields")):
        nodes = {
            "a slice on spot": ("capacity", put(SPOT_NODE)(pod(gpus(1, SLICE)))),
            "the largest slice on spot": ("capacity", put(SPOT_NODE)(pod(gpus(1, LARGEST)))),
            "a replica on spot": ("capacity", put(SPOT_NODE)(pod(gpus(1, SHARED)))),
            "a DRA resource on spot": ("capacity", put(SPOT_NODE)(pod(gpus(1, "deviceclass.resource.kubernetes.io/ways-gpu")))),
            "a platform that is not in force": ("capacity", put(GKE_NODE)(pod())),
            "another vendor's node": ("families", put(AMD_NODE)(pod(gpus(1, "amd.com/gpu")))),
            "a slice on a T4": ("families", put(SPOT_NODE)(pod(gpus(1, SLICE)))),
            "GKE's T4": ("families", put(GKE_NODE)(pod())),
            "shared GPUs": ("sharing", put("a100-shared")(pod())),
            "slices": ("sharing", put("a100-mig")(pod(gpus(1, SLICE)))),
        }
        for name, (guard, made) in nodes.items():
            yield Way(name=f"{how}: {name}", guard=guard, attack=creates(made), twin=honest, codes=PLACES)
        for what, asked in CUT.items():
            bare = creates(put(CPU)(pod(gpus(1, asked))))
            yield Way(name=f"{how}: {what} of a node without labels", guard="sharing", attack=bare, twin=honest, codes=PLACES)
    spot = with_(on(SPOT_NODE)(pod()), nodeSelector={CAPACITY: "on-demand"})
    yield Way(name="spec.nodeName: spot, selecting on-demand", guard="capacity", attack=creates(spot), twin=honest, codes=PLACES)


def _tainted() -> Iterator[Way]:
    """A node whose taint is forbidden: spec.nodeName walks past it without a toleration."""
    codes = ("BERTH-131", "BERTH-132")
    attack, twin = creates(on(FORBIDDEN_NODE)(pod())), creates(on(H100_NODE)(pod()))
    yield Way(name="spec.nodeName of a node that is another team's", guard="forbid", attack=attack, twin=twin, codes=codes)
    tolerating = pinned_to(FORBIDDEN_NODE)(pod(tolerations=[{"operator": "Exists"}]))
    yield Way(name="matchFields of a node that is another team's", guard="forbid", attack=creates(tolerating), twin=twin, codes=codes)


def _slices() -> Iterator[Way]:
    """Where slices alone may be."""
    twin = creates(pod(gpus(1, SLICE)))
    tolerations = [TOLERATION, {"key": "amd.com/gpu", "operator": "Exists"}]
    for name, made in {
        "a whole GPU": pod(),
        "a whole GPU, by its host's name": at(H100_NODE),
        "a whole GPU that wants no slice": marked(pod(), annotations={"berth.dev/mig-slice": "none"}),
        "a DRA resource": pod(gpus(1, "deviceclass.resource.kubernetes.io/ways-gpu")),
        "a DRA resource of a named class": pod(gpus(1, "ways.example/gpu")),
        "an AMD GPU": pod(gpus(1, "amd.com/gpu")),
        "a fraction": marked(pod({}), annotations={"gpu-fraction": "0.5"}),
        "a renamed GPU": pod(gpus(1, RENAMED)),
    }.items():
        yield Way(name=name, guard="slices", attack=lands(with_(made, tolerations=tolerations)), twin=twin, codes=OFF)
    yield Way(name="on a node by its name", guard="slices", attack=creates(on(H100_NODE)(pod())), twin=twin, codes=OFF)


def _excluded() -> Iterator[Way]:
    """Where a family may not be."""
    twin = lands(at(T4_NODE))
    above = {"matchExpressions": [expression("nvidia.com/gpu.memory", "40000", operator="Gt"), expression(HOST, H100_NODE)]}
    no_t4 = {"matchExpressions": [expression(PRODUCT, "Tesla-T4", operator="NotIn"), expression(HOST, H100_NODE)]}
    for name, made in {
        "its host's name": at(H100_NODE),
        "Karpenter's, by its host's name": at(P5_NODE),
        "Karpenter's, by its family": with_(at(P5_NODE), nodeSelector={"karpenter.k8s.aws/instance-family": "p5"}),
        "Karpenter's, by its instance type": with_(at(P5_NODE), nodeSelector={"node.kubernetes.io/instance-type": "p5.48xlarge"}),
        "every product but T4": terms(no_t4),
        "a memory above": terms(above),
    }.items():
        yield Way(name=name, guard="not-hopper", attack=lands(made), twin=twin, codes=OFF)


RENAMED = "acme.example/gpu"
"""a GPU of which no list has the name, on a node without labels and on the one on spot"""


def _unlisted() -> Iterator[Way]:
    """What no list has, and parts of GPUs, on nodes outside."""
    twin = lands(at(P5_NODE))
    for guard in ("families", "models", "memory", "sharing"):
        renamed = pod(gpus(1, RENAMED), tolerations=[TOLERATION])
        yield Way(name="a renamed GPU", guard=guard, attack=lands(renamed), twin=twin, codes=OFF)
    for guard in ("families", "models", "memory", "capacity"):
        half = with_(marked(pod({}), annotations={"gpu-fraction": "0.5"}), nodeSelector={HOST: SPOT_NODE}, tolerations=[TOLERATION])
        yield Way(name="a fraction, by its host's name", guard=guard, attack=lands(half), twin=twin, codes=OFF)
    for name, selector in {
        "its host's name": {HOST: SPOT_NODE},
        "how it is sold": {CAPACITY: "spot"},
        "its NodePool": {"karpenter.sh/nodepool": "gpu"},
    }.items():
        for guard in ("capacity", "long-runs"):
            attack = lands(with_(at(SPOT_NODE, RENAMED), nodeSelector=selector))
            yield Way(name=f"a renamed GPU on spot, by {name}", guard=guard, attack=attack, twin=twin, codes=OFF)


def _daemons() -> Iterator[Way]:
    """Pods of a real DaemonSet, which its controller pins to nodes by their names."""

    def daemon(node: str, resource: str = NVIDIA) -> Attempt:
        return controlled("DaemonSet", at(node, resource))

    codes = (*OFF, "BERTH-213")
    for guard, outside in (
        ("families", T4_NODE),
        ("models", T4_NODE),
        ("memory", T4_NODE),
        ("capacity", SPOT_NODE),
        ("sharing", "a100-shared"),
    ):
        yield Way(name="a real DaemonSet", guard=guard, attack=daemon(outside), twin=daemon(P5_NODE), codes=codes)
    yield Way(name="a real DaemonSet", guard="not-hopper", attack=daemon(H100_NODE), twin=daemon(T4_NODE), codes=codes)
    yield Way(name="a real DaemonSet", guard="slices", attack=daemon(H100_NODE), twin=daemon("a100-mig", SLICE), codes=codes)


WAYS = (*_lands(), *_terms(), *_named(), *_tainted(), *_slices(), *_excluded(), *_unlisted(), *_daemons())
