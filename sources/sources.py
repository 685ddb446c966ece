"""The sources of a snapshot, as named on the command line, and the one function that reads and builds it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import policies
from catalog import Catalog
from catalog.nearest import hint
from documents.files import CatalogFilesError, read_catalog, read_items, read_policies
from kube.templates import full_kind
from policies.document import InputError
from policies.facts.cluster_facts import ClusterFacts, read_facts
from policies.messages.console_link import LONGEST_URL, URL
from policies.objects import definition
from policies.objects.parse import parse_objects
from policies.state.snapshot import Snapshot
from policies.state.updater import AUTO, QUEUES, Options, Update, Updater
from policies.verdict import MODES, Mode
from registration.entries import ALWAYS

MIG_STRATEGIES = ("mixed", "single", AUTO)
DEFAULT_POLICIES = Path(policies.__file__).parent / "library" / "berth-default.yaml"
"""The policies in force without --policies: an object like any other, to be read there."""


class SourcesError(Exception):
    """The named sources cannot be used; ``errors`` has every reason, one line each."""

    def __init__(self, errors: Iterable[InputError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(map(str, self.errors)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSource:
    """The API server that policies and facts come from."""

    kubeconfig: str | None
    """None: with the service account of Berth's own pod."""
    context: str | None
    watch: int
    """Seconds that one watch lasts, and thus the longest time without hearing from the API server."""
    lease: tuple[str, str]
    """Namespace and name of the Lease whose holder writes statuses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where the state of a cluster is read once: in the cluster, or in files in place of it."""

    kubeconfig: str | None = None
    """None: the one that kubectl finds."""
    context: str | None = None
    dumps: tuple[str, ...] = ()
    """Files and folders; none: a cluster is read."""

    @property
    def is_cluster(self) -> bool:
        """True if options name a cluster."""
        return bool(self.kubeconfig or self.context)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Paths are files or folders; texts are as typed, not checked yet."""

    policies: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    dumped_policies: bool = True
    """True if the policies among ``facts`` are in force where ``policies`` names none."""
    catalog: str | None = None
    platforms: tuple[str, ...] = ()
    mig_strategy: str = ""
    """If not given: mixed; in a cluster taken from its nodes."""
    queues: tuple[str, ...] = ()
    platform_namespaces: tuple[str, ...] = ()
    max_mode: str = ""
    """If not given: Enforce; commands that read a cluster take its server's."""
    console_url: str = ""
    follows_server: frozenset[str] = frozenset()
    """The options that were not given and are to be those of the cluster's server."""

    @property
    def paths(self) -> tuple[str, ...]:
        """All files and folders that are read."""
        return (*(self.policies or [str(DEFAULT_POLICIES)]), *self.facts, *([self.catalog] if self.catalog else []))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSources:
    """The result of reading the sources; ``warnings`` are whole lines about what is odd in the policies but
    not wrong."""

    update: Update
    warnings: tuple[str, ...]
    ignored: Mapping[str, int] = field(default_factory=dict)
    """Kinds of the files with facts of which nothing is read -> how many objects."""

    @property
    def snapshot(self) -> Snapshot:
        return self.update.snapshot


