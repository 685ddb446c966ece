"""What a replica has said of objects that it does not understand, and whether its log can be trusted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from catalog.names import CatalogNames
from policies.objects import definition
from policies.objects.parse import understand
from policies.policy import API_VERSION
from tests.support.generators.random_worlds import catalog
from tests.testcluster.addons.berth import Berth
from tests.testcluster.controlplane.api import Api

Raw = dict[str, Any]
PRINTABLE = frozenset(range(0x20, 0x7F)) | {0x0A}
CRASHES = ("failed", "library")
"""events that only a mistake of Berth's own leads to"""


@cache
def names() -> CatalogNames:
    return CatalogNames(catalog())


def served(api: Api) -> Iterator[Raw]:
    """Every object of our kinds, as the API server gives them, page by page."""
    for kind in definition.KINDS:
        path, more = api.kind(API_VERSION, kind).path(None), ""
        while True:
            reply = api.call("GET", path, limit="200", **({"continue": more} if more else {}))
            assert reply.ok, f"{kind}: {reply.status} {reply.message}"
            yield from ({**value, "kind": kind} for value in reply.body["items"])
            if not (more := reply.body["metadata"].get("continue", "")):
                break


def shown(value: Raw) -> str:
    """Its name in a log line."""
    metadata = value["metadata"]
    return "/".join(part for part in (value["kind"], metadata.get("namespace", ""), metadata.get("name", "")) if part)


def not_understood(value: Raw) -> bool:
    """By the parser, whose own laws are tested elsewhere."""
    return bool(understand(value, value["kind"], names()).errors)


def named(log: Path, begins: int = 0) -> list[str]:
    """Objects that the log names as not understood, each as often as it does."""
    whole = log.read_bytes()[begins:].split(b"\n")[:-1]
    return [json.loads(line)["object"] for line in whole if b'"policy_rejected"' in line]


def events(log: Path, begins: int = 0) -> list[Raw]:
    """Every line: an event, in characters that end no line and steer no terminal. Fails for any other."""
    written = log.read_bytes()[begins:]
    whole = written[: written.rfind(b"\n") + 1]
    assert set(whole) <= PRINTABLE, f"{sorted(set(whole) - PRINTABLE)} in {log}"
    found = [json.loads(line) for line in whole.splitlines()]
    assert all(isinstance(event, dict) and {"time", "level", "event"} <= event.keys() for event in found)
    return found


def forged(log: Path) -> list[Raw]:
    """Events that come of what somebody has written into a name."""
    return [event for event in events(log) if event["event"] in CRASHES or event.get("phase") == "forged"]


def memory(replica: Berth) -> int:
    """Bytes that are resident (Linux: /proc/PID/status)."""
    status = Path(f"/proc/{replica.process.popen.pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS:"))
