"""Snapshots one after another, as objects of a cluster come, change and go.

``Living`` holds what is known. ``apply`` takes a batch of changes and gives the next snapshot: only what the batch touches is parsed
and compiled anew, and what was worked out for namespaces and pods that it does not touch is taken over. Pure: the same changes in any
batches give the same decisions as ``snapshot.build`` of what is there in the end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from policies import cluster_facts, detect, snapshot
from policies.catalog import Catalog
from policies.cluster_facts import ClusterFacts
from policies.compiled import Compiled, CompiledTemplate, Compiler
from policies.detect import Detector, Seen
from policies.extract import Readers
from policies.objects import definition
from policies.policy import NodeTemplate, Policy
from policies.snapshot import Memory, Snapshot, own_acting
from policies.stored import Change, Entry, Key, Stored, as_map, id_of
from policies.verdict import Mode

AUTO = "auto"
"""in place of platforms or of the MIG strategy: as nodes and NodePools tell"""
MOST_SELECTED = 10_000
"""namespaces of which it is taken over which policies are for them: as many as one snapshot remembers; bounds what a caller can fill"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What does not change while a server runs."""

    platforms: tuple[str, ...] = ()
    """names in the catalog, or ("auto",): as nodes and NodePools tell"""
    mig_strategy: str = "mixed"
    """mixed, single or auto"""
    queues: tuple[str, ...] = ()
    max_mode: Mode = "Enforce"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lived:
    """What one batch has led to."""

    snapshot: Snapshot
    entries: Mapping[Key, Entry]
    changed: bool
    """whether anything that decides is not as before; else the snapshot is the one before"""
    policies_changed: bool = False
    """whether policies, templates, platforms or the way of slicing are not as before"""
    added: tuple[str, ...] = ()
    """ids of policies that act from now on, or otherwise (``modified``), or no more (``removed``)"""
    modified: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    refused: tuple[Entry, ...] = ()
    """objects whose newest form is not understood, and was not in an earlier batch"""


@dataclass(slots=True)
class _Ground:
    """What policies are compiled against."""

    compiler: Compiler
    platforms: tuple[str, ...]
    mig_strategy: str
    families: frozenset[str]
    slicing: tuple[NodeTemplate, ...]
    """templates that say which slices exist, so that the tables rest on them"""


