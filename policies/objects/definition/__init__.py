"""The definition of our three kinds: every field once, with its type, bounds, default, meaning and wording.

The strict parser, the JSON schema, the CustomResourceDefinitions, docs/reference.md and the texts of statuses
and of ``berth effective`` (``policies.objects.wording``) are derived from it: a new field is one entry in
``policy_spec`` or ``NODE_TEMPLATE`` and an attribute in ``policies.policy``.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import get_args

from catalog.shapes.scalars import Name, PatternText
from catalog.shapes.structs import Field, Items, Struct
from policies.objects import parts as part
from policies.objects import validation as between
from policies.objects.definition.policy_spec import POLICY
from policies.objects.field_types import Kind

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


KINDS: tuple[Kind, ...] = get_args(Kind)
NAME = PatternText(wanted="a DNS subdomain", pattern=part.DNS_SUBDOMAIN)
NAMESPACE = PatternText(wanted="a DNS label", pattern=part.DNS_LABEL, most=63)
NAMESPACED: tuple[Kind, ...] = ("GPUPolicy",)
SPECS: MappingProxyType[Kind, Struct] = MappingProxyType(
    {"ClusterGPUPolicy": POLICY, "GPUPolicy": POLICY, "GPUNodeTemplate": NODE_TEMPLATE}
)
ABOUT: MappingProxyType[Kind, str] = MappingProxyType(
    {
        "ClusterGPUPolicy": "Guardrails, defaults and grants for the namespaces that `namespaceSelector` selects. Cluster-scoped.",
        "GPUPolicy": "A team's own constraints and defaults for its namespace, within what ClusterGPUPolicies allow. Namespaced.",
        "GPUNodeTemplate": "A named kind of node. Berth creates no nodes. Cluster-scoped.",
    }
)
