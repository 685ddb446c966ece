"""The server's ``--max-mode``, as the statuses of policies in a cluster show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from analysis.conditions.conditions import CAPPED
from kube.tree import map_at, maps_in
from policies.state.objects import Change, Key
from policies.state.updater import Options
from policies.verdict import MODES, Mode


def as_served(options: Options, objects: Mapping[Key, Change]) -> Options:
    """Return the options with the server's ``--max-mode``, unless one was given. ``objects``: the cluster's own, with statuses.

    A policy of which less acts than it says shows it. Where there is none, it makes no difference to what acts.
    """
    if not options.follows_server:
        return options
    capped = [mode for value in objects.values() if (mode := _capped_mode(map_at(value, "status"))) is not None]
    return replace(options, max_mode=min((options.max_mode, *capped), key=MODES.index))


def _capped_mode(status: Mapping[str, object]) -> Mode | None:
    """Return what acts of a policy, if that is less than it says."""
    conditions = maps_in(status.get("conditions"))
    if not any(condition.get("type") == "Ready" and condition.get("reason") == CAPPED for condition in conditions):
        return None
    return next((mode for mode in MODES if mode == status.get("mode")), None)
