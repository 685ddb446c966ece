"""What a case expects against what came of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cli.policy_cases.outcome import Sentence
from documents.diff import unified


def differences(expected: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Return the lines of a diff of the two as YAML; none where they are equal.

    Equal as data: the order of keys does not matter, empty parts are left out, and an expected sentence may be its
    code alone.
    """
    meant = _without_empty(_meant(expected, found))
    came = _without_empty(_plain(found))
    before, after = _text(meant), _text(came)
    if before == after:
        return []
    return unified(_aligned(meant, came), came, "expected", "actual") or [f"-{before}", f"+{after}"]


def _meant(expected: Any, found: Any) -> Any:
    """Return what is expected, with the whole sentence where its code is expected in that place."""
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        return {key: _meant(value, found.get(key)) for key, value in expected.items()}
    if isinstance(expected, list) and isinstance(found, list):
        return [_meant(one, found[at] if at < len(found) else None) for at, one in enumerate(expected)]
    return str(found) if isinstance(found, Sentence) and expected == found.code else expected


def _plain(found: Any) -> Any:
    if isinstance(found, Mapping):
        return {key: _plain(value) for key, value in found.items()}
    if isinstance(found, list):
        return [_plain(one) for one in found]
    return str(found) if isinstance(found, str) else found


def _without_empty(expected: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in expected.items() if value not in ([], False, 0)}


def _aligned(value: Any, like: Any) -> Any:
    """Return a value with its keys in the order of another one, so that only what differs is shown."""
    if isinstance(value, dict) and isinstance(like, dict):
        order = [*(key for key in like if key in value), *(key for key in value if key not in like)]
        return {key: _aligned(value[key], like.get(key)) for key in order}
    if isinstance(value, list) and isinstance(like, list):
        return [_aligned(one, like[at] if at < len(like) else None) for at, one in enumerate(value)]
    return value


def _text(value: Any) -> str:
    """Return a value for comparison: in Python 1 equals true, in JSON it does not."""
    return json.dumps(value, sort_keys=True)
