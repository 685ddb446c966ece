"""A world of files: policies, and dumps of a cluster in place of one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from analysis.world import happenings
from analysis.world.builder import WorldBuilder
from analysis.world.world import World
from catalog import Catalog
from cluster.watch.kinds import key_of
from documents.files import read_policies
from kube.tree import Raw
from policies.facts.cluster_facts import KINDS
from policies.objects import definition
from policies.state.objects import Change, Key
from sources.scanned_cluster import of_objects, scan_dump
from sources.sources import DEFAULT_POLICIES, SourcesError
from sources.state import OURS, keyed, of_values, values_of
from sources.surroundings import dumped_key


def world(builder: WorldBuilder, policies: Sequence[str], facts: Sequence[str], catalog: Catalog) -> World:
    """Read the files. ``facts``: dumps of ``kubectl get -o yaml`` or ``-o json``; none: a cluster without nodes and pods. Their policies
    are in force if ``policies`` names none.

    Raises SourcesError for policies that are wrong, and InputError for dumps that can't be read.
    """
    values = values_of(facts)
    dumped = [] if policies else list(keyed(of_values(values, OURS, None), OURS).values())
    ours = dumped or policies_of(policies or [str(DEFAULT_POLICIES)], catalog)
    return world_of(builder, ours, values, ", ".join(facts), catalog, datetime.now(UTC))


def world_of(builder: WorldBuilder, ours: Sequence[Raw], values: Sequence[Raw], file: str, catalog: Catalog, at: datetime) -> World:
    """Return the world of these policies and of a dump with these objects. Raises InputError where it has no pod and no node."""
    cluster = scan_dump(values, file, None, catalog) if values else of_objects((), None, catalog)
    dumped = {key: value for value in values if (key := dumped_key(value)) is not None}
    objects: dict[Key, Change] = {key: value for key, value in dumped.items() if key[0] in KINDS}
    objects |= {key_of(str(value["kind"]), value): value for value in ours}
    unread = cluster.unread if values else {"Node": "no cluster data was given: use berth console --from dump.yaml"}
    events, reports = happenings.read_events(dumped.values())
    return builder.build(objects, cluster, at, unread=unread, dumped=dumped, happenings=events, reports=reports)


def policies_of(paths: Sequence[str], catalog: Catalog) -> list[Raw]:
    """Return the policies and node templates of files. Raises SourcesError with everything that is wrong."""
    _, errors, _ = read_policies(paths, catalog)
    if errors:
        raise SourcesError(errors)
    return [value for value in values_of(paths) if value.get("kind") in definition.KINDS]
