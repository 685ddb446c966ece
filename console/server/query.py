"""The fields of an address or a form, bounded and typed, and lists in pages."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import parse_qsl, urlencode

from starlette.requests import ClientDisconnect, Request

from catalog.nearest import hint

MOST_FIELDS = 40
"""Fields of one address or form: the largest form has ten."""
MOST_PAGE = 100_000
LONGEST_NAME = 253
"""Characters of a name of Kubernetes (RFC 1123 subdomain)."""


_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""RFC 1123 label."""


class QueryError(Exception):
    """A field can't be used; the message says which, and what it wants."""


class Query:
    """Fields by name; of one that is given twice the last counts."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        self._fields = dict(fields)

    @classmethod
    def of(cls, text: str) -> Query:
        """Read ``a=1&b=2``. Raises QueryError for more than ``MOST_FIELDS``."""
        try:
            return cls(dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS)))
        except ValueError:
            raise QueryError(f"the address has more than {MOST_FIELDS} parameters") from None

    def text(self, name: str, default: str = "") -> str:
        """Return a field as it is."""
        return self._fields.get(name, default)

    def __contains__(self, name: object) -> bool:
        return name in self._fields

    def name(self, name: str) -> str:
        """Return a name of Kubernetes, or "". Raises QueryError for one that is longer than any."""
        found = self.text(name).strip()
        if len(found) > LONGEST_NAME:
            raise QueryError(f"{name} must be a name of at most {LONGEST_NAME} characters")
        return found

    def namespaces(self) -> frozenset[str]:
        """Return the namespaces that are named: as ``namespace``, or before the first slash of a pod or a workload."""
        named = {self.text(name).partition("/")[0] for name in ("namespace", "pod", "workload")}
        return frozenset(one for one in named if _NAMESPACE.fullmatch(one))

    def page(self, name: str = "page") -> int:
        """Return the number of a page, 1 if none is given. Raises QueryError."""
        found = self.text(name, "1")
        number = int(found) if found.isascii() and found.isdigit() and len(found) <= len(str(MOST_PAGE)) else 0
        if not 1 <= number <= MOST_PAGE:
            raise QueryError(f"{name} must be a number from 1 to {MOST_PAGE}")
        return number

    def choice(self, name: str, choices: Iterable[str], default: str) -> str:
        """Return one of the choices. Raises QueryError with the nearest."""
        found, known = self.text(name, default), list(choices)
        if found not in known:
            raise QueryError(f"{name} must be one of {', '.join(known)}{hint(found[:LONGEST_NAME], known)}")
        return found

    def link(self, path: str, **changes: str | int) -> str:
        """Return an address with the fields of this one and these changes; "" takes a field out."""
        fields = self._fields | {name: str(value) for name, value in changes.items()}
        kept = {name: value for name, value in fields.items() if value}
        return f"{path}?{urlencode(kept)}" if kept else path


MOST_FORM = 256 * 2**10
"""Bytes of a form: a manifest that Helm made of a large chart, twice encoded."""


async def form(request: Request, origins: Collection[str] = (), most: int = MOST_FORM) -> str:
    """Return the body of a form, encoded as it was sent. ``origins``: where it may come from, besides the host that is asked.

    Raises QueryError where it is too large, no form, or sent from another site.
    """
    origin = request.headers.get("origin")
    if origin is not None and origin not in origins and origin.partition("://")[2] != request.headers.get("host"):
        raise QueryError("the form was sent from another site")
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        raise QueryError("the request must be a form: Content-Type application/x-www-form-urlencoded")
    parts, size = [], 0
    try:
        async for part in request.stream():
            parts.append(part)
            size += len(part)
            if size > most:
                raise QueryError(f"the form is larger than {most >> 10} KiB: send less text")
    except ClientDisconnect:
        raise QueryError("the connection closed before the whole form arrived") from None
    return b"".join(parts).decode("utf-8", "replace")


Row = TypeVar("Row")
SIZE = 50
"""Rows of a page: two screens of a laptop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paged(Generic[Row]):
    """One page of a list."""

    rows: Sequence[Row]
    number: int
    last: int
    total: int
    before: str
    """The address of the page before; "" on the first."""
    after: str


def paged(rows: Sequence[Row], query: Query, path: str, *, field: str = "page", size: int = SIZE) -> Paged[Row]:
    """Return the page that the query names; past the end, the last one."""
    last = max(1, -(-len(rows) // size))
    number = min(query.page(field), last)
    return Paged(
        rows=rows[(number - 1) * size : number * size],
        number=number,
        last=last,
        total=len(rows),
        before=query.link(path, **{field: number - 1}) if number > 1 else "",
        after=query.link(path, **{field: number + 1}) if number < last else "",
    )
