"""Snapshots one after another, as policies and facts come, change and go: the only way in which one is made.

``Updater`` holds what is known. ``apply`` takes the objects of a cluster that have changed, ``replace_all`` a
whole set as files have it. Both give the next snapshot, for which only what has changed is compiled again.
Pure: the same changes in any batches give the same decisions as all of them at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from catalog import Catalog
from policies.facts import cluster_facts, platform_detection
from policies.facts.cluster_facts import ClusterFacts
from policies.facts.device_modes import Following
from policies.facts.places import KnownPlaces
from policies.facts.places import known as places_known
from policies.facts.platform_detection import DetectedPlatform, Detector
from policies.objects import definition
from policies.offers.constraints import Compiled, CompiledTemplate
from policies.offers.known_slices import declared_slices, slices_of_nodes
from policies.offers.table import Table
from policies.policy import PolicySet
from policies.state.compilation import Compilation
from policies.state.objects import Acting, Change, Key, ObjectEntry, ObjectReader, as_map
from policies.state.snapshot import Lookalikes, ServedTables, Snapshot, by_labels, no_merged, vocabulary
from policies.verdict import Mode

AUTO = "auto"
"""stands for the platforms or the MIG strategy that nodes and NodePools show"""
QUEUES = ("kueue", "slurm-bridge")
MOST_SELECTED = 10_000
"""namespaces whose selected policies the next snapshot takes over: as many as one caches; bounds what a caller can fill"""
_DECISIVE = ("nodepool_grace", "nodepools", "device_classes")
"""Facts on which any decision may rest: with others, nothing decided before holds. (Claims are in the key of what rests on them.)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The settings that do not change while a server runs."""

    platforms: tuple[str, ...] = ()
    """names in the catalog, or ("auto",): as nodes and NodePools tell"""
    mig_strategy: str = "mixed"
    """mixed, single or auto"""
    queues: tuple[str, ...] = ()
    max_mode: Mode = "Enforce"
    follows_server: frozenset[str] = frozenset()
    """the options that were not given: commands take the server's platforms, queues and max_mode (analysis.conditions.server_options)"""
    console_url: str = ""
    """where answers say that more can be seen; "" if nowhere"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """The result of one batch of changes."""

    snapshot: Snapshot
    entries: Mapping[Key, ObjectEntry] = field(default_factory=dict)
    """our objects in the cluster; none where policies are files"""
    changed: bool = True
    """True if anything that decisions depend on has changed; else the snapshot is the previous one"""
    policies_changed: bool = False
    """True if policies, templates, platforms or the MIG strategy have changed"""
    decisions_hold: bool = True
    """True if decisions under the previous snapshot still hold for pods with the same policies (claims are in the decisions' key)"""
    added: tuple[str, ...] = ()
    """ids of policies and templates newly in force; changed ones are in ``modified``, those that are gone in ``removed``"""
    modified: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    denied: tuple[ObjectEntry, ...] = ()
    """objects whose newest form is invalid and was not reported by an earlier batch"""


class Updater:
    """All that is known, under one catalog. One at a time may call ``apply`` or ``replace_all``, from any thread."""

    def __init__(self, catalog: Catalog, options: Options) -> None:
        self.catalog = catalog
        self.options = options
        self._reader = ObjectReader(catalog)
        self._lookalikes = Lookalikes(catalog)
        self._entries: dict[Key, ObjectEntry] = {}
        self._facts = ClusterFacts()
        self._node_keys = platform_detection.node_keys(catalog)
        self._detected = DetectedPlatforms(catalog)
        self._modes = Following(catalog)
        self._served = ServedTables(catalog)
        self._compilation = Compilation(catalog, options.max_mode)
        self._snapshot: Snapshot | None = None
        self._detector = platform_detection.Detector(catalog)
        self._all_nodes = False

    def apply(self, changes: Mapping[Key, Change], *, all_nodes: bool = False) -> Update:
        """Apply all objects that have changed since the last batch, each once; whatever they are, nothing is raised.
        ``all_nodes``: nodes and NodePools are known as the API server has them. Should anything be raised all the same, such
        as MemoryError, everything is as it was before, and the batch can be applied again."""
        ours = {key: value for key, value in changes.items() if key[0] in definition.KINDS}
        facts = {key: value for key, value in changes.items() if key not in ours}
        entries = dict(self._entries)
        denied = tuple(self._store(ours, entries))
        put = [entry for key, value in facts.items() if value is not None for entry in self._read(key, value)]
        gone = [entry for key, value in facts.items() if value is None for entry in self._read(key, {})]
        known = self._facts.changed(put, gone)
        try:
            update = self._take(
                {key: entries[key].acting if key in entries else None for key in ours},
                known,
                self._detected.update(facts, known),
                namespaces={name for kind, _, name in facts if kind == "Namespace"},
                every_namespace=True,
                all_nodes=all_nodes,
            )
        except BaseException:
            self._detected.take_back(facts, self._facts)
            raise
        self._entries = entries
        return replace(update, entries=entries, denied=denied)

    def replace_all(self, policy_set: PolicySet, facts: ClusterFacts, *, all_nodes: bool = False) -> Update:
        """Replace all policies, templates and facts by these. ``all_nodes``: there are no other nodes and NodePools."""
        acting: dict[Key, Acting | None] = dict.fromkeys(self._compilation.acting)
        acting |= {("GPUNodeTemplate", "", template.name): template for template in policy_set.templates}
        for policy in policy_set.policies:
            kind = "ClusterGPUPolicy" if policy.namespace is None else "GPUPolicy"
            acting[kind, policy.namespace or "", policy.name] = policy
        before, known = self._facts.namespaces, facts.sharing(self._facts)
        return self._take(
            acting,
            known,
            platform_detection.detected(self.catalog, known),
            namespaces={name for name in before.keys() | known.namespaces if before.get(name) != known.namespaces.get(name)},
            every_namespace=False,
            all_nodes=all_nodes,
        )

    def _store(self, changes: Mapping[Key, Change], entries: dict[Key, ObjectEntry]) -> Iterator[ObjectEntry]:
        """Store the objects in ``entries`` and yield those whose newest form has errors that the form before did not have."""
        for key, value in changes.items():
            before = entries.get(key)
            if value is None:
                entries.pop(key, None)
                continue
            now = entries[key] = self._reader.entry(key, value, before)
            if now.understood.errors and (before is None or before.understood.errors != now.understood.errors):
                yield now

    def _read(self, key: Key, value: Mapping[str, Any]) -> tuple[cluster_facts.FactEntry, ...]:
        """Return the facts of one object, with name and namespace from the API server's key."""
        kind, namespace, name = key
        metadata = {**as_map(value.get("metadata")), "name": name, "namespace": namespace}
        return cluster_facts.read_facts(kind, {**value, "metadata": metadata}, self._node_keys)

    def _take(
        self,
        acting: Mapping[Key, Acting | None],
        facts: ClusterFacts,
        detected: tuple[tuple[str, ...], str],
        *,
        namespaces: AbstractSet[str],
        every_namespace: bool,
        all_nodes: bool,
    ) -> Update:
        """Make the next snapshot.

        ``acting``: policies and templates that change, None for one that is no longer in force. ``facts``: all of them. ``detected``: the
        platforms and the MIG strategy that ``auto`` stands for. ``namespaces``: those whose labels may have changed.
        ``every_namespace``, ``all_nodes``: True if all existing namespaces, or nodes and NodePools, are known.
        """
        before, options, (platforms, strategy) = self._snapshot, self.options, detected
        platforms = platforms if options.platforms == (AUTO,) else options.platforms
        strategy = strategy if options.mig_strategy == AUTO else options.mig_strategy
        advertised, unmaintained = self._modes.update(facts)
        compiled = self._compilation.copied() if acting else copy(self._compilation)
        recompiled = compiled.change(acting, platforms, strategy, unmaintained)
        if before is not None and facts is before.cluster and not recompiled.any and all_nodes == self._all_nodes:
            return Update(snapshot=before, changed=False)
        same_facts = before is not None and not any(getattr(facts, part) is not getattr(before.cluster, part) for part in _DECISIVE)
        same_templates = before is not None and not recompiled.templates and not recompiled.tables
        hold = same_facts and same_templates
        offered = self._places(facts, before if same_templates and self._all_nodes else None) if all_nodes else None
        tables, served = self._served.update(compiled.tables, facts)
        slices = self._slices(tables, compiled.templates, facts, before if same_templates else None)
        pools = before.pools_without_gpus if before and same_facts else platform_detection.pools_without_gpus(self.catalog, facts)
        named = (template.template for template in compiled.templates.values())
        words = before.vocabulary if before and same_templates else vocabulary(self.catalog, named)
        of_cluster = compiled.of_cluster
        snapshot = Snapshot(
            catalog=self.catalog,
            tables=tables,
            served=served,
            placed=bool(platforms),
            mig_strategy=strategy,
            queues=options.queues,
            max_mode=options.max_mode,
            console_url=options.console_url,
            policies=compiled.policies,
            of_cluster=of_cluster,
            own=compiled.own,
            templates=compiled.templates,
            cluster=facts,
            advertised=advertised,
            pools_without_gpus=pools,
            vocabulary=words,
            reads=compiled.reads() if before is None or recompiled.any else before.reads,
            every_namespace=every_namespace,
            by_labels=by_labels(of_cluster),
            lookalikes=self._lookalikes,
            costs=compiled.costs,
            known_places=offered,
            known_slices=slices,
            merged=before.merged if before and hold else no_merged(),
            selected=_selected(before, of_cluster, namespaces),
        )
        self._snapshot, self._facts, self._compilation, self._all_nodes = snapshot, facts, compiled, all_nodes
        return Update(
            snapshot=snapshot,
            policies_changed=recompiled.any,
            decisions_hold=hold,
            added=recompiled.added,
            modified=recompiled.modified,
            removed=recompiled.removed,
        )

    def _places(self, facts: ClusterFacts, before: Snapshot | None) -> KnownPlaces | None:
        """Return what nodes and NodePools offer; the same object while that is the same. To look takes milliseconds for 10,000 nodes."""
        if before is not None and facts.places is before.cluster.places and facts.pool_specs is before.cluster.pool_specs:
            return before.known_places
        found = places_known(
            facts.places.values(),
            facts.pool_specs,
            lambda labels: self._detector.of_node(labels).gpus,
            lambda name: (self.catalog.resource(name) or self._lookalikes.resource(name)) is not None,
        )
        return before.known_places if before is not None and found == before.known_places else found

    def _slices(
        self, tables: Mapping[str, Table], templates: Mapping[str, CompiledTemplate], facts: ClusterFacts, before: Snapshot | None
    ) -> int:
        """Return the rows of MIG slices that are known; those of before while nodes, tables and templates are the same."""
        if before is not None and facts.places is before.cluster.places and tables is before.tables:
            return before.known_slices
        kinds = {id(place): place for place in facts.places.values()}.values()
        return slices_of_nodes(self.catalog, tables, kinds) | declared_slices(tables, templates.values())


def _selected(before: Snapshot | None, of_cluster: tuple[Compiled, ...], namespaces: AbstractSet[str]) -> dict[str, tuple[Compiled, ...]]:
    """Return the policies selected per namespace that the previous snapshot has cached, as far as they still hold."""
    if before is None or before.of_cluster != of_cluster or len(before.selected) >= MOST_SELECTED:
        return {}
    return {namespace: found for namespace, found in list(before.selected.items()) if namespace not in namespaces}


class DetectedPlatforms:
    """The platforms and MIG strategy that ``auto`` stands for. Platforms that were certain once stay so."""

    def __init__(self, catalog: Catalog) -> None:
        self._detector = Detector(catalog)
        self._of: dict[Key, DetectedPlatform] = {}
        self._counts: Counter[DetectedPlatform] = Counter()
        self._certain: tuple[str, ...] = ()
        self._strategy: str | None = None
        self._before: tuple[tuple[str, ...], str | None] = (), None

    def update(self, keys: Iterable[Key], facts: ClusterFacts) -> tuple[tuple[str, ...], str]:
        """Return the platforms and the MIG strategy, after the objects under ``keys`` changed to what
        ``facts`` have."""
        self._before = self._certain, self._strategy
        for key in keys:
            self._count(key, facts)
        seen = [one for one, count in self._counts.items() if count > 0]
        self._certain = self._detector.certain(seen, self._certain)
        self._strategy = platform_detection.mig_strategy(seen, self._strategy)
        return self._detector.platforms(seen, self._certain), self._strategy

    def take_back(self, keys: Iterable[Key], facts: ClusterFacts) -> None:
        """Undo the last ``update``. ``facts``: those before it."""
        for key in keys:
            self._count(key, facts)
        self._certain, self._strategy = self._before

    def _count(self, key: Key, facts: ClusterFacts) -> None:
        """Count what a node or NodePool shows now in place of what it showed before."""
        kind, _, name = key
        if (before := self._of.pop(key, None)) is not None:
            self._counts[before] -= 1
        if kind == "Node" and name in facts.nodes:
            self._of[key] = self._detector.of_node(facts.nodes[name])
        elif kind == "NodePool" and name in facts.nodepools:
            self._of[key] = self._detector.of_pool(facts.nodepools[name])
        if key in self._of:
            self._counts[self._of[key]] += 1
