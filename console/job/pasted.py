"""A text that somebody pasted: its objects, those with pods to judge, the facts among them, and what can't be read of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from analysis.admission import report
from analysis.admission.judge import admit_manifest
from analysis.admission.manifests import Manifest, read_manifest
from analysis.admission_preview import Admission
from kube.tree import Raw
from policies import work_budget
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
class PastedObject:
    """One object of the text that has pods."""

    number: int
    """From 1, among these."""
    title: str
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Pasted:
    """What a text has."""

    manifest: Manifest | None = None
    """The object to judge; None if there is none."""
    templates: int = 0
    """Of that object, the ones that are not judged included."""
    choices: Sequence[PastedObject] = ()
    """All that have pods; one alone is no choice."""
    others: Sequence[Manifest] = ()
    """Those without pods, in order."""
    facts: Sequence[Raw] = ()
    errors: Sequence[InputError] = ()
    too_large: bool = False
    """True if admission would not judge the object."""


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
    large = [] if chosen is None else _too_large(chosen)
    return Pasted(
        manifest=None if chosen is None else replace(chosen, subjects=chosen.subjects[:MOST_TEMPLATES]),
        templates=0 if chosen is None else len(chosen.subjects),
        choices=[PastedObject(number=at, title=_title(one), chosen=at == number) for at, one in enumerate(with_pods, 1)],
        others=[one for one in found if not one.subjects],
        facts=inputs.facts,
        errors=[*errors, *large],
        too_large=bool(large),
    )


def _title(one: Manifest) -> str:
    return f"{one.kind} {one.name or '(without a name)'}"


def _too_large(one: Manifest) -> list[InputError]:
    """Return an error where admission would not judge a pod either (``policies.work_budget``)."""
    for subject in one.subjects[:MOST_TEMPLATES]:
        if work_budget.items(subject.review.pod) > work_budget.MOST:
            message = (
                f"has a pod with more than {work_budget.MOST} containers, names, tolerations and affinity terms, so Berth does not "
                "evaluate it, and policies in Enforce deny it: split the pod"
            )
            return [InputError(file=FILE, message=message, path=one.document.path + subject.template)]
    return []


def unjudged(read_: Pasted, snapshot: Snapshot) -> Iterator[str]:
    """Yield why objects without pods that are known are not judged, as `berth try` says it; nothing of facts."""
    for one in [other for other in read_.others if not other.fact][:MOST_UNJUDGED]:
        yield f"{_title(one)}: {report.describe_verdict(admit_manifest(one, Admission(snapshot)))}."
