"""Policies of a large cluster: guardrails of the platform team, and teams' own."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.support.recorded.parts import Raw

MODES = ("Audit", "Audit", "Warn", "Enforce", "Enforce")
REQUIRES: Sequence[Raw] = (
    {"requestsEqualLimits": ["accelerators"]},
    {"gpusPerPod": {"max": 8}},
    {"gpusPerPod": {"max": 4}},
    {"sharing": ["Exclusive", "MIG"]},
    {"families": {"in": ["hopper", "ampere", "ada-lovelace", "turing"]}},
    {"models": {"notIn": ["A100-40GB"]}},
    {"gracePeriod": {"max": "1h"}},
    {"capacity": ["on-demand"]},
    {"tolerations": {"forbid": [{"key": "team", "value": "research"}]}},
)
DEFAULTS: Sequence[Raw] = (
    {"acceleratorTaints": "Tolerate"},
    {"gracePeriod": "30m"},
    {"protectFor": "12h"},
    {"capacity": ["spot"]},
    {"models": {"in": ["L4"]}},
    {"families": {"in": ["hopper", "ampere"]}},
    {"longRuns": {"over": "2h", "capacity": ["on-demand"], "unknownIsLong": True}, "capacity": ["spot"]},
)
MATCHES: Sequence[Raw] = (
    {},
    {"gpus": {"min": 4}},
    {"gpus": {"max": 1}},
    {"workloads": ["Job", "PyTorchJob"]},
    {"workloads": ["Deployment"]},
)


def policies_for(random: Random, count: int, namespaces: Sequence[str]) -> list[Raw]:
    """So many policies, valid each: a quarter of the cluster, for namespaces by label; the rest of single namespaces."""
    found = [_of_cluster("berth-default", "Enforce", {}, {"requestsEqualLimits": ["accelerators"]}, {"acceleratorTaints": "Tolerate"})]
    while len(found) < count:
        number, mode = len(found), random.choice(MODES)
        match, require, default = dict(random.choice(MATCHES)), random.choice(REQUIRES), random.choice(DEFAULTS)
        if number % 4 == 0:
            key, values = random.choice((("team", ("research", "web", "vision")), ("environment", ("dev", "production"))))
            match.pop("workloads" if number % 8 else "", None)  # authors write owners: no constraint of the cluster may rest on them
            match["namespaceSelector"] = {"matchLabels": {key: random.choice(values)}}
            found.append(_of_cluster(f"platform-{number:03}", mode, match, require if number % 8 else {}, {} if number % 8 else default))
        else:
            metadata = {"name": f"own-{number:03}", "namespace": random.choice(namespaces)}
            found.append(_object("GPUPolicy", metadata, mode, match, {} if number % 3 else require, default if number % 3 else {}))
    return found[:count]


def _of_cluster(name: str, mode: str, match: Raw, require: Raw, default: Raw) -> Raw:
    return _object("ClusterGPUPolicy", {"name": name}, mode, match, require, default)


def _object(kind: str, metadata: Raw, mode: str, match: Raw, require: Raw, default: Raw) -> Raw:
    spec: Raw = {"mode": mode}
    spec |= {key: part for key, part in (("match", match), ("require", require), ("default", default)) if part}
    return {"apiVersion": "berth.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}
