"""JSON that is too deep for orjson, from whoever may write an object."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import orjson
import pytest

from documents.json_depth import DEEPEST, loads


def nested(levels: int, inside: str = "1") -> str:
    return "[" * levels + inside + "]" * levels


def test_what_orjson_reads_is_read_whole() -> None:
    """Deep, and not too deep."""
    text = nested(900).encode()
    assert loads(text) == orjson.loads(text)


@pytest.mark.parametrize("levels", [1_025, 1_100, 100_000])
def test_one_part_too_deep_spoils_nothing_beside_it(levels: int) -> None:
    """It is null from some level on, and all else is as it was; brackets in texts mean nothing."""
    text = f'{{"items": [{{"a": {nested(levels)}, "b": "]}}\\"["}}, {{"c": 2}}, {nested(3)}], "z": true}}'.encode()
    found = loads(text)
    value = found["items"][0].pop("a")
    assert found == {"items": [{"b": ']}"["'[:3] + "["}, {"c": 2}, [[[1]]]], "z": True}
    depth = 0
    while value is not None:
        (value,) = value
        depth += 1
    assert depth == DEEPEST - 3


def test_random_values_keep_what_is_above() -> None:
    """Of a value with deep parts in random places everything else is kept."""
    random = Random(7)

    def value(level: int) -> Any:
        kind = random.randrange(5) if level < 6 else 4
        if kind == 0:
            return [value(level + 1) for _ in range(random.randrange(4))]
        if kind in (1, 2):
            return {random.choice(['a"', "b\\", "[{", "é"]): value(level + 1) for _ in range(random.randrange(4))}
        return "@" if random.random() < 0.1 else random.choice([None, 1.5, 'x"]', "\\", "}{"])

    for _ in range(300):
        made = [value(0), "@"]
        text = json.dumps(made, ensure_ascii=False).replace('"@"', f'{{"@": {nested(1_500)}}}').encode()
        assert json.dumps(made, ensure_ascii=False) == json.dumps(whole(loads(text)), ensure_ascii=False)


def whole(value: Any) -> Any:
    """With the mark again where something was cut."""
    if isinstance(value, list):
        return [whole(item) for item in value]
    if isinstance(value, dict):
        return "@" if "@" in value else {key: whole(item) for key, item in value.items()}
    return value


@pytest.mark.parametrize("text", [b"", b"{", b"nope", b'{"a": 1e}', nested(1_100).encode()[:-1], b"]" * 2_000, b'"' + b"[" * 2_000])
def test_what_is_no_json_is_an_error(text: bytes) -> None:
    """Deep or not."""
    with pytest.raises(ValueError):
        loads(text)
