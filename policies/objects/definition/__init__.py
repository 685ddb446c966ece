"""The definition of our three kinds: every field once, with its type, bounds, default, meaning and wording.

The strict parser, the JSON schema, the CustomResourceDefinitions, docs/reference.md and the texts of statuses
and of ``berth effective`` (``policies.objects.wording``) are derived from it: a new field is one entry in
``policy_spec`` or ``node_template_spec`` and an attribute in ``policies.policy``.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import get_args

from catalog.shapes.scalars import PatternText
from catalog.shapes.structs import Struct
from policies.objects import parts as part
from policies.objects.definition.node_template_spec import NODE_TEMPLATE
from policies.objects.definition.policy_spec import POLICY
from policies.objects.field_types import Kind

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
