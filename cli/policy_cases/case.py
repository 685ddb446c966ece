"""One test case of policies: a pod, a recorded review or a claim under some policies, and what is to come of it.

Above ``expect`` stands the input, of which only ``why``, ``policies`` and one of ``pod``, ``review`` and ``claim`` are
needed; ``DEFAULTS`` holds what stands for the rest. Under ``expect`` stands the outcome (``cli.policy_cases.outcome``).
Paths are relative to the folder of the case.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from catalog.shapes.scalars import ANY_LIST, ANY_MAP, TEXT, UNBOUNDED, Flag, Mistake, PatternText, Scalar, Whole, WordChoice
from catalog.shapes.struct_parser import StructReader
from catalog.shapes.structs import Struct, field_of, listed
from cli.policy_cases.outcome import PARTS
from kube.tree import Path, kind_of
from policies.document import Document, InputError
from policies.state.updater import QUEUES
from policies.verdict import MODES
from sources.sources import MIG_STRATEGIES

DEFAULTS: Mapping[str, Any] = MappingProxyType({
    "platforms": ["karpenter-aws"], "migStrategy": "mixed", "queues": [], "maxMode": "Enforce", "catalog": [], "facts": [],
    "allNodes": False, "namespace": "ml", "user": "alice", "groups": [], "subresource": "",
    "phase": "mutate", "operation": "CREATE", "defaults": True, "oldPod": None, "pod": None, "review": None, "claim": None,
})  # fmt: skip
"""``defaults``: the API server's own defaults are filled into the pod first, as they are before any webhook is called."""
LIBRARY = "library"
"""In ``policies`` the policies that Berth ships; a folder of that name is ``./library``."""
_SUBJECTS = ("pod", "review", "claim")


class _ObjectOrPath(Scalar):
    """An object, or a path."""

    def parse(self, value: object, example: str, names: Any) -> Any:
        if not isinstance(value, dict | str) or not value:
            raise Mistake(f"must be an object, or a path relative to this file; found {kind_of(value)}")
        return value


def _claim_is_of_a_kind(given: Mapping[str, Any], kind: str) -> Iterator[tuple[Path, str]]:
    kinds = ("ResourceClaim", "ResourceClaimTemplate")
    if "claim" in given and given["claim"].get("kind") not in kinds:
        yield ("claim", "kind"), f"must be {' or '.join(kinds)}; found {kind_of(given['claim'].get('kind'))}"


_SENTENCE = PatternText(wanted="a sentence that says what the case is there for", pattern=r"\s*\S[\s\S]*", most=UNBOUNDED)
_TEXTS = listed(TEXT)
_OBJECTS = listed(_ObjectOrPath(), alone=True)
_PARTS: Mapping[type, Scalar] = {list: ANY_LIST, bool: Flag(), int: Whole(most=None), str: TEXT}
_CASE = Struct(
    build=dict,
    one_of=_SUBJECTS,
    rules=(_claim_is_of_a_kind,),
    fields=(
        field_of("why", _SENTENCE, required=True),
        field_of("policies", _OBJECTS, required=True, example="[../policies] or objects, or give --policies PATH"),
        field_of("platforms", _TEXTS),
        field_of("migStrategy", WordChoice(values=MIG_STRATEGIES)),
        field_of("queues", listed(WordChoice(values=QUEUES))),
        field_of("maxMode", WordChoice(values=MODES)),
        field_of("catalog", _OBJECTS),
        field_of("facts", _OBJECTS),
        field_of("allNodes", Flag()),
        field_of("namespace"),
        field_of("user"),
        field_of("groups", _TEXTS),
        field_of("subresource"),
        field_of("phase", WordChoice(values=("mutate", "validate"))),
        field_of("operation", WordChoice(values=("CREATE", "UPDATE"))),
        field_of("defaults", Flag()),
        field_of("oldPod", ANY_MAP),
        field_of("pod", ANY_MAP),
        field_of("review"),
        field_of("claim", ANY_MAP),
        field_of(
            "expect",
            Struct(build=dict, fields=tuple(field_of(name, _PARTS[part]) for name, part in PARTS.items())),
            required=True,
            example="{} and let berth test --write fill it in",
        ),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One document of a file, read."""

    document: Document
    given: Mapping[str, Any]
    expected: Mapping[str, Any]

    @property
    def name(self) -> str:
        """``cases/too-many-gpus.yaml``, with the number of the document where the file has several."""
        return self.document.error((), "").place

    @property
    def why(self) -> str:
        return str(self.given["why"])

    def path(self, written: str) -> str:
        """Return a path that the case names, as seen from here."""
        return os.path.normpath(os.path.join(os.path.dirname(self.document.file), written))

    def items(self, key: str) -> list[Any]:
        """Return the maps and paths of ``policies``, ``facts`` or ``catalog``."""
        value = self.given[key]
        return [value] if isinstance(value, str) else list(value)


def read_case(document: Document, defaults: Mapping[str, Any]) -> Case | list[InputError]:
    """Return the case in a document, or everything that is wrong with it. ``defaults``: for keys that it leaves out."""
    if not isinstance(document.value, dict):
        return [document.error((), f"must be a test case, a map with why, policies, pod and expect; found {kind_of(document.value)}")]
    if not document.value.keys() & {"why", "expect", *_SUBJECTS}:
        message = "is not a test case (a map with why, policies, pod and expect); move it elsewhere, or pass single files"
        return [document.error((), message)]
    given = {**defaults, **document.value}
    if given.get("expect", {}) is None:
        given["expect"] = {}
    reader = StructReader("", None)
    reader.read(_CASE, {key: value for key, value in given.items() if value is not None or DEFAULTS.get(key, "") is not None}, (), "")
    if reader.errors:
        return [document.error(path, message) for path, message in reader.errors]
    return Case(document=document, given=given, expected=given["expect"])


def is_object(document: Document) -> bool:
    """Return whether a document is a Kubernetes object, such as a policy beside the cases that name it."""
    return isinstance(document.value, dict) and "kind" in document.value and "apiVersion" in document.value
