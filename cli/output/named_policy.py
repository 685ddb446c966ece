"""The policy that ``--enforce-preview`` names: by its id, or by its own name where only one has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from catalog.nearest import hint
from documents.printable import printable
from policies.document import InputError

T = TypeVar("T")
OPTION = "--enforce-preview"
MOST = 10
"""Policies of one name that an error lists."""
LONGEST = 317
"""Characters of an id, NAMESPACE/NAME: 63 of a namespace (RFC 1123 label), 253 of a name (RFC 1123 subdomain)."""


def chosen(name: str, known: Mapping[str, T], *, missing: str, advice: str) -> T:
    """Return the one of ``known``, by id, that is meant. Raises InputError where none is (``missing`` begins the sentence, ``advice``
    ends it) or several are."""
    same = [one for one in known if name in (one, _own_name(one))]
    if len(same) == 1:
        return known[same[0]]
    if same:
        listed = ", ".join(printable(one, LONGEST) for one in sorted(same)[:MOST])
        raise InputError(file=OPTION, message=f'"{name}" is the name of several policies; write one of {listed}')
    shown = [printable(one, LONGEST) for one in known]
    near = hint(name, [*shown, *map(_own_name, shown)])
    raise InputError(file=OPTION, message=f'{missing} "{name}"{near}; {advice}')


def enforced_already(name: str, command: str) -> InputError:
    """Return the error of a policy that there is nothing to switch of; ``command`` shows what it does now."""
    return InputError(file=OPTION, message=f'"{name}" is already in Enforce; {command} lists the pods that differ from it')


def _own_name(policy: str) -> str:
    return policy.rpartition("/")[2]
