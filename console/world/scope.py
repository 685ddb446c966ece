"""What one person may list, as the API server says; pages get nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class ListedKind(NamedTuple):
    """A kind of objects, as rights name it."""

    group: str
    plural: str

    @property
    def resource(self) -> str:
        """The name that RBAC and kubectl use."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


@dataclass(frozen=True, slots=True)
class ListableNamespaces:
    """Namespaces in which objects of one kind may be listed: all of them, or those named."""

    every: bool = False
    names: frozenset[str] = frozenset()

    def __contains__(self, namespace: object) -> bool:
        return self.every or namespace in self.names


ALL = ListableNamespaces(every=True)
NONE = ListableNamespaces()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The rights of one person to list, by kind."""

    who: str
    """Name of the person as the API server knows them; "" on a laptop, where the rights are those of the kubeconfig."""
    pods: ListableNamespaces = field(default=NONE)
    own_policies: ListableNamespaces = field(default=NONE)
    """GPUPolicies."""
    events: ListableNamespaces = field(default=NONE)
    reports: ListableNamespaces = field(default=NONE)
    cluster_policies: bool = False
    """ClusterGPUPolicies."""
    node_templates: bool = False
    nodes: bool = False
    node_pools: bool = False


EVERYTHING = Scope(
    who="", pods=ALL, own_policies=ALL, events=ALL, reports=ALL, cluster_policies=True, node_templates=True, nodes=True, node_pools=True
)
"""Of whoever has a kubeconfig, or files: what they may not list was not read."""
NOTHING = Scope(who="")
"""Of somebody whose rights are not known."""
