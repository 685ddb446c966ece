"""Pods that name their node: what the node may be, by its labels, and whether any of that is inside what is required."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from catalog import Platform
from tests.reference import pods
from tests.reference.nodes import OLDER, Node, Table, holds
from tests.reference.placing import Placing

Labels = Mapping[str, str]


class KnownNodes(Placing):
    def known_node(self) -> set[str]:
        """A known node that can be nothing of what is required, or is of a platform on which nobody judges that."""
        labels = self.cluster.nodes.get(self.pod["spec"].get("nodeName") or pods.pinned(self.pod) or "")
        if labels is None or not self.constrained():
            return set()
        labels = {**{OLDER[key]: value for key, value in labels.items() if key in OLDER}, **labels}
        home = self.home(labels)
        elsewhere = home not in self.atlas.tables
        carried: list[Node] = []
        for name, table in self.atlas.tables.items():
            if elsewhere or name == home:
                nodes = self.as_labelled(table, labels)
                # a platform that is not in force may well know the machine
                carried += self.asked_of(table, [n for n in nodes if not (home and elsewhere and n.gpu is None)])
        foreign = bool(home) and elsewhere
        if foreign and any(self.required_by(p.require, "capacity") for p in self.policies):
            return {"BERTH-124"}  # how nodes are sold there nobody here reads
        outside = not any(self.in_require(n) for n in carried)
        return {"BERTH-124"} if outside and (carried or foreign) else set()

    def devices_outside(self) -> set[str]:
        """Devices that are in no machine that is required, on whatever node they are."""
        if not any(self.required_by(p.require, "machine") for p in self.policies):
            return set()
        inside = [any(self.required(n, "machine") for n in self.world.nodes_of(name)) for name in self.wanted()]
        return set() if all(inside) else {"BERTH-126"}

    def home(self, labels: Labels) -> str:
        """The platform of the catalog that made the node, in force or not; of clouds first."""
        for platform in sorted(self.catalog.platforms.values(), key=lambda p: p.cloud is None):
            signs = [platform.anchor] if platform.cloud is not None else [platform.anchor, *platform.labels]
            if any(key in labels for key in signs) and _its_own(platform, labels):
                return platform.name
        return ""

    def as_labelled(self, table: Table, labels: Labels) -> list[Node]:
        """Nodes of a platform that may carry these labels."""
        platform = table.platform
        if not any(key in labels for key in platform.labels):
            return []
        says_which = {key for keys in platform.machine_keys for key in keys if key in labels}
        known = {key for key in says_which if not self.unknown(table, key, labels)}
        if says_which and not known:  # a machine that nobody knows
            keys = {*platform.labels, *platform.capacity_keys}
            return [n for n in table.nodes if n.gpu is None and all(_may_carry(n, key, labels[key]) for key in keys & set(labels))]
        readable = {key for key in labels if key in table.keys and not self.unknown(table, key, labels)}
        # a machine that is new in part is told by what is known of it alone
        firm = readable & {*(platform.labels if known == says_which else known), *platform.capacity_keys}
        nodes = self.carrying(table.nodes, labels, firm)
        nodes = self.carrying(nodes, labels, readable - firm) or nodes
        cut = any(self.atlas.meant(table, key, labels[key]) != labels[key] and "product" in key for key in readable)
        return [n for n in nodes if cut and n.sharing == "MIG"] or nodes

    def unknown(self, table: Table, key: str, labels: Labels) -> bool:
        """Whether nobody knows the value."""
        listed = {v for v in self.atlas.known(key) if v is not None and v[-1] not in "*?"}
        undecided = self.atlas.undecided(table, {"key": key, "operator": "In", "values": [labels[key]]})
        return key not in table.keys or undecided or not listed

    def carrying(self, nodes: Iterable[Node], labels: Labels, keys: set[str]) -> list[Node]:
        def may(node: Node, key: str) -> bool:
            table = self.atlas.tables[node.platform]
            wanted = {"key": key, "operator": "In", "values": [self.atlas.meant(table, key, labels[key])]}
            return any(holds(value, wanted, self.atlas.known(key)) for value in node.labels.get(key, (None,)))

        return [n for n in nodes if all(may(n, key) for key in keys)]

    def asked_of(self, table: Table, nodes: list[Node]) -> list[Node]:
        """Of what the node may be that which has the names; where it can't have them, the vendors' devices on it, else whatever it is."""
        here = table.platform.name
        named = {n for name in self.wanted() for n in self.world.nodes_of(name) if n.platform == here}
        theirs = [n for n in nodes if n.vendor in self.asking.vendors()]
        return [n for n in nodes if n in named] or theirs or nodes


def _its_own(platform: Platform, labels: Labels) -> bool:
    right = not platform.anchor_value or labels.get(platform.anchor) == platform.anchor_value
    return right and not any(key in labels for key in platform.not_with)


def _may_carry(node: Node, key: str, value: str) -> bool:
    return any(v in (value, "*", "?") for v in node.labels.get(key, (None,)))
