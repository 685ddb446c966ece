"""Mutations of a decoded document: types swapped, keys and subtrees moved, doubled and lost, values at every boundary."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from tests.fuzz import donors

Node = Any
Slot = tuple[Any, Any]
"""a dict and one of its keys, or a list and one of its positions"""

QUANTITIES: tuple[Any, ...] = (
    "0", "1", "8", "-1", "1.5", "500m", "1e3", "1E3", "1e999", "1e-999", "1Ki", "1ki", "0x10", "٣", "1_000", " 1", "1 ", "+1", ".5", "5.",
    "999999999999999999999999999999n", "1" * 64, "1" * 65, "9223372036854775808", 0, 1, -1, 8, 1.5, 1e22, 1e-7, True,
)  # fmt: skip
NUMBERS: tuple[Any, ...] = (
    0, -0.0, -1, 1, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**30, 10**400,
    1e308, -1e308, 5e-324, 1.0, float("nan"), float("inf"),
)  # fmt: skip
TEXTS: tuple[Any, ...] = (
    "", " ", "~", "/", "~0", "~1", "a/b", "a~b", "~01/", "-", "0", "é", "\u2028", "\x00", "\x1b[31m", "\n", "\ud800", "\U0001f4a5", "𝟙",
    "ǅ",
    "A" * 253, "a" * 5000, "a/" * 300, "nvidia.com/gpu", "nvidia.com/", "/gpu", "null", "true", "{}", "${GPUS}", "%s", "1h", "48h", "-1h",
    "9" * 30 + "h", "0s", "berth.dev/applied", "Exists", "In", "NotIn", "Gt", "Lt", "Always",
)  # fmt: skip
EMPTY: tuple[Any, ...] = (None, [], {}, "", [None], [[]], [{}], {"": None}, {"": {}}, False, True)
DEPTHS = (3, 50, 200, 260, 900)
"""levels: orjson writes 254 and reads 1,024"""
STEPS = 14
"""down a tree, before a walk ends where it is: a container's resource is eight deep"""
SHALLOW = 0.15
"""part of the walks that may end above what is under review, where most changes make a body no review"""
TIMES = (2, 2, 3, 10, 60)
"""how often a list's items are repeated"""


def mutate(random: Random, document: Node, edits: int) -> Node:
    """A copy of the document with that many mutations. Raises ValueError where it gets too deep."""
    box = [copied(document)]
    for _ in range(edits):
        random.choice(_WAYS)(random, *_slot(random, box))
    return box[0]


def boundary(random: Random) -> Node:
    """A value that is the first or the last of its kind, or of no kind."""
    value = random.choice(random.choice((QUANTITIES, NUMBERS, TEXTS, EMPTY)))
    return copied(value)


def copied(node: Node) -> Node:
    """A copy of a whole tree, thirty times as fast as copy.deepcopy. Raises ValueError beyond 2,000 levels."""
    return marshal.loads(marshal.dumps(node))


def _slot(random: Random, box: list[Node]) -> Slot:
    """A place in the document; deeper ones as often as shallow ones."""
    slot: Slot = (box, 0)
    towards = 0.6 if random.random() < SHALLOW else 1
    for step in range(random.randint(1 if towards < 1 else 3, STEPS)):
        inner = _inside(slot[0][slot[1]])
        if not inner:
            break
        slot = slot[0][slot[1]], _key(random, inner, towards if step < 2 else 0.6)
    return slot


def _inside(node: Node) -> Sequence[Any]:
    if isinstance(node, dict):
        return list(node)
    return range(len(node)) if isinstance(node, list) else ()


_LIKELY = ("request", "object", "spec", "template", "containers", "resources", "affinity", "metadata", "nodeAffinity")


def _key(random: Random, inner: Sequence[Any], towards: float) -> Any:
    """For that part of the walks towards what is read: the rest of a document is only carried."""
    likely = [key for key in _LIKELY if key in inner] if random.random() < towards else []
    return random.choice(likely or inner)


def _put_boundary(random: Random, parent: Any, key: Any) -> None:
    parent[key] = boundary(random)


def _put_known(random: Random, parent: Any, key: Any) -> None:
    """What a donor has at this key."""
    known = donors.values().get(key) if isinstance(key, str) else None
    parent[key] = copied(random.choice(known)) if known else boundary(random)


def _splice(random: Random, parent: Any, key: Any) -> None:
    """What a donor has at another key."""
    parent[key] = copied(random.choice(donors.values()[random.choice(donors.keys())]))


def _delete(random: Random, parent: Any, key: Any) -> None:
    if len(parent) > 1 or isinstance(parent, dict):
        del parent[key]


def _rename(random: Random, parent: Any, key: Any) -> None:
    if isinstance(parent, dict):
        parent[_new_key(random)] = parent.pop(key)


def _add(random: Random, parent: Any, key: Any) -> None:
    """A key that donors have, or another name of a resource or label, with a value of its kind."""
    target = parent[key]
    if isinstance(target, list):
        target.append(copied(random.choice(target)) if target else {})
    elif isinstance(target, dict):
        names = donors.map_keys().get(key, ()) if isinstance(key, str) else ()
        name = random.choice(names) if names and random.random() < 0.9 else _new_key(random)
        known = donors.values().get(name)
        target[name] = copied(random.choice(known)) if known else boundary(random)


def _new_key(random: Random) -> str:
    return random.choice(donors.keys()) if random.random() < 0.7 else str(random.choice(TEXTS))


def _wrap(random: Random, parent: Any, key: Any) -> None:
    value = parent[key]
    parent[key] = random.choice(([value], {"": value}, {"key": value}, [value, value]))


def _unwrap(random: Random, parent: Any, key: Any) -> None:
    inner = _inside(parent[key])
    if inner:
        parent[key] = parent[key][random.choice(inner)]


def _as_other_type(random: Random, parent: Any, key: Any) -> None:
    value = parent[key]
    if isinstance(value, str):
        parent[key] = int(value) if value.isascii() and value.isdigit() and len(value) < 300 else [value]
    else:
        parent[key] = {str(i): item for i, item in enumerate(value)} if isinstance(value, list) else repr(value)[:40]


def _repeat(random: Random, parent: Any, key: Any) -> None:
    value = parent[key]
    if isinstance(value, list) and len(value) < 200:
        parent[key] = [copied(item) for item in value * random.choice(TIMES)]
    elif isinstance(value, str) and len(value) < 2000:
        parent[key] = value * random.choice(TIMES)


def _shuffle(random: Random, parent: Any, key: Any) -> None:
    value = parent[key]
    if isinstance(value, list):
        random.shuffle(value)
    elif isinstance(value, dict):
        keys = random.sample(list(value), len(value))
        parent[key] = {name: value[name] for name in keys}


def _nest(random: Random, parent: Any, key: Any) -> None:
    value = parent[key]
    for _ in range(random.choice(DEPTHS)):
        value = [value] if random.random() < 0.5 else {"a": value}
    parent[key] = value


_Way = Callable[[Random, Any, Any], None]
_WAYS: tuple[_Way, ...] = (
    *(_put_known,) * 5, *(_add,) * 5, *(_put_boundary,) * 4, *(_delete,) * 3, *(_splice,) * 2, *(_repeat,) * 2,
    _rename, _wrap, _unwrap, _as_other_type, _shuffle, _nest,
)  # fmt: skip
"""as often as they lead further: most of what is wrongly shaped is denied before a rule sees it"""
