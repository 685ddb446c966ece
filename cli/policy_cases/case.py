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

from catalog.nearest import hint
from cli.policy_cases.outcome import PARTS
from kube.tree import kind_of
from policies.document import Document, InputError
from policies.verdict import MODES
from sources.sources import MIG_STRATEGIES, QUEUES

DEFAULTS: Mapping[str, Any] = MappingProxyType({
    "platforms": ["karpenter-aws"], "migStrategy": "mixed", "queues": [], "maxMode": "Enforce", "catalog": [], "facts": [],
    "allNodes": False, "namespace": "ml", "user": "alice", "groups": [], "subresource": "",
    "phase": "mutate", "operation": "CREATE", "defaults": True, "oldPod": None, "pod": None, "review": None, "claim": None,
})  # fmt: skip
"""``defaults``: the API server's own defaults are filled into the pod first, as they are before any webhook is called."""
SUBJECTS = ("pod", "review", "claim")
KEYS = ("why", "policies", *DEFAULTS, "expect")
LIBRARY = "library"
"""In ``policies`` the policies that Berth ships; a folder of that name is ``./library``."""
_WORDS: Mapping[str, tuple[str, ...]] = {
    "migStrategy": MIG_STRATEGIES,
    "maxMode": MODES,
    "phase": ("mutate", "validate"),
    "operation": ("CREATE", "UPDATE"),
}
_TEXTS = ("namespace", "user", "subresource", "review")
_MAPS = ("pod", "oldPod", "claim")
_PATHS = ("catalog", "facts", "policies")
"""Lists of maps and of paths; a single path may stand alone."""
CLAIMS = ("ResourceClaim", "ResourceClaimTemplate")


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
    given = {**defaults, **document.value}
    errors = list(_errors(document, given))
    if errors:
        return errors
    return Case(document=document, given=given, expected=given["expect"] or {})


def is_object(document: Document) -> bool:
    """Return whether a document is a Kubernetes object, such as a policy beside the cases that name it."""
    return isinstance(document.value, dict) and "kind" in document.value and "apiVersion" in document.value


def _errors(document: Document, given: Mapping[str, Any]) -> Iterator[InputError]:
    if not given.keys() & {"why", "expect", *SUBJECTS} & document.value.keys():
        yield document.error((), "is not a test case (a map with why, policies, pod and expect); move it elsewhere, or pass single files")
        return
    for key in document.value:
        if key not in KEYS:
            yield document.error((str(key),), f"is not a key of a test case{hint(str(key), KEYS)}")
    if not isinstance(given.get("why"), str) or not given["why"].strip():
        yield document.error(("why",), "must be a sentence: what the case is there for")
    if "policies" not in given:
        yield document.error(("policies",), "is missing; write a path such as [../policies], objects inline, or give --policies PATH")
    subjects = [key for key in SUBJECTS if given[key] is not None]
    if len(subjects) != 1:
        named = f"found {' and '.join(subjects)}" if subjects else "found none"
        yield document.error((), f"must have one of pod, review and claim; {named}")
    if "expect" not in given:
        yield document.error(("expect",), "is missing; write expect: {} and let berth test --write fill it in")
    yield from _misshapen(document, given)
    yield from _expectation(document, given.get("expect"))


def _misshapen(document: Document, given: Mapping[str, Any]) -> Iterator[InputError]:
    for key, words in _WORDS.items():
        if given[key] not in words:
            yield document.error((key,), f"must be one of {', '.join(words)}; found {kind_of(given[key])}")
    for key in _TEXTS:
        if not isinstance(given[key], str) and not (key == "review" and given[key] is None):
            yield document.error((key,), f"must be text; found {kind_of(given[key])}")
    for key in _MAPS:
        if given[key] is not None and not isinstance(given[key], dict):
            yield document.error((key,), f"must be a map; found {kind_of(given[key])}")
    for key in ("platforms", "queues", "groups"):
        yield from _names(document, key, given[key])
    for key in _PATHS:
        yield from _maps_and_paths(document, key, given.get(key, []))
    for key in ("defaults", "allNodes"):
        if not isinstance(given[key], bool):
            yield document.error((key,), f"must be true or false; found {kind_of(given[key])}")
    claim = given["claim"]
    if isinstance(claim, dict) and claim.get("kind") not in CLAIMS:
        yield document.error(("claim", "kind"), f"must be {' or '.join(CLAIMS)}; found {kind_of(claim.get('kind'))}")


def _names(document: Document, key: str, value: object) -> Iterator[InputError]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        yield document.error((key,), f"must be a list of names; found {kind_of(value)}")
    elif key == "queues":
        for number, one in enumerate(value):
            if one not in QUEUES:
                yield document.error((key, number), f'unknown queue system "{one}"{hint(one, QUEUES)}')


def _maps_and_paths(document: Document, key: str, value: object) -> Iterator[InputError]:
    for number, one in enumerate(value if isinstance(value, list) else [value]):
        if not isinstance(one, dict | str) or not one:
            at = (key, number) if isinstance(value, list) else (key,)
            yield document.error(at, f"must be an object, or a path relative to this file; found {kind_of(one)}")


def _expectation(document: Document, expected: object) -> Iterator[InputError]:
    if expected is None:
        return
    if not isinstance(expected, dict):
        yield document.error(("expect",), f"must be a map; found {kind_of(expected)}")
        return
    for key, value in expected.items():
        if key not in PARTS:
            yield document.error(("expect", str(key)), f"is not a part of an outcome{hint(str(key), PARTS)}")
        elif not isinstance(value, PARTS[key]) or (isinstance(value, bool) and PARTS[key] is int):
            yield document.error(("expect", key), f"must be {_WANTED[PARTS[key]]}; found {kind_of(value)}")


_WANTED: Mapping[type, str] = {list: "a list", bool: "true", int: "a whole number", str: "text"}
