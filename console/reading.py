"""Where worlds come from: a cluster that is read again and again, or files."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable

from analysis.world.builder import WorldBuilder
from analysis.world.recorded import Recorded
from analysis.world.world import World
from catalog import Catalog
from catalog.prices import prices
from cluster.client.api_client import Access, Client
from documents.prices import read_prices
from sources.sources import Sources, of_a_cluster, options
from sources.state import access_of
from sources.worlds import WorldFollower, policies_of, read_world

Say = Callable[[str], None]


class Fixed:
    """The source of one world."""

    stale = ""
    near = None

    def __init__(self, world: World) -> None:
        self.world = world

    async def first(self) -> None:
        """Return at once."""


async def open_source(args: argparse.Namespace, sources: Sources, say: Say, access: Access | None = None) -> WorldFollower | Fixed:
    """Return the source that the options name. A follower is to be run, and its client closed.

    ``say``: prints a sentence. ``access``: address and credentials of the cluster, where the options do not name them.
    Raises AccessError, InputError and SourcesError.
    """
    reads_files = bool(args.files or args.dumps)
    catalog, chosen = options(sources if reads_files and not sources.facts else of_a_cluster(sources))
    cost = prices(catalog, read_prices(args.prices, catalog) if args.prices else None)
    client = None if reads_files else await Client.connect(access or _access(args))
    policies = policies_of(sources.policies, catalog) if sources.policies and client else None
    builder = WorldBuilder(catalog, chosen, cost, _recorded(args, catalog, say), _pause)
    if client is None:
        return Fixed(await asyncio.to_thread(read_world, builder, sources.policies, sources.facts, catalog))
    return WorldFollower(client, builder, catalog, args.every, args.namespace or "", policies)


def _access(args: argparse.Namespace) -> Access:
    return Access(None) if args.in_cluster else access_of(args.kubeconfig, args.context)


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
