"""Words about nodes that no catalog knows: as public manifests have them, on keys of clusters' own, other vendors', and newer than ours."""

from __future__ import annotations

import copy
from random import Random
from typing import Any, NamedTuple

from tests.support.generators.random_terms import REQUIRED

Raw = dict[str, Any]


class Word(NamedTuple):
    """One expression."""

    key: str
    operator: str
    values: tuple[str, ...]

    @property
    def expression(self) -> Raw:
        return {"key": self.key, "operator": self.operator, **({"values": [*self.values]} if self.values else {})}


WORDS = (
    Word("NodeGroupType", "In", ("g5-gpu",)),
    Word("cloud.google.com/compute-class", "In", ("gpu-queue",)),
    Word("karpenter.sh/nodepool", "In", ("team-gpus",)),
    Word("node-role.kubernetes.io/gpu", "Exists", ()),
    Word("accelerator", "In", ("nvidia", "nvidia-l4")),
    Word("pool", "NotIn", ("cpu",)),
    Word("example.com/no-gpus", "DoesNotExist", ()),
    Word("gpu.nvidia.com/vram", "Gt", ("40",)),
    Word("example.com/slots", "Lt", ("8",)),
    Word("karpenter.k8s.aws/instance-gpu-name", "In", ("z100",)),
    Word("karpenter.k8s.aws/instance-family", "In", ("p4d", "p99")),
    Word("nvidia.com/gpu.product", "In", ("NVIDIA-Z1",)),
)


def with_word(pod: Raw, word: Word, random: Random) -> Raw:
    """The pod with this word beside what it says of nodes: in its nodeSelector, in one of its terms, or as its only term."""
    out = copy.deepcopy(pod)
    spec = out["spec"]
    if word.operator == "In" and len(word.values) == 1 and random.random() < 0.5:
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), word.key: word.values[0]}
        return out
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    terms = affinity.setdefault(REQUIRED, {"nodeSelectorTerms": []})["nodeSelectorTerms"]
    chosen = random.choice(terms) if terms and random.random() < 0.8 else {}
    if not any(chosen is term for term in terms):
        terms.append(chosen)
    chosen["matchExpressions"] = [*(chosen.get("matchExpressions") or ()), word.expression]
    return out
