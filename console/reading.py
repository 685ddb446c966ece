"""Where worlds come from: a cluster that is read again and again, or files."""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from analysis.world.builder import WorldBuilder
from analysis.world.recorded import Recorded
from analysis.world.world import World
from catalog import Catalog
from catalog.prices import Prices, prices
from cluster.client.api_client import Access, Client
from console.server.app import WorldSource
from documents.prices import read_prices
from policies.state.updater import Options
from sources import world_of_files as files
from sources.from_cluster import default_kubeconfig
from sources.sources import Sources, of_a_cluster, options
from sources.world_follower import WorldFollower

Say = Callable[[str], None]


async def _nothing() -> None:
    """There is nothing to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A source of worlds, what must run for it, and what ends it."""

    source: WorldSource
    client: Client | None = None
    """Of the cluster; None where files are read."""
    follow: Callable[[], Coroutine[Any, Any, None]] | None = None
    """Keeps the worlds coming, forever; None where there is one world."""
    close: Callable[[], Awaitable[None]] = _nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReadingOptions:
    """What options come to."""

    catalog: Catalog
    options: Options
    prices: Prices


async def open_source(args: argparse.Namespace, sources: Sources, say: Say, access: Access | None = None) -> Reading:
    """Return what the options name. ``say``: prints a sentence. ``access``: address and credentials of the cluster, where the options do
    not name them.

    Raises AccessError, InputError and SourcesError.
    """
    if args.files or args.facts:
        given = _given(args, sources)
        made = WorldBuilder(given.catalog, given.options, given.prices, _recorded(args, given.catalog, say), _pause)
        return Reading(source=Fixed(await asyncio.to_thread(files.world, made, sources.policies, sources.facts, given.catalog)))
    given = _given(args, of_a_cluster(sources))
    client = await Client.connect(access or _access(args))
    policies = files.policies_of(sources.policies, given.catalog) if sources.policies else None
    made = WorldBuilder(given.catalog, given.options, given.prices, _recorded(args, given.catalog, say), _pause)
    follower = WorldFollower(client, made, given.catalog, args.every, args.namespace or "", policies)
    return Reading(source=follower, client=client, follow=follower.run, close=client.close)


def _access(args: argparse.Namespace) -> Access:
    return Access(None) if args.in_cluster else Access(args.kubeconfig or default_kubeconfig(os.environ), args.context)


def _pause() -> None:
    """Leave the interpreter to pages for a moment: Python hands it over every 5 ms at best."""
    time.sleep(0.002)


def _recorded(args: argparse.Namespace, catalog: Catalog, say: Say) -> Recorded | None:
    if not args.recordings:
        return None
    found = Recorded(args.recordings, catalog)
    if found.unread or found.left_out:
        say(f"recordings: {found.unread} entries cannot be read; {found.left_out} creations are left out (too many or too large)")
    return found


def _given(args: argparse.Namespace, sources: Sources) -> _ReadingOptions:
    catalog, chosen = options(of_a_cluster(sources) if sources.facts else sources)
    cost = prices(catalog, read_prices(args.prices, catalog) if args.prices else None)
    return _ReadingOptions(catalog=catalog, options=chosen, prices=cost)


class Fixed:
    """The source of one world."""

    stale = ""
    near = None

    def __init__(self, world: World) -> None:
        self.world = world

    async def first(self) -> None:
        """Return at once."""
