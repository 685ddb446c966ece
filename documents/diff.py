"""The difference between two versions of a manifest, as a unified diff of their YAML.

The two versions are walked together: parts that are the same Python object on both sides are written once, as
context, and only parts that an edit touched are compared. So the diff shows real changes only, and takes
little more time than writing one side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from documents.printable import printable
from documents.yaml_writer import emit, open_list, open_map, scalar

CONTEXT = 3
"""Lines shown around a change, as diff -u and git do."""
HEADER = 2
"""Lines before the first hunk."""
_MISSING = object()


def unified(before: Any, after: Any, label: str, label_after: str = "") -> list[str]:
    """Return the diff with its two header lines, or no lines if both sides are written the same."""
    marked = marked_lines(before, after)
    hunks = list(_hunks(marked))
    heads = [f"--- {printable(label)}", f"+++ {printable(label_after or f'{label} (as admitted)')}"]
    return [*heads, *hunks] if hunks else []


def marked_lines(before: Any, after: Any) -> list[str]:
    """Return every line of both sides once, marked `` ``, ``-`` or ``+``."""
    out: list[str] = []
    _walk(" ", before, after, " ", out)
    return out


def _walk(head: str, before: Any, after: Any, pad: str, out: list[str]) -> None:
    if before is after:
        emit(head, after, pad, out)
    elif before and after and isinstance(before, dict) and isinstance(after, dict) and _same_start(head, before, after):
        _walk_maps(head, before, after, pad, out)
    elif before and after and isinstance(before, list) and isinstance(after, list) and _head_is_a_line(head):
        _walk_lists(head, before, after, pad, out)
    else:
        _replace(head, before, after, pad, out)


def _head_is_a_line(head: str) -> bool:
    return not head.endswith("-") or len(head) == 1


def _same_start(head: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether two maps can be walked together: their common keys are in the same order.

    A map inside a list starts on the line of its dash, so there its first key must be the same on both sides
    too.
    """
    order = [key for key in after if key in before]
    if order != [key for key in before if key in after]:
        return False
    return _head_is_a_line(head) or next(iter(before)) == next(iter(after))


def _walk_maps(head: str, before: Mapping[str, Any], after: Mapping[str, Any], pad: str, out: list[str]) -> None:
    lead, inner = open_map(head, pad, out)
    for key, old, new in _merged(before, after):
        label = f"{lead}{scalar(key)}:"
        if new is _MISSING:
            emit("-" + label[1:], old, "-" + inner[1:], out)
        elif old is _MISSING:
            emit("+" + label[1:], new, "+" + inner[1:], out)
        else:
            _walk(label, old, new, inner, out)
        lead = inner


def _merged(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield the keys of both sides in order; a removed key comes before one added in the same place."""
    left = list(before)
    place = 0
    for key, new in after.items():
        while place < len(left) and left[place] not in after:
            yield left[place], before[left[place]], _MISSING
            place += 1
        if key in before:
            place += 1
        yield key, before.get(key, _MISSING), new
    for key in left[place:]:
        yield key, before[key], _MISSING


def _walk_lists(head: str, before: list[Any], after: list[Any], pad: str, out: list[str]) -> None:
    _, inner = open_list(head, pad, out)
    start = _common(zip(before, after, strict=False))
    room = min(len(before), len(after)) - start
    end = min(room, _common(zip(reversed(before), reversed(after), strict=False)))
    olds, news = before[start : len(before) - end], after[start : len(after) - end]
    for item in after[:start]:
        emit(inner + "-", item, inner, out)
    both = min(len(olds), len(news))
    for old, new in zip(olds[:both], news[:both], strict=True):
        _walk(inner + "-", old, new, inner, out)
    _replaced(inner, olds[both:], news[both:], out)
    for item in after[len(after) - end :]:
        emit(inner + "-", item, inner, out)


def _replaced(pad: str, olds: list[Any], news: list[Any], out: list[str]) -> None:
    for mark, items in (("-", olds), ("+", news)):
        for item in items:
            emit(f"{mark}{pad[1:]}-", item, mark + pad[1:], out)


def _common(pairs: Iterable[tuple[Any, Any]]) -> int:
    count = 0
    for old, new in pairs:
        if old is not new and not _alike(old, new):
            break
        count += 1
    return count


def _alike(old: Any, new: Any) -> bool:
    """Return whether two scalars are equal and written the same: 1 and True are equal in Python."""
    return bool(old == new) and type(old) is type(new) and not isinstance(old, dict | list)


def _replace(head: str, before: Any, after: Any, pad: str, out: list[str]) -> None:
    """Write the old lines, then the new ones; common lines at the start (that of the key) become context."""
    old: list[str] = []
    new: list[str] = []
    emit(head, before, pad, old)
    emit(head, after, pad, new)
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    out.extend(old[:same])
    out.extend("-" + line[1:] for line in old[same:])
    out.extend("+" + line[1:] for line in new[same:])


def _hunks(marked: list[str]) -> Iterator[str]:
    changed = [at for at, line in enumerate(marked) if line[0] != " "]
    old = new = done = 0
    for first, last in spans(changed, len(marked)):
        old, new = old + first - done, new + first - done
        body = marked[first:last]
        added = sum(line[0] == "+" for line in body)
        removed = sum(line[0] == "-" for line in body)
        olds, news = len(body) - added, len(body) - removed
        yield f"@@ -{_range(old, olds)} +{_range(new, news)} @@"
        yield from body
        old, new, done = old + olds, new + news, last


def spans(changed: list[int], length: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of changed lines with their context; ranges that touch are merged."""
    ranges: list[tuple[int, int]] = []
    for at in changed:
        first, last = max(0, at - CONTEXT), min(length, at + 1 + CONTEXT)
        if ranges and first <= ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], last)
        else:
            ranges.append((first, last))
    yield from ranges


def _range(start: int, count: int) -> str:
    """Return a range as POSIX defines it: lines count from 1, an empty range names the line before it, a
    count of 1 is left out."""
    first = start + 1 if count else start
    return str(first) if count == 1 else f"{first},{count}"
