"""The spec of a GPUNodeTemplate: the GPUs and the capacity of its nodes, and the labels and taints that
only they carry."""

from __future__ import annotations

from policies.objects import parts as part
from policies.objects import validation as between
from policies.objects.field_types import Field, Items, Labels, Name, Struct

_GPUS = Struct(
    build=part.with_machine(lambda **given: given),
    rules=(between.profiles_need_mig,),
    fields=(
        Field(
            name="vendors", shape=Items(of=Name(noun="GPU vendor", known="vendors")), example="[nvidia]", about="Makers of the GPUs.",
        ),
        *part.machine("memory"),
        Field(
            name="sharing", shape=Items(of=part.SHARING), example="[TimeSliced]",
            about="How these nodes share their GPUs, where Karpenter by itself would make whole ones.",
        ),
        Field(
            name="migProfiles", store="mig_profiles", shape=Items(of=Name(noun="MIG profile", known="migProfiles")), example="[1g.10gb]",
            about="Slices that these nodes carry; with `sharing: [MIG]`.",
        ),
    ),
)  # fmt: skip

NODE_TEMPLATE = Struct(
    build=lambda gpus=None, **given: {**given, **(gpus or {})},
    fields=(
        Field(
            name="gpus", attribute="", shape=_GPUS, example="{families: {in: [ampere]}}",
            about="Which GPUs these nodes have, broadly: a new model is in as soon as the catalog knows it.",
        ),
        part.capacity("Which capacity these nodes are."),
        Field(
            name="labels", shape=Labels(least=1), required=True, example="{karpenter.sh/nodepool: gpu-a100}",
            about="Labels that exactly these nodes carry; written as required affinity when the template is chosen.",
        ),
        Field(
            name="taints", words="taints {}", shape=Items(of=part.TAINT, least=0),
            about="Taints of these nodes; tolerated when the template is chosen.",
            example="[{key: pool, value: a100, effect: NoSchedule}]",
        ),
    ),
)  # fmt: skip
