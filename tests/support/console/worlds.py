"""Worlds for tests of the console: of recorded objects, as of a cluster that has them, under policies of files or of objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from analysis.world.builder import WorldBuilder
from analysis.world.recorded import Recorded
from analysis.world.world import World
from catalog.prices import prices
from policies.state.updater import AUTO, Options
from sources.worlds import policies_of, world_of
from tests.support.generators.random_worlds import catalog

LIBRARY = str(Path(__file__).resolve().parents[3] / "policies" / "library")
OPTIONS = Options(platforms=(AUTO,), mig_strategy=AUTO)
AT = datetime(2026, 11, 24, 8, 0, tzinfo=UTC)


def world(
    objects: Iterable[dict[str, Any]],
    policies: Sequence[dict[str, Any]] | None = None,
    recorded: Recorded | None = None,
    options: Options = OPTIONS,
) -> World:
    """The world of a dump with these objects. ``policies``: objects of Berth's kinds; None: the shipped library."""
    ours = policies_of([LIBRARY], catalog()) if policies is None else policies
    return world_of(WorldBuilder(catalog(), options, prices(catalog()), recorded), ours, list(objects), "dump.yaml", catalog(), AT)
