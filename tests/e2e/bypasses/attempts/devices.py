"""Class 0c: every accelerator counts, by whatever name and whoever made it, and what nobody knows is inside no ``in``."""

from __future__ import annotations

from collections.abc import Iterator

from tests.e2e.bypasses.guardrails import H100_NODE, PLACES, asking, marked, with_
from tests.e2e.bypasses.way import Way, creates
from tests.e2e.workloads import NVIDIA, gpus, pod
from tests.testcluster.controlplane.api import Raw

WHOLE = (
    "habana.ai/gaudi",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neurondevice",
    "aws.amazon.com/neuroncore",
    "google.com/tpu",
    "amd.com/gpu",
    "amd.com/spx_nps1",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
    "nvidia.com/mig-7g.80gb",
    "nvidia.com/mig-7g.40gb",
    "deviceclass.resource.kubernetes.io/ways-gpu",
    "deviceclass.resource.kubernetes.io/ways-odd",
    "deviceclass.resource.kubernetes.io/nobody",
)
"""Each is a whole device, or may be one"""
FOREIGN = (*(name for name in WHOLE if not name.startswith("nvidia") and not name.endswith("ways-gpu")),)
"""Of other vendors, or of nobody knows whom"""
SHARES: dict[str, Raw] = {
    "a replica": pod(gpus(1, "nvidia.com/gpu.shared")),
    "a replica of a slice": pod(gpus(1, "nvidia.com/mig-1g.10gb.shared")),
    "a slice": pod(gpus(1, "nvidia.com/mig-3g.40gb")),
    "an AMD partition": pod(gpus(1, "amd.com/cpx_nps1")),
    "KAI's fraction": marked(pod({}), annotations={"gpu-fraction": "0.5"}),
    "KAI's fraction, with its scheduler": with_(marked(pod({}), annotations={"gpu-fraction": "0.5"}), schedulerName="kai-scheduler"),
    "KAI's memory": marked(pod({}), annotations={"gpu-memory": "4000"}),
    "KAI's memory of a container": marked(pod({}), annotations={"nvidia.com/container.main.gpu-memory.request": "4Gi"}),
    "KAI's fraction beside a device": marked(pod(), annotations={"gpu-fraction": "0.5"}),
    "HAMi's memory": pod({"limits": {NVIDIA: "1", "nvidia.com/gpumem": "4000"}}),
    "HAMi's share of memory": pod({"limits": {NVIDIA: "1", "nvidia.com/gpumem-percentage": "50"}}),
    "HAMi's cores": pod({"limits": {NVIDIA: "1", "nvidia.com/gpucores": "30"}}),
    "HAMi's memory in another container": asking(gpus(), {"limits": {"nvidia.com/gpumem": "4000"}}),
}
FRACTIONS: dict[str, Raw] = {
    "of half each": {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "8"},
    "whole": {"gpu-fraction": "1.0", "gpu-fraction-num-devices": "8"},
    "by memory": {"gpu-memory": "4000", "gpu-fraction-num-devices": "8"},
    "that nobody can read": {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "0x8"},
    "of a fraction above one": {"gpu-fraction": "8"},
    "of eight containers": {f"nvidia.com/container.c{number}.gpu-memory.request": "4Gi" for number in range(8)},
    "of eight containers, under another prefix": {f"gpus.example/c{number}.gpu-memory.limit": "4Gi" for number in range(8)},
}


def _counted() -> Iterator[Way]:
    for name in WHOLE:
        yield Way(name=f"8 of {name}", guard="max", attack=creates(pod(gpus(8, name))), twin=creates(pod(gpus(2, name))))
        if not name.endswith("core"):  # so many to a device
            yield Way(name=f"3 of {name}", guard="one-of", attack=creates(pod(gpus(3, name))), twin=creates(pod(gpus(2, name))))
        attack, twin = (creates(pod(gpus(n, name), terminationGracePeriodSeconds=3600)) for n in (8, 2))
        yield Way(name=f"8 of {name}", guard="large", attack=attack, twin=twin)
    for name, words in FRACTIONS.items():
        attack = creates(marked(pod({}), annotations=words))
        twin = creates(marked(pod({}), annotations={"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}))
        yield Way(name=f"fractions {name}", guard="max", attack=attack, twin=twin, codes=("BERTH-1",))
    many: Raw = {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "8"}  # to get out of a match for small pods
    attack, twin = (creates(marked(pod(terminationGracePeriodSeconds=n), annotations=many)) for n in (3600, 600))
    yield Way(name="eight fractions that nobody gives", guard="small", attack=attack, twin=twin)
    beside = marked(pod(gpus(8)), annotations={"gpu-fraction": "0.5", "gpu-fraction-num-devices": "1"})
    yield Way(name="one fraction beside eight", guard="max", attack=creates(beside), twin=creates(pod(gpus(4))))


def _nowhere() -> Iterator[Way]:
    """No node of theirs is inside what is required."""
    for guard in ("models", "families", "instances", "memory"):
        twin = creates(pod())
        for name in FOREIGN if guard == "models" else FOREIGN[:2] + FOREIGN[-2:]:
            if (guard, name) == ("memory", "habana.ai/gaudi"):
                continue  # of 96 GB and more
            yield Way(name=name, guard=guard, attack=creates(pod(gpus(1, name))), twin=twin, codes=PLACES)
        both = asking(gpus(), gpus(1, "aws.amazon.com/neuron"))
        yield Way(name="a Neuron device beside a GPU", guard=guard, attack=creates(both), twin=twin, codes=PLACES)
        if guard == "memory":
            continue  # Gaudi has 96 GB and more
        pinned = with_(pod(gpus(1, "habana.ai/gaudi")), nodeName=H100_NODE)
        yield Way(name="Gaudi on a known node", guard=guard, attack=creates(pinned), twin=twin, codes=PLACES)


def _shared() -> Iterator[Way]:
    for name, made in SHARES.items():
        yield Way(name=name, guard="sharing", attack=creates(made), twin=creates(pod()), codes=PLACES)


WAYS = (*_counted(), *_nowhere(), *_shared())
