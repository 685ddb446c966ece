"""A text that somebody pasted: its objects, those with pods to judge, the facts among them, and what can't be read of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from analysis.admission import report
from analysis.admission.manifest_results import admit_manifest
from analysis.admission.manifests import Manifest, read_manifest
from analysis.admission_preview import Admission
from kube.tree import Raw
from policies.document import Document, InputError, objects
from policies.state.snapshot import Snapshot
from sources.inputs import Inputs, unfilled

FILE = "manifest"
"""What errors call the text in the field of that name."""
MOST_OBJECTS = 200
"""Objects of one text that are read: Helm makes some fifty of a large chart."""
MOST_TEMPLATES = 16
"""Pod templates of one object that are judged: a RayCluster has one for each group of workers."""
MOST_UNJUDGED = 5
"""Objects without pods of which it is said why they are not judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pasted:
    """What a text has."""

    manifest: Manifest | None = None
    """The object to judge; None if there is none."""
    templates: int = 0
    """Of that object, the ones that are not judged included."""
    choices: Sequence[Manifest] = ()
    """All that have pods; one alone is no choice."""
    number: int = 1
    """Of the object to judge among these, from 1."""
    others: Sequence[Manifest] = ()
    """Those without pods, in order."""
    facts: Sequence[Raw] = ()
    errors: Sequence[InputError] = ()


def pasted(text: str, snapshot: Snapshot, namespace: str, number: int) -> Pasted:
    """Read a text. ``number``: which of the objects with pods is judged; 0 or too large for the first."""
    inputs = Inputs.of_text(text, FILE, namespace)
    errors = [one for one in inputs.found if isinstance(one, InputError)]
    items = [item for one in inputs.found if isinstance(one, Document) for item in objects(one)]
    errors += [item for item in items if isinstance(item, InputError)]
    read_ = [item for item in items if isinstance(item, Document)]
    if len(read_) > MOST_OBJECTS:
        errors.append(InputError(file=FILE, message=f"has {len(read_)} objects; only the first {MOST_OBJECTS} are read: remove some"))
    found: list[Manifest] = []
    for item in read_[:MOST_OBJECTS]:
        try:
            if (error := next(unfilled(item, snapshot), None)) is not None:
                raise error
            found.append(read_manifest(item, snapshot.catalog, namespace, around=inputs.around))
        except InputError as wrong:
            errors.append(wrong)
    with_pods = [one for one in found if one.subjects]
    number = number if 1 <= number <= len(with_pods) else 1
    chosen = with_pods[number - 1] if with_pods else None
    return Pasted(
        manifest=None if chosen is None else replace(chosen, subjects=chosen.subjects[:MOST_TEMPLATES]),
        templates=0 if chosen is None else len(chosen.subjects),
        choices=with_pods,
        number=number,
        others=[one for one in found if not one.subjects],
        facts=inputs.facts,
        errors=errors,
    )


def unjudged(read_: Pasted, snapshot: Snapshot) -> Iterator[str]:
    """Yield why objects without pods that are known are not judged, as `berth try` says it; nothing of facts."""
    for one in [other for other in read_.others if not other.fact][:MOST_UNJUDGED]:
        yield f"{one.kind} {one.name or '(without a name)'}: {report.describe_verdict(admit_manifest(one, Admission(snapshot)))}."
