"""What a screen is given and what it returns, as data; HTML is made of it last."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from analysis.why.surroundings import Surroundings
from console.server.query import Query
from console.world.scope import ListedKind
from console.world.view import View

Near = Callable[[str, str, str, Collection[ListedKind]], Awaitable[Surroundings]]
"""(namespace, type, name, the kinds of this type that are looked for) -> what was read. Raises InputError and Unreachable."""

MayList = Callable[[Iterable[ListedKind], str], Awaitable[Collection[ListedKind]]]
"""(kinds, namespace) -> those of them that the viewer may list there. Raises Unreachable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One request of one person."""

    view: View
    query: Query
    """Of the address; of a form that was sent, its fields."""
    may_list: MayList
    near: Near | None = None
    """Reads one object with what is around it, whoever asks; None of a world of files, which has them."""
    gathered: Any = None
    """What ``Screen.gather`` returned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One answer: a template, and the values that it shows."""

    template: str
    title: str
    values: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """One address. ``show`` is called on a worker thread and is pure."""

    path: str
    show: Callable[[Visit], Page]
    section: str = ""
    """The entry of the menu that it belongs to."""
    gather: Callable[[Visit], Awaitable[Any]] | None = None
    """What is asked of the cluster for this page alone, on the event loop."""
    form: bool = False
    """True if it takes forms (POST) too: nothing is changed by one."""


class NotShown(Exception):
    """There is no such thing, or this person may not list it: both are answered alike. The message says what to do."""
