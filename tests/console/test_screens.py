"""The screen "History": Events and reports, as far as they may be listed."""

from __future__ import annotations

import html
from typing import Any

from console.world.scope import ListableNamespaces, Scope
from policies.policy import CONTROLLER
from tests.support.console.asked import asked
from tests.support.console.worlds import world
from tests.support.recorded import eks


def event(namespace: str, name: str, text: str, at: str = "2026-11-24T07:00:00Z", **more: Any) -> dict[str, Any]:
    subject, metadata = {"kind": "Job", "name": name}, {"name": f"{name}.1", "namespace": namespace}
    told = {"reason": "FailedCreate", "type": "Warning", "message": text, "lastTimestamp": at, "source": {"component": "job-controller"}}
    return {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": subject, **told, **more}


def test_events_are_shown_the_newest_first() -> None:
    """Those of pods that were not created, and those of Berth; no others."""
    found = world(
        [
            *eks.objects(),
            event("web", "old", "denied long ago", "2026-11-24T06:00:00Z"),
            event("web", "new", "denied just now", "2026-11-24T07:30:00Z", count=7),
            event("web", "berths", "would be denied", reason="WouldBeDenied", reportingComponent=CONTROLLER),
            event("web", "other", "Back-off pulling image", reason="BackOff"),
        ]
    )
    text = asked(found, "/history").text
    assert text.index("denied just now") < text.index("would be denied") < text.index("denied long ago")
    assert "Back-off" not in text


def test_only_namespaces_that_may_be_listed_are_shown() -> None:
    """An Event of another namespace is not there."""
    found = world([*eks.objects(), event("web", "mine", "mine denied"), event("shop", "theirs", "theirs denied")])
    text = asked(found, "/history", Scope(who="ada", events=ListableNamespaces(names=frozenset({"web"})))).text
    assert "mine denied" in text
    assert "theirs" not in text
    assert "You may not list Events" in asked(found, "/history", Scope(who="bob")).text


def test_hostile_events_are_texts() -> None:
    """Script tags are escaped, marks of direction and megabytes cut; odd types don't break the page."""
    found = world(
        [
            *eks.objects(),
            event("web", "<script>alert(1)</script>", "\u202eevil" + "x" * 1_000_000),
            event("web", "odd", "odd", involvedObject=[1], count="many", series=7, lastTimestamp={"a": 1}),
        ]
    )
    text = asked(found, "/history").text
    assert "<script>alert" not in text
    assert "\u202e" not in text
    assert len(text) < 50_000
    assert "<script>alert(1)</script>" in html.unescape(text)
