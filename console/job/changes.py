"""The diff of a manifest and what is admitted of it, with the policy and the rule beside each line that was written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from analysis.admission.judge import ManifestResult, PodResult
from documents.diff import marked_lines, spans
from documents.yaml_writer import emit, open_list, open_map, scalar
from kube.tree import Path, value_at
from policies.verdict import Edit
from policies.workloads import parts

MOST_LINES = 400
"""Lines of a diff that are shown."""


class DiffLine(NamedTuple):
    """One line."""

    mark: str
    """``+``, ``-``, a space, or ``@`` before lines that are left out."""
    text: str
    policies: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    """Rules by which the policies wrote the line."""


def changes(outcome: ManifestResult, shows: Callable[[str], bool] = lambda _policy: True) -> Sequence[DiffLine]:
    """Return the lines around each change; none if nothing is changed. ``outcome``: a judged manifest; ``shows``: whether a policy may be
    named beside its lines."""
    before, after = outcome.manifest.value, outcome.after
    if before is after:
        return ()
    olds, news = list(paths(before)), list(paths(after))
    edits: list[tuple[Edit, PodResult | None]] = [(edit, pod) for pod in outcome.pods for edit in pod.edits]
    edits += [(edit, None) for edit in outcome.claim_edits]
    marked: list[DiffLine] = []
    old = new = 0
    for line in marked_lines(before, after):
        mark, path = line[0], (olds[old] if line[0] == "-" else news[new])
        old, new = old + (mark != "+"), new + (mark != "-")
        found = [] if mark == " " else [edit for edit, pod in edits if _wrote(edit, pod, path, after)]
        by = tuple(dict.fromkeys(policy for edit in found for policy in edit.policies if shows(policy)))
        marked.append(DiffLine(mark, line[1:], by, tuple(dict.fromkeys(edit.rule for edit in found))))
    return list(_shown(marked))[:MOST_LINES]


def _shown(marked: Sequence[DiffLine]) -> Iterator[DiffLine]:
    done = 0
    for first, last in spans([at for at, line in enumerate(marked) if line.mark != " "], len(marked)):
        if first > done:
            yield DiffLine("@", f"{first - done} unchanged lines")
        yield from marked[first:last]
        done = last
    if done < len(marked):
        yield DiffLine("@", f"{len(marked) - done} unchanged lines")


def _wrote(edit: Edit, pod: PodResult | None, path: Path, after: Any) -> bool:
    """Return whether an edit of a pod, or of the object itself, wrote, or took away, the line of the manifest at a path."""
    return any(_touches(edit, one, after, path) for one in ([path] if pod is None else parts.in_pod(path, pod.subject.parts)))


def _touches(edit: Edit, inside: Path, after: Any, path: Path) -> bool:
    if edit.path[-1] != "-":
        return inside[: len(edit.path)] == edit.path or edit.path[: len(inside)] == inside
    place = edit.path[:-1]
    if len(inside) <= len(place):
        return place[: len(inside)] == inside
    if inside[: len(place)] != place:
        return False
    return bool(value_at(after, path[: len(path) - len(inside) + len(place) + 1]) == edit.value)


def paths(value: Any) -> Iterator[Path]:
    """Yield where each line of a value stands in it, in the order of ``documents.yaml_writer.lines``."""
    return _paths(" ", value, " ", ())


def _paths(head: str, value: Any, pad: str, path: Path) -> Iterator[Path]:
    out: list[str] = []
    if value and isinstance(value, dict | list):
        is_map = isinstance(value, dict)
        lead, inner = open_map(head, pad, out) if is_map else open_list(head, pad, out)
        yield from (path for _ in out)
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from _paths(f"{lead}{scalar(key)}:" if is_map else f"{lead}-", item, inner, (*path, key))
            lead = inner
        return
    emit(head, value, pad, out)
    yield from (path for _ in out)