class Living:
    """All that is known of a cluster. One at a time may call ``apply``, from any thread."""

    def __init__(self, catalog: Catalog, options: Options) -> None:
        self._catalog = catalog
        self._options = options
        self._stored = Stored(catalog)
        self._entries: dict[Key, Entry] = {}
        self._facts = ClusterFacts()
        self._node_keys = detect.node_keys(catalog)
        self._detector = Detector(catalog)
        self._seen: dict[Key, Seen] = {}
        self._counted: Counter[Seen] = Counter()
        self._certain: tuple[str, ...] = ()
        self._strategy: str | None = None
        self._ids: list[str] = []
        self._compiled: list[Compiled] = []
        """sorted by ``_ids``, the policies' ids: those of the cluster come first"""
        self._own: dict[str, tuple[Compiled, ...]] = {}
        self._templates: dict[str, CompiledTemplate] = {}
        self._known_families = catalog.machine_families()
        self._families: Counter[str] = Counter()
        self._readers = Readers(catalog)
        self._ground: _Ground | None = None
        self._snapshot: Snapshot | None = None

    def apply(self, changes: Mapping[Key, Change]) -> Lived:
        """Everything that has changed since the last batch, each object once. Raises nothing, whatever the objects are."""
        batch = _Batch()
        for key, value in changes.items():
            if key[0] in definition.KINDS:
                self._take(key, value, batch)
            else:
                batch.facts[key] = value
        self._take_facts(batch)
        self._compile(batch)
        before = self._snapshot
        self._snapshot = self._next(batch)
        return Lived(
            snapshot=self._snapshot,
            entries=dict(self._entries),
            changed=self._snapshot is not before,
            policies_changed=bool(batch.policies) or batch.templates or batch.everything,
            added=tuple(sorted(batch.added)),
            modified=tuple(sorted(batch.modified)),
            removed=tuple(sorted(batch.removed)),
            refused=tuple(batch.refused),
        )

    # --- our own objects ---

    def _take(self, key: Key, value: Change, batch: _Batch) -> None:
        before = self._entries.get(key)
        if value is None:
            if before is not None:
                del self._entries[key]
                batch.gone(key, before)
            return
        now = self._stored.entry(key, value, before)
        self._entries[key] = now
        if before is None or now.acting != before.acting:
            batch.came(key, before, now)
        if now.understood.errors and (before is None or before.understood.errors != now.understood.errors):
            batch.refused.append(now)

    # --- facts ---

    def _take_facts(self, batch: _Batch) -> None:
        before = self._facts
        put = [entry for key, value in batch.facts.items() if value is not None for entry in self._read(key, value)]
        gone = [entry for key, value in batch.facts.items() if value is None for entry in self._read(key, {})]
        now = self._facts = before.changed(put, gone)
        for key in batch.facts:
            self._see(key)
        batch.namespaces = [name for kind, _, name in batch.facts if kind == "Namespace"]
        batch.fresh = any(getattr(now, part) is not getattr(before, part) for part in ("nodepool_grace", "nodepools", "device_classes"))

    def _read(self, key: Key, value: Mapping[str, Any]) -> tuple[cluster_facts.Entry, ...]:
        """By the key that the API server knows it by."""
        kind, namespace, name = key
        metadata = {**as_map(value.get("metadata")), "name": name, "namespace": namespace}
        return cluster_facts.read(kind, {**value, "metadata": metadata}, self._node_keys)

    def _see(self, key: Key) -> None:
        """What a node or NodePool tells of the platforms, in place of what it told before."""
        kind, _, name = key
        if kind not in ("Node", "NodePool"):
            return
        if (before := self._seen.pop(key, None)) is not None:
            self._counted[before] -= 1
        if kind == "Node" and name in self._facts.nodes:
            self._seen[key] = self._detector.of_node(self._facts.nodes[name])
        elif kind == "NodePool" and name in self._facts.nodepools:
            self._seen[key] = self._detector.of_pool(self._facts.nodepools[name])
        if key in self._seen:
            self._counted[self._seen[key]] += 1

    def _detect(self) -> tuple[tuple[str, ...], str]:
        """What ``auto`` stands for now: the platforms and the MIG strategy."""
        seen = [one for one, count in self._counted.items() if count > 0]
        self._certain = self._detector.certain(seen, self._certain)
        self._strategy = detect.mig_strategy(seen, self._strategy)
        return self._detector.platforms(seen, self._certain), self._strategy

    # --- compiling ---

    def _compile(self, batch: _Batch) -> None:
        for policy, sign in batch.named:  # a policy or a template
            for family in set(snapshot.instance_families(policy)):
                self._families[family] += sign
            if isinstance(policy, Policy) and policy.namespace is None:
                self._readers.count(policy, sign)
        self._families = +self._families
        if self._new_ground(batch):
            self._compile_all(batch)
            return
        ground = self._standing()
        for key in batch.policies:
            self._place(key, ground.compiler)
        if batch.templates:
            self._compile_templates(ground.compiler)

    def _standing(self) -> _Ground:
        assert self._ground is not None, "the first batch lays it"
        return self._ground

    def _new_ground(self, batch: _Batch) -> bool:
        """Whether what all are compiled against is not as before; it is then."""
        options, old = self._options, self._ground
        detected, detected_strategy = self._detect()
        platforms = detected if options.platforms == (AUTO,) else options.platforms
        strategy = detected_strategy if options.mig_strategy == AUTO else options.mig_strategy
        families = snapshot.unknown_families(self._families, self._known_families)
        slicing = old.slicing if old is not None and not batch.templates else self._slicing()
        if old is not None and (old.platforms, old.mig_strategy, old.families, old.slicing) == (platforms, strategy, families, slicing):
            return False
        tables = snapshot.tables_of(self._catalog, platforms, strategy, families, slicing)
        self._ground = _Ground(Compiler(self._catalog, tables), platforms, strategy, families, slicing)
        return True

    def _slicing(self) -> tuple[NodeTemplate, ...]:
        return tuple(t for t in self._acting_templates() if t.sharing or t.mig_profiles)

    def _acting_templates(self) -> list[NodeTemplate]:
        found = (e.acting for e in self._entries.values() if e.kind == "GPUNodeTemplate")
        return sorted((t for t in found if isinstance(t, NodeTemplate)), key=lambda t: t.name)

    def _compile_all(self, batch: _Batch) -> None:
        compiler = self._standing().compiler
        acting = sorted((e.acting for e in self._entries.values() if isinstance(e.acting, Policy)), key=lambda p: p.id)
        self._ids = [policy.id for policy in acting]
        self._compiled = [compiler.policy(policy, self._options.max_mode) for policy in acting]
        own: dict[str, list[Compiled]] = {}
        for compiled in self._compiled:
            if compiled.policy.namespace is not None:
                own.setdefault(compiled.policy.namespace, []).append(compiled)
        self._own = {namespace: own_acting(found) for namespace, found in own.items()}
        self._compile_templates(compiler)
        batch.everything = True

    def _compile_templates(self, compiler: Compiler) -> None:
        self._templates = {t.name: compiler.template(t) for t in self._acting_templates()}

    def _place(self, key: Key, compiler: Compiler) -> None:
        """One policy, in its place of the sorted list and of its namespace."""
        entry = self._entries.get(key)
        acting = entry.acting if entry is not None else None
        namespace, policy_id = key[1], id_of(key)
        at = bisect_left(self._ids, policy_id)
        there = at < len(self._ids) and self._ids[at] == policy_id
        if isinstance(acting, Policy):
            compiled = compiler.policy(acting, self._options.max_mode)
            self._ids[at : at + there] = [policy_id]
            self._compiled[at : at + there] = [compiled]
        elif there:
            del self._ids[at], self._compiled[at]
        if namespace:
            self._gather(namespace)

    def _gather(self, namespace: str) -> None:
        prefix = f"GPUPolicy/{namespace}/"
        first = bisect_left(self._ids, prefix)
        last = bisect_left(self._ids, f"GPUPolicy/{namespace}0")  # "0" follows "/"
        if own := own_acting(self._compiled[first:last]):
            self._own[namespace] = own
        else:
            self._own.pop(namespace, None)

    # --- the next snapshot ---

    def _next(self, batch: _Batch) -> Snapshot:
        before = self._snapshot
        if before is not None and not batch.decides and self._facts is before.cluster:
            return before
        ground = self._standing()
        policies = tuple(self._compiled)
        of_cluster = policies[: bisect_left(self._ids, "GPUPolicy/")]
        same_templates = before is not None and not batch.templates and not batch.everything
        return Snapshot(
            catalog=self._catalog,
            tables=ground.compiler.tables,
            placed=bool(ground.platforms),
            mig_strategy=ground.mig_strategy,
            queues=self._options.queues,
            max_mode=self._options.max_mode,
            policies=policies,
            of_cluster=of_cluster,
            own=dict(self._own),
            templates=self._templates,
            cluster=self._facts,
            pools_without_gpus=detect.pools_without_gpus(self._catalog, self._facts)
            if before is None or batch.fresh
            else before.pools_without_gpus,
            vocabulary=before.vocabulary if before and same_templates else self._vocabulary(),
            reads=self._readers.reads() if before is None or batch.decides else before.reads,
            every_namespace=True,
            by_labels=snapshot.by_labels(of_cluster),
            memory=before.memory if before and same_templates and not batch.fresh else Memory(),
            selected=self._selected(before, of_cluster, batch),
        )

    def _vocabulary(self) -> snapshot.Vocabulary:
        return snapshot.vocabulary(self._catalog, (t.template for t in self._templates.values()))

    def _selected(self, before: Snapshot | None, of_cluster: tuple[Compiled, ...], batch: _Batch) -> dict[str, tuple[Compiled, ...]]:
        """What the one before knows of which namespace is in whose scope, as far as it still holds."""
        if before is None or before.of_cluster != of_cluster or len(before.selected) >= MOST_SELECTED:
            return {}
        selected = dict(before.selected)
        for namespace in batch.namespaces:
            selected.pop(namespace, None)
        return selected