class SourceLoader:
    """Reads the same sources repeatedly: what has not changed since the last time is not compiled again."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self._updater: Updater | None = None

    def load(self, given: Sequence[object] = (), *, all_nodes: bool = False) -> LoadedSources:
        """Read and compile.

        ``given``: further objects that are facts, and take precedence over those of files; ``all_nodes``: a cluster has
        no other nodes and NodePools than these. So it is of files with nodes, which are read instead of a cluster. Raises
        SourcesError with everything that is wrong, at once; the next call then starts from the last good set.
        """
        catalog, chosen, errors = _catalog_and_options(self.sources)
        dumped, bad_facts = read_items(self.sources.facts)
        own = [item for item in dumped if self.sources.dumped_policies and item.value.get("kind") in definition.KINDS]
        if own and not self.sources.policies:
            policy_set, bad_policies, warnings = parse_objects(own, catalog)
        else:
            policy_set, bad_policies, warnings = read_policies(self.sources.policies or [str(DEFAULT_POLICIES)], catalog)
        facts = ClusterFacts.from_objects([*(item.value for item in dumped), *given])
        errors += bad_policies + bad_facts
        if errors:
            raise SourcesError(errors)
        updater, self._updater = self._updater, None  # an exception would leave it half changed
        if updater is None or (updater.catalog, updater.options) != (catalog, chosen):
            updater = Updater(catalog, chosen)
        update = updater.replace_all(policy_set, facts, all_nodes=all_nodes or any(item.value.get("kind") == "Node" for item in dumped))
        self._updater = updater
        values = [item.value for item in dumped if item.value.get("kind") not in definition.KINDS]
        return LoadedSources(
            update=update,
            warnings=tuple(f"warning: {one.place}: {one.message}" for one in warnings),
            ignored=Counter(full_kind(value) for value in values if not read_facts(value.get("kind"), value)),
        )


def load_sources(sources: Sources, given: Sequence[object] = (), *, all_nodes: bool = False) -> LoadedSources:
    """Read the sources once: see ``SourceLoader.load``."""
    return SourceLoader(sources).load(given, all_nodes=all_nodes)


def of_a_cluster(sources: Sources) -> Sources:
    """Return the sources; platforms and queue systems, unless given, are to be the server's, and platforms and MIG strategy are to be taken
    from the nodes where that is not known."""
    given = {"platforms": sources.platforms, "queues": sources.queues}
    follows = sources.follows_server | {name for name, values in given.items() if not values}
    return replace(sources, platforms=sources.platforms or (AUTO,), mig_strategy=sources.mig_strategy or AUTO, follows_server=follows)


def options(sources: Sources) -> tuple[Catalog, Options]:
    """Return the catalog and the options, without policies and facts.

    Raises SourcesError with everything that is wrong, at once.
    """
    catalog, chosen, errors = _catalog_and_options(sources)
    if errors:
        raise SourcesError(errors)
    return catalog, chosen


def _catalog_and_options(sources: Sources) -> tuple[Catalog, Options, list[InputError]]:
    strategy = sources.mig_strategy or "mixed"
    errors = _unknown("--mig-strategy", [strategy], MIG_STRATEGIES)
    errors += _unknown("--queues", sources.queues, QUEUES)
    errors += _unknown("--max-mode", [sources.max_mode] if sources.max_mode else [], MODES)
    if sources.console_url and not (len(sources.console_url) <= LONGEST_URL and URL.fullmatch(sources.console_url)):
        wanted = f"an address of at most {LONGEST_URL} characters such as https://berth.example.com, without a query"
        errors.append(InputError(file="--console-url", message=f'must be {wanted}; found "{sources.console_url[:LONGEST_URL]}"'))
    try:
        catalog = read_catalog([sources.catalog] if sources.catalog else [])
    except CatalogFilesError as error:
        raise SourcesError([*errors, *error.errors]) from None
    catalog = catalog.trusting((*ALWAYS, *sources.platform_namespaces))
    if sources.platforms != (AUTO,):
        errors += _unknown("--platforms", sources.platforms, catalog.platforms)
    mode: Mode = next((mode for mode in MODES if mode == (sources.max_mode or "Enforce")), "Audit")
    chosen = Options(
        platforms=sources.platforms,
        mig_strategy=strategy,
        queues=sources.queues,
        max_mode=mode,
        follows_server=sources.follows_server | ({"max_mode"} if not sources.max_mode else frozenset()),
        console_url=sources.console_url.rstrip("/"),
    )
    return catalog, chosen, errors


def _unknown(option: str, given: Iterable[str], known: Iterable[str]) -> list[InputError]:
    names = list(known)
    return [InputError(file=option, message=f'unknown value "{name}"{hint(name, names)}') for name in given if name not in names]
