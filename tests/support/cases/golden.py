"""Golden cases: one YAML file is one pod under some policies, and what must come of it, written out.

They are test cases of policies as `berth test` runs them (docs/policy-tests.md), and read and decided by the same code:
``cli.policy_cases.case`` says what stands above ``expect:``, ``cli.policy_cases.outcome`` what stands under it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from cli.policy_cases import case as policy_case
from cli.policy_cases import decisions, expectation_writer
from cli.policy_cases.worlds import World, Worlds
from documents.files import SHIPPED_CATALOG, read_documents, read_policies
from policies.catalog import Catalog
from policies.catalog.parse import from_mappings
from policies.document import Document
from policies.engine import evaluate
from policies.messages import OF_EDITS
from policies.objects.parse import parse_objects
from policies.patch.json_tree import apply_patch
from policies.policy import API_VERSION, PolicySet
from policies.request import Request
from policies.state.snapshot import Facts
from webhook.admission.review import ReviewError

TESTS = Path(__file__).parents[2]
CASES = TESTS / "cases"
REVIEWS = TESTS / "reviews"
LIBRARY = TESTS.parent / "policies" / "library"
MARK = "\nexpect:"
_WORLDS = Worlds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One file, read."""

    path: Path
    read: policy_case.Case

    @property
    def given(self) -> Mapping[str, Any]:
        return self.read.given

    @property
    def expected(self) -> Mapping[str, Any]:
        return self.read.expected

    @property
    def name(self) -> str:
        """``node_affinity/an-empty-term-is-left-alone``."""
        return str(self.path.relative_to(CASES).with_suffix(""))

    @property
    def world(self) -> World:
        """What it is decided by."""
        return _WORLDS.of(self.read)

    def facts(self, namespace: str) -> Facts:
        return self.world.snapshot.facts_for(namespace)

    def request(self) -> Request:
        """The request; raises ReviewError where the recorded review is none that can be judged."""
        asked = decisions.asked(self.read, _WORLDS)
        if not isinstance(asked.subject, Request):
            raise ReviewError(400, asked.bad)
        return asked.subject


def load(path: Path) -> Case:
    """The case in a file. An unknown or missing key is an error: a misspelt one would test something else."""
    (document,), errors = read_documents([str(path)])
    assert not errors, errors
    found = policy_case.read(document, policy_case.DEFAULTS)
    assert isinstance(found, policy_case.Case), found
    return Case(path=path, read=found)


@cache
def cases() -> tuple[Case, ...]:
    """Every case, by path."""
    return tuple(load(path) for path in sorted(CASES.rglob("*.yaml")))


@cache
def catalog_with(overlays: str = "[]") -> Catalog:
    """The shipped catalog with overlays (a JSON list of maps) laid over it."""
    shipped, _ = read_documents([str(SHIPPED_CATALOG)])
    return from_mappings(shipped[0].value, *json.loads(overlays))


def policies_of(objects: Any, catalog: Catalog) -> PolicySet:
    """``library``, or objects inline, whose apiVersion may be left out. A mistake in one is an error of the case."""
    if objects == "library":
        found, errors, warnings = read_policies([str(LIBRARY)], catalog)
    else:
        documents = [Document(file="case", index=i, value={"apiVersion": API_VERSION, **one}) for i, one in enumerate(objects)]
        found, errors, warnings = parse_objects(documents, catalog)
    assert not errors, "\n".join(map(str, errors))
    assert not [w for w in warnings if "instance" not in w.message], warnings
    return found


def outcome(case: Case) -> tuple[dict[str, Any], list[str]]:
    """What comes of a case, and every law that it broke on the way."""
    asked = decisions.asked(case.read, _WORLDS)
    found = dict(asked.decide().outcome)
    request = asked.subject
    if not isinstance(request, Request) or request.phase == "validate" or request.operation != "CREATE":
        return found, []
    if "violations" in found or "unjudged" in found:
        return found, []
    return found, broken(request, case.facts(request.namespace))


def broken(request: Request, facts: Facts) -> list[str]:
    """A second call on the edited pod must change nothing, refuse nothing, and tell nothing again of what was edited."""
    edited = apply_patch(request.pod, evaluate(request, facts).patch)
    again = evaluate(replace(request, pod=edited), facts)
    changes = [f"a second mutate would {op['op']} {op['path']}" for op in again.patch]
    changes += [f"a second mutate says again: {r}" for r in again.remarks if r.code in OF_EDITS]
    return changes + [f"a second mutate refuses: {v}" for v in again.violations]


def rewrite(case: Case, found: Mapping[str, Any]) -> None:
    """Put ``found`` under ``expect:``; what stands above is kept to the byte."""
    expectation_writer.write(case.read.document, found)