@dataclass(slots=True)
class _Batch:
    """What is found while one batch is taken."""

    facts: dict[Key, Change] = field(default_factory=dict)
    policies: list[Key] = field(default_factory=list)
    """whose acting form is another one now"""
    templates: bool = False
    named: list[tuple[Policy | NodeTemplate, int]] = field(default_factory=list)
    """what acts no more (-1), and what acts now (1)"""
    namespaces: list[str] = field(default_factory=list)
    fresh: bool = False
    """facts on which any decision may rest have changed: nothing decided before holds. (Claims are in the key of what rests on them.)"""
    everything: bool = False
    added: set[str] = field(default_factory=set)
    modified: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    refused: list[Entry] = field(default_factory=list)

    @property
    def decides(self) -> bool:
        return bool(self.policies) or self.templates or self.everything or self.fresh

    def gone(self, key: Key, before: Entry) -> None:
        if before.acting is not None:
            self._touch(key)
            self.named.append((before.acting, -1))
            self.removed.add(id_of(key))

    def came(self, key: Key, before: Entry | None, now: Entry) -> None:
        """Or acts otherwise from now on."""
        was = before.acting if before is not None else None
        if was is None and now.acting is None:
            return
        self._touch(key)
        if was is not None:
            self.named.append((was, -1))
        if now.acting is not None:
            self.named.append((now.acting, 1))
        (self.added if was is None else self.removed if now.acting is None else self.modified).add(id_of(key))

    def _touch(self, key: Key) -> None:
        if key[0] == "GPUNodeTemplate":
            self.templates = True
        else:
            self.policies.append(key)
