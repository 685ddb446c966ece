"""What a snapshot is built from, as named on the command line, and the one function that reads and builds it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from policies import detect, snapshot
from policies.catalog import Catalog
from policies.cluster_facts import ClusterFacts
from policies.document import InputError, objects
from policies.living import AUTO, Options
from policies.nearest import hint
from policies.snapshot import Snapshot
from policies.verdict import MODES, Mode
from webhook.files import CatalogFilesError, read_catalog, read_documents, read_policies

MIG_STRATEGIES = ("mixed", "single", AUTO)
QUEUES = ("kueue", "slurm-bridge")
DEFAULT_POLICIES = Path(snapshot.__file__).parent / "library" / "berth-default.yaml"
"""What acts without --policies: an object like any other, to be read there."""


class SourcesError(Exception):
    """What was named cannot be used; ``errors`` has every reason, one line each."""

    def __init__(self, errors: Iterable[InputError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(map(str, self.errors)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Paths are files or folders; texts are as typed, not checked yet."""

    policies: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    catalog: str | None = None
    platforms: tuple[str, ...] = ()
    mig_strategy: str = ""
    """not given: mixed; in a cluster as its nodes tell"""
    queues: tuple[str, ...] = ()
    max_mode: str = "Enforce"

    @property
    def paths(self) -> tuple[str, ...]:
        """Every file or folder that is read."""
        return (*(self.policies or [str(DEFAULT_POLICIES)]), *self.facts, *([self.catalog] if self.catalog else []))


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A snapshot, and what is odd in its policies without being wrong: whole lines."""

    snapshot: Snapshot
    warnings: tuple[str, ...]


def load(sources: Sources, given: Sequence[object] = ()) -> Loaded:
    """Read and compile. ``given``: objects that are facts too, and beat those of files. Raises SourcesError with everything that is wrong,
    at once."""
    catalog, chosen, errors = _catalog_and_options(sources)
    policy_set, bad_policies, warnings = read_policies(sources.policies or [str(DEFAULT_POLICIES)], catalog)
    cluster, bad_facts = read_facts(sources.facts, given)
    errors += bad_policies + bad_facts
    if errors:
        raise SourcesError(errors)
    built = snapshot.build(
        policy_set,
        catalog,
        platforms=detect.platforms(catalog, cluster) if chosen.platforms == (AUTO,) else chosen.platforms,
        mig_strategy=detect.mig_strategy(detect.Detector(catalog).all(cluster)) if chosen.mig_strategy == AUTO else chosen.mig_strategy,
        queues=chosen.queues,
        max_mode=chosen.max_mode,
        cluster=cluster,
    )
    return Loaded(snapshot=built, warnings=tuple(warnings))


def read_facts(paths: Sequence[str], given: Sequence[object] = ()) -> tuple[ClusterFacts, list[InputError]]:
    """The facts in dumps of Namespaces, Nodes, NodePools, DeviceClasses and claims, and in objects that were read elsewhere; what could not
    be read."""
    found, errors = read_documents(paths)
    items = [item for document in found for item in objects(document)]
    errors += [item for item in items if isinstance(item, InputError)]
    return ClusterFacts.from_objects([*(item.value for item in items if not isinstance(item, InputError)), *given]), errors


def options(sources: Sources) -> tuple[Catalog, Options]:
    """The catalog, and what was chosen, without policies and facts. Raises SourcesError with everything that is wrong, at once."""
    catalog, chosen, errors = _catalog_and_options(sources)
    if errors:
        raise SourcesError(errors)
    return catalog, chosen


def _catalog_and_options(sources: Sources) -> tuple[Catalog, Options, list[InputError]]:
    strategy = sources.mig_strategy or "mixed"
    errors = _unknown("--mig-strategy", [strategy], MIG_STRATEGIES)
    errors += _unknown("--queues", sources.queues, QUEUES)
    errors += _unknown("--max-mode", [sources.max_mode], MODES)
    try:
        catalog = read_catalog([sources.catalog] if sources.catalog else [])
    except CatalogFilesError as error:
        raise SourcesError([*errors, *error.errors]) from None
    if sources.platforms != (AUTO,):
        errors += _unknown("--platforms", sources.platforms, catalog.platforms)
    mode: Mode = next((mode for mode in MODES if mode == sources.max_mode), "Audit")
    chosen = Options(platforms=sources.platforms, mig_strategy=strategy, queues=sources.queues, max_mode=mode)
    return catalog, chosen, errors


def _unknown(option: str, given: Iterable[str], known: Iterable[str]) -> list[InputError]:
    names = list(known)
    wanted = ", ".join(names)
    return [
        InputError(file=option, message=f'"{name}" is not known{hint(name, names)}; give of {wanted}')
        for name in given
        if name not in names
    ]
