"""The spec of a GPUNodeTemplate: the GPUs and the capacity of its nodes, and the labels and taints that
only they carry."""

from __future__ import annotations

from catalog.shapes.scalars import Name
from catalog.shapes.structs import Field, Items, Struct
from policies.objects import parts as part
from policies.objects import validation as between

_GPUS = Struct(
    build=part.with_machine(lambda **given: given),
    rules=(between.profiles_need_mig,),
    fields=(
        Field(
            name="vendors", shape=Items(of=Name(noun="GPU vendor", known="vendors")), example="[nvidia]",
            description="Vendors of the GPUs.",
        ),
        *part.machine("memory"),
        Field(
            name="sharing", shape=Items(of=part.SHARING), example="[TimeSliced]",
            description="How these nodes share their GPUs. Needed with Karpenter, whose own nodes have whole GPUs.",
        ),
        Field(
            name="migProfiles", store="mig_profiles", shape=Items(of=Name(noun="MIG profile", known="migProfiles")), example="[1g.10gb]",
            description="MIG slices of these nodes. Requires `sharing: [MIG]`.",
        ),
    ),
)  # fmt: skip

NODE_TEMPLATE = Struct(
    build=lambda gpus=None, **given: {**given, **(gpus or {})},
    fields=(
        Field(
            name="gpus", attribute="", shape=_GPUS, example="{families: {in: [ampere]}}",
            description="The GPUs of these nodes. A new model matches as soon as the catalog has it.",
        ),
        part.capacity("Capacity types of these nodes."),
        Field(
            name="labels", shape=part.labels(least=1), required=True, example="{karpenter.sh/nodepool: gpu-a100}",
            description="Labels that only these nodes have. Pods with this template get them as required node affinity.",
        ),
        Field(
            name="taints", words="taints {}", shape=Items(of=part.TAINT, least=0),
            description="Taints of these nodes. Pods with this template tolerate them.",
            example="[{key: pool, value: a100, effect: NoSchedule}]",
        ),
    ),
)  # fmt: skip
