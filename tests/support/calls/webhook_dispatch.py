"""kube-apiserver's own code (``tests/testcluster/modules/cel``) says which webhooks of a registration it would call."""

from __future__ import annotations

import atexit
import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from threading import Timer
from typing import Any

from catalog import Catalog
from registration import configurations
from registration.configurations import Service, Url, manifests
from registration.entries import InstallChoices
from tests.support import go_tools
from tests.support.generators.random_worlds import catalog
from tests.testcluster.calls import PATIENCE

Raw = dict[str, Any]
PODS = ("", "v1", "pods")
NAMESPACE = "team-a"
DOMAIN = ".berth.dev"
MOST_PROGRAMS = 2
"""Programs that wait for the next request, each with 100 MB."""


@dataclass(frozen=True, kw_only=True)
class AdmissionRequest:
    """One admission request."""

    object: Raw
    old: Raw | None = None
    operation: str = "CREATE"
    namespace: str = NAMESPACE
    user: str = "alice"
    groups: tuple[str, ...] = ("system:authenticated",)
    resource: tuple[str, str, str] = PODS
    """API group, version, plural"""
    subresource: str = ""
    typed: bool = True
    """decoded, defaulted and converted, as built-in kinds are; else as it stands, as custom resources are"""
    cost: bool = False

    def line(self) -> str:
        group, version, resource = self.resource
        return json.dumps(
            {
                "resource": {"group": group, "version": version, "resource": resource},
                "subresource": self.subresource,
                "operation": self.operation,
                "namespace": self.namespace,
                "user": self.user,
                "groups": list(self.groups),
                "object": self.object,
                "oldObject": self.old,
                "typed": self.typed,
                "cost": self.cost,
            }
        )


@dataclass(frozen=True, kw_only=True)
class Dispatch:
    """What kube-apiserver would do."""

    called: frozenset[str] = frozenset()
    """names of webhooks, without the domain"""
    errors: Mapping[str, str] = field(default_factory=dict)
    """webhook -> why one of its conditions could not be told"""
    cost: Mapping[str, int] = field(default_factory=dict)
    object: Raw = field(default_factory=dict)
    """what a webhook would get"""
    undecodable: str = ""
    """it is denied before admission"""


def judge(
    asked: Iterable[AdmissionRequest],
    *,
    laid: Catalog | None = None,
    target: Service | Url | None = None,
    ca: bytes | None = None,
    chosen: InstallChoices | None = None,
    namespaces: Sequence[str] = (NAMESPACE,),
) -> tuple[list[str], list[Dispatch]]:
    """Why the manifests would be denied, and what would be called for each request."""
    where, chosen = target or Service(), chosen or InstallChoices()
    first = _of_the_shipped(where, ca, chosen, tuple(namespaces)) if laid is None else _registration(laid, where, ca, chosen, namespaces)
    program = _program_for(first)
    try:
        answers = program.answers(request.line() for request in asked)
    except BaseException:  # its next answer may belong to a request of this call
        _programs.pop(first).end()
        raise
    return program.checked["invalid"] or [], [_dispatch(answer) for answer in answers]


@cache
def _of_the_shipped(target: Service | Url, ca: bytes | None, chosen: InstallChoices, namespaces: tuple[str, ...]) -> str:
    return _registration(catalog(), target, ca, chosen, namespaces)


def _registration(laid: Catalog, target: Service | Url, ca: bytes | None, chosen: InstallChoices, namespaces: Sequence[str]) -> str:
    """The program's first line."""
    mutating, validating = manifests(laid, target, ca, chosen)
    if (before := configurations.first(laid, target, ca, chosen)) is not None:
        mutating = {**mutating, "webhooks": [*before["webhooks"], *mutating["webhooks"]]}
    return json.dumps({"mutating": mutating, "validating": validating, "namespaces": list(namespaces)})


class _ConditionProgram:
    """The running program, with the conditions of one registration compiled: compiling takes longer than a thousand requests."""

    def __init__(self, first: str) -> None:
        self.process = subprocess.Popen([go_tools.program("cel")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        (self.checked,) = self.answers([first])

    def answers(self, lines: Iterable[str]) -> list[Raw]:
        """Send each line and read its answer. After ``PATIENCE`` the program is killed, which raises AssertionError or BrokenPipeError."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        deadline = Timer(PATIENCE, self.process.kill)
        deadline.start()
        answers = []
        try:
            for line in lines:
                self.process.stdin.write(f"{line}\n")
                self.process.stdin.flush()
                answer = self.process.stdout.readline()
                assert answer, "cel ended before it answered; its error is in the captured stderr"
                answers.append(json.loads(answer))
        finally:
            deadline.cancel()
        return answers

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


_programs: dict[str, _ConditionProgram] = {}
"""Running programs by registration, the oldest first."""


def _program_for(first: str) -> _ConditionProgram:
    if first not in _programs:
        _end_all_but(MOST_PROGRAMS - 1)
        _programs[first] = _ConditionProgram(first)
    return _programs[first]


def _end_all_but(newest: int) -> None:
    while len(_programs) > newest:
        _programs.pop(next(iter(_programs))).end()


atexit.register(_end_all_but, 0)


def _dispatch(answer: Raw) -> Dispatch:
    return Dispatch(
        called=frozenset(name.removesuffix(DOMAIN) for name in answer["called"] or ()),
        errors={name.removesuffix(DOMAIN): why for name, why in (answer["errors"] or {}).items()},
        cost={name.removesuffix(DOMAIN): units for name, units in (answer.get("cost") or {}).items()},
        object=answer.get("object") or {},
        undecodable=answer.get("undecodable", ""),
    )
