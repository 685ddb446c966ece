"""kube-apiserver's own code (``tests/testcluster/modules/cel``) says which webhooks of a registration it would call."""

from __future__ import annotations

import atexit
import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Timer
from typing import Any

from policies.catalog import Catalog
from registration import configurations
from registration.configurations import Service, Url, manifests
from registration.entries import Chosen
from tests.support import go_tools
from tests.support.generators.random_worlds import catalog
from tests.testcluster.calls import PATIENCE

Raw = dict[str, Any]
PODS = ("", "v1", "pods")
NAMESPACE = "team-a"
DOMAIN = ".berth.dev"
KEPT = 2
"""programs that wait for the next request, of 100 MB each"""


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
    """it is refused before admission"""


def judge(
    asked: Iterable[AdmissionRequest],
    *,
    laid: Catalog | None = None,
    target: Service | Url | None = None,
    ca: bytes | None = None,
    chosen: Chosen | None = None,
    namespaces: Sequence[str] = (NAMESPACE,),
) -> tuple[list[str], list[Dispatch]]:
    """Why the manifests would be refused, and what would be called for each request."""
    given = laid or catalog(), target or Service(), ca, chosen or Chosen()
    mutating, validating = manifests(*given)
    if (before := configurations.first(*given)) is not None:
        mutating = {**mutating, "webhooks": [*before["webhooks"], *mutating["webhooks"]]}
    first = json.dumps({"mutating": mutating, "validating": validating, "namespaces": list(namespaces)})
    program = _for(first)
    try:
        answers = program.answers([one.line() for one in asked])
    except BaseException:  # what it says from now on may answer what was asked before
        _kept.pop(first).end()
        raise
    return program.checked["invalid"] or [], [_dispatch(answer) for answer in answers]


class _Judge:
    """The program, which has compiled the conditions of one registration: that takes it longer than a thousand requests."""

    def __init__(self, first: str) -> None:
        self.process = subprocess.Popen([go_tools.program("cel")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        (self.checked,) = self.answers([first])

    def answers(self, lines: Sequence[str]) -> list[Raw]:
        """One for each line. The program waits until somebody reads what it has said, so lines are written meanwhile."""
        assert self.process.stdout is not None
        late = Timer(PATIENCE, self.process.kill)
        late.start()
        try:
            with ThreadPoolExecutor(1) as writer:
                written = writer.submit(self._write, lines)
                said = [self.process.stdout.readline() for _ in lines]
                written.result()
        finally:
            late.cancel()
        assert all(said), "cel ended, or was ended as it took too long; what it complained of is above"
        return [json.loads(line) for line in said]

    def _write(self, lines: Sequence[str]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.writelines(f"{line}\n" for line in lines)
        self.process.stdin.flush()

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


_kept: dict[str, _Judge] = {}
"""by first line, those that were started last"""


def _for(first: str) -> _Judge:
    if first not in _kept:
        _end(KEPT - 1)
        _kept[first] = _Judge(first)
    return _kept[first]


def _end(left: int) -> None:
    while len(_kept) > left:
        _kept.pop(next(iter(_kept))).end()


atexit.register(_end, 0)


def _dispatch(answer: Raw) -> Dispatch:
    return Dispatch(
        called=frozenset(name.removesuffix(DOMAIN) for name in answer["called"] or ()),
        errors={name.removesuffix(DOMAIN): why for name, why in (answer["errors"] or {}).items()},
        cost={name.removesuffix(DOMAIN): units for name, units in (answer.get("cost") or {}).items()},
        object=answer.get("object") or {},
        undecodable=answer.get("undecodable", ""),
    )
