"""A failing body made small: whatever can go while it still fails the same way goes.

python -m tests.fuzz.shrink BODY > small.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from policies.state.snapshot import Snapshot
from tests.fuzz import oracle
from tests.fuzz.guided import kind_of_failure
from tests.fuzz.trees import copied
from tests.fuzz.worlds import snapshots

Fails = Callable[[bytes], str]
"""How a body fails, in one word for all that fail alike; "" if it does not."""


def failing_under(snapshot: Snapshot) -> Fails:
    """By what is raised under one world, and where."""

    def fails(body: bytes) -> str:
        try:
            oracle.check_under(body, snapshot)
        except Exception as error:  # noqa: BLE001 - whatever is raised is what is looked for
            return kind_of_failure(error)
        return ""

    return fails


def shrunk(body: bytes, fails: Fails) -> bytes:
    """The smallest body that cutting finds: subtrees of its document, then runs of its bytes."""
    kind = fails(body)
    assert kind, "this body does not fail"
    body = _by_tree(body, lambda smaller: fails(smaller) == kind)
    return _by_bytes(body, lambda smaller: fails(smaller) == kind)


def _by_tree(body: bytes, same: Callable[[bytes], bool]) -> bytes:
    try:
        document = json.loads(body)
        smaller = next((text for text in _cuts(document) if len(text) < len(body) and same(text)), None)
    except (ValueError, RecursionError):
        return body
    return body if smaller is None else _by_tree(smaller, same)


def _cuts(document: Any) -> Iterator[bytes]:
    """The document without one subtree, the large ones first; or with one where its parent was."""
    for path in sorted(_paths(document, ()), key=len):
        for put in (_without, _raised):
            box = [copied(document)]
            if put(box, path):
                yield json.dumps(box[0], separators=(",", ":")).encode()


def _paths(node: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for key in keys:
        yield (*path, key)
        yield from _paths(node[key], (*path, key))


def _parent(box: list[Any], path: tuple[Any, ...]) -> Any:
    node: Any = box[0]
    for key in path[:-1]:
        node = node[key]
    return node


def _without(box: list[Any], path: tuple[Any, ...]) -> bool:
    del _parent(box, path)[path[-1]]
    return True


def _raised(box: list[Any], path: tuple[Any, ...]) -> bool:
    value = _parent(box, path)[path[-1]]
    if len(path) < 2 or not isinstance(value, dict | list):
        return False
    _parent(box, path[:-1])[path[-2]] = value
    return True


def _by_bytes(body: bytes, same: Callable[[bytes], bool]) -> bytes:
    size = len(body) // 2
    while size:
        at = 0
        while at < len(body):
            smaller = body[:at] + body[at + size :]
            if same(smaller):
                body = smaller
            else:
                at += size
        size //= 2
    return body


def main(file: str) -> None:
    """The smallest body for the first world under which this one fails."""
    body = Path(file).read_bytes()
    fails = next((found for found in map(failing_under, snapshots()) if found(body)), None)
    assert fails is not None, "this body fails under no world"
    sys.stdout.buffer.write(shrunk(body, fails))


if __name__ == "__main__":
    main(sys.argv[1])
