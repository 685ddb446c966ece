"""The mutators: always the same for a seed, most of what they make is judged, and they never change a donor."""

from __future__ import annotations

import copy
from collections import Counter
from random import Random

from policies.state.snapshot import Snapshot
from tests.fuzz import bodies, donors, oracle, shrink
from tests.fuzz.worlds import snapshots
from tests.support.counts import count

NUMBER = count(300, 600)


def test_a_seed_gives_the_same_bodies() -> None:
    """So that what was found is found again."""
    first, second = ([bodies.mutated(random, donors.seeds()[0]) for _ in range(50)] for random in (Random(3), Random(3)))
    assert first == second
    assert len(set(first)) > 45


def test_most_mutated_documents_are_judged() -> None:
    """And end in every way that a review can end in."""
    random = Random(2)
    made = [bodies.documented(random, random.choice(donors.seeds())) for _ in range(NUMBER)]
    ends = Counter(map(oracle.check, made))
    assert ends[oracle.UNREAD] < NUMBER / 2
    assert {"admitted", "patched", "denied", "passed", "advised"} <= set(ends)


def test_most_mutated_bytes_are_not() -> None:
    """They try the parser."""
    random = Random(3)
    made = [bodies.bytewise(random, random.choice(donors.seeds())) for _ in range(NUMBER)]
    assert Counter(map(oracle.check, made))[oracle.UNREAD] > NUMBER / 2


def test_donors_stay_as_they_are() -> None:
    """A mutation that changed what others are made from would make none repeatable."""
    before = copy.deepcopy((donors.recorded(), donors.pods(), donors.values()))
    random = Random(4)
    for body in donors.seeds():
        bodies.documented(random, body)
    assert repr((donors.recorded(), donors.pods(), donors.values())) == repr(before)


def test_a_failing_body_is_made_small() -> None:
    """What remains is what fails."""
    body = donors.seeds()[0]
    small = shrink.shrunk(body, lambda b: "uid" if b'"uid"' in b else "")
    assert small == b'"uid"'


def test_worlds_differ() -> None:
    """Under none of them is everything unmatched, and some policies are in each mode."""
    found: tuple[Snapshot, ...] = snapshots()
    assert {compiled.mode for snapshot in found for compiled in snapshot.policies} == {"Enforce", "Audit", "Warn"}
    assert all(snapshot.policies for snapshot in found)
    assert any(snapshot.templates for snapshot in found)
    assert {snapshot.placed for snapshot in found} == {True, False}
