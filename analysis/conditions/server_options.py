"""The options of the server, as the statuses of policies in a cluster show them, and where the platforms of an answer come from."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import Literal, NamedTuple

from analysis.conditions.conditions import CAPPED
from catalog import Catalog
from kube.scheduling import required_labels, wants
from kube.tree import Raw, map_at, maps_in
from policies.state.objects import Change, Key
from policies.state.snapshot import Snapshot
from policies.state.updater import AUTO, QUEUES, Options
from policies.verdict import MODES, Mode

PlatformSource = Literal["given", "server", "nodes", "assumed", "selected", "unread"]
"""``given``: by ``--platforms``. ``server``: those that the cluster's server uses. ``nodes``: those that Nodes and NodePools show.
``assumed``: the default, where nothing shows any. ``selected``: those whose labels the pod selects by, where neither the server nor nodes
can be read. ``unread``: none for that reason."""


class UsedPlatforms(NamedTuple):
    """The platforms by which an answer was found, and where they come from."""

    names: tuple[str, ...]
    """None if no placement is written."""
    source: PlatformSource


def used_platforms(snapshot: Snapshot, chosen: Options, served: Options, unread: Container[str]) -> UsedPlatforms:
    """Return the platforms of a snapshot. ``chosen``: the options as given; ``served``: with the server's. ``unread``: kinds that could not
    be read."""
    source: PlatformSource = "server" if served.platforms != chosen.platforms else "nodes" if chosen.platforms == (AUTO,) else "given"
    if source == "nodes" and not snapshot.placed and "Node" in unread:
        source = "unread"
    return UsedPlatforms(tuple(snapshot.tables) if snapshot.placed else (), source)


def platforms_value(used: UsedPlatforms | None) -> Mapping[str, object] | None:
    """Return the platforms as a value for JSON."""
    return None if used is None else {"names": list(used.names), "source": used.source}


def describe_platforms(used: UsedPlatforms) -> str:
    """Return which platforms were used and where they come from: ``gfd (detected from Nodes and NodePools)``."""
    nothing = "unknown" if used.source == "unread" else "none"
    return f"{', '.join(used.names) or nothing} ({_SOURCES[used.source]})"


_SOURCES: Mapping[PlatformSource, str] = {
    "given": "set by --platforms",
    "server": "those of the cluster's server",
    "nodes": "detected from Nodes and NodePools",
    "assumed": "assumed; to set them, add --platforms",
    "selected": "those whose labels it selects nodes by, as neither nodes nor the server's can be read",
    "unread": "neither nodes nor the server's can be read; to set them, add --platforms",
}


def selected_platforms(pods: Iterable[Raw], catalog: Catalog) -> tuple[str, ...]:
    """Return the platforms whose labels pods select nodes by: what there is to go by where neither the server nor nodes show any."""
    keys = {expression.key for pod in pods for expression in required_labels(wants(pod))}
    return tuple(name for name, platform in catalog.platforms.items() if keys & {*platform.labels, *platform.capacity_keys})


def as_served(options: Options, objects: Mapping[Key, Change], catalog: Catalog) -> Options:
    """Return the options with those of the server that were not given. ``objects``: the cluster's own, with statuses.

    The mode: a policy of which less acts than it says shows it. Where there is none, it makes no difference to what acts. Platforms and
    queue systems: the server writes them into each status; one of an earlier version does not, and then they stay as they are. Names that
    this version does not know are left out.
    """
    if not options.follows_server:
        return options
    statuses = [map_at(value, "status") for value in objects.values()]
    if "max_mode" in options.follows_server:
        capped = [mode for status in statuses if (mode := _capped_mode(status)) is not None]
        options = replace(options, max_mode=min((options.max_mode, *capped), key=MODES.index))
    shown = next((server for status in statuses if (server := map_at(status, "server"))), {})
    if "platforms" in options.follows_server and isinstance(written := shown.get("platforms"), list):
        options = replace(options, platforms=tuple(name for name in catalog.platforms if name in written))
    if "queues" in options.follows_server and isinstance(written := shown.get("queues"), list):
        options = replace(options, queues=tuple(name for name in QUEUES if name in written))
    return options


def _capped_mode(status: Mapping[str, object]) -> Mode | None:
    """Return what acts of a policy, if that is less than it says."""
    conditions = maps_in(status.get("conditions"))
    if not any(condition.get("type") == "Ready" and condition.get("reason") == CAPPED for condition in conditions):
        return None
    return next((mode for mode in MODES if mode == status.get("mode")), None)
