"""Certificates that replicas share: at each moment, whatever registration an API server still remembers verifies what is served."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given

from certs.rotation import NOTHING, Asked, Lives, Material, due, merge_material
from certs.secret import CA, CA_KEY, FIELDS, LEAF, LEAF_KEY, TIMES, from_data, to_data
from tests.support.generators.strategies import examples, randoms

NAMES = ("berth.berth-system.svc",)
LIVES = Lives(ca=timedelta(days=30), leaf=timedelta(days=2), overlap=timedelta(hours=1))
START = datetime(2026, 11, 23, tzinfo=UTC)


def settled(
    material: Material, now: datetime, trusted: frozenset[str] | None = None, asked: Asked | None = None, request: str = ""
) -> tuple[Material, list[str]]:
    """Carry out all that is due, and return the reasons too."""
    reasons = []
    while change := due(material, NAMES, now, LIVES, trusted=trusted, asked=asked, request=request):
        material = change.material
        reasons.append(change.reason)
        assert len(reasons) < 100, reasons
    return material, reasons


def test_the_first_look_makes_a_ca_and_a_certificate() -> None:
    """There is nobody yet who trusts another one, so it signs at once; and then nothing is due."""
    made, reasons = settled(NOTHING, START)
    assert [reason.partition(": ")[2] for reason in reasons] == ["there was none that can sign", "there was none"]
    assert made.leaf is not None
    assert made.issuer() is made.authorities[0]
    assert set(NAMES) <= set(made.leaf.names)
    assert settled(made, START + timedelta(hours=1)) == (made, [])


def test_a_new_ca_signs_only_once_it_has_been_trusted_for_the_overlap() -> None:
    """And the old one stays trusted for as long afterwards."""
    old, _ = settled(NOTHING, START)
    old, _ = settled(old, START, old.fingerprints)
    both, reasons = settled(old, START, old.fingerprints, "ca", "ca 1")
    assert len(reasons) == 1
    assert len(both.authorities) == 2
    assert both.leaf is old.leaf
    assert settled(both, START + timedelta(days=1), old.fingerprints, "ca", "ca 1")[0].leaf is old.leaf, "no registration has it"
    seen, _ = settled(both, START, both.fingerprints)
    waiting, _ = settled(seen, START + timedelta(minutes=59), both.fingerprints)
    assert waiting.leaf is old.leaf
    new, _ = settled(seen, START + timedelta(minutes=60), both.fingerprints)
    assert new.issuer() == new.authorities[-1]
    assert len(new.authorities) == 2
    left, _ = settled(new, START + timedelta(minutes=121), both.fingerprints)
    assert left.authorities == new.authorities[1:]


def test_a_request_is_carried_out_once() -> None:
    """For a serving certificate too; a request that cannot be read is told and forgotten."""
    first, _ = settled(NOTHING, START)
    second, _ = settled(first, START, asked="leaf", request="leaf 1")
    assert second.leaf is not None
    assert first.leaf is not None
    assert second.leaf.certificate != first.leaf.certificate
    assert settled(second, START, asked="leaf", request="leaf 1") == (second, [])
    third, reasons = settled(second, START, request="everything")
    assert reasons == ['a request for a rotation cannot be read: "everything"']
    assert settled(third, START, request="everything") == (third, [])


def test_a_ca_whose_key_is_lost_goes_on_being_trusted_until_another_is() -> None:
    """The serving certificate stays as long as callers may know only the old one."""
    made, _ = settled(NOTHING, START)
    made, _ = settled(made, START, made.fingerprints)
    lost = replace(made, authorities=tuple(replace(one, key=None) for one in made.authorities))
    fixed, _ = settled(lost, START, lost.fingerprints)
    assert len(fixed.authorities) == 2
    assert fixed.leaf is made.leaf
    fixed, _ = settled(fixed, START, fixed.fingerprints)
    fixed, _ = settled(fixed, START + timedelta(hours=1), fixed.fingerprints)
    assert fixed.issuer() == fixed.authorities[-1]


def test_without_a_registration_a_ca_is_replaced_when_it_has_expired() -> None:
    """Nobody calls then who could be told earlier."""
    made, _ = settled(NOTHING, START)
    later, _ = settled(made, START + LIVES.ca + timedelta(seconds=1))
    assert later.issuer() == later.authorities[-1]
    assert not set(later.authorities) & set(made.authorities)


@given(randoms())
@examples(30, 2_000)
def test_every_remembered_registration_verifies_what_is_served(random: Random) -> None:
    """Over weeks of renewals and requests: with registrations that cannot be read for a while, or with keys that get lost."""
    now, material, loses = START, NOTHING, random.random() < 0.5
    registered: list[tuple[datetime, frozenset[str]]] = []
    for step in range(random.randint(5, 60)):
        asked: Asked | None = random.choice((None, None, "ca", "leaf"))
        readable = loses or random.random() < 0.8
        trusted = registered[-1][1] if registered and readable else None
        material, _ = settled(material, now, trusted, asked, f"{asked} {step}" if asked else "")
        if readable:
            registered.append((now, material.fingerprints))
        if loses and random.random() < 0.1:
            material = replace(material, authorities=tuple(replace(one, key=None) for one in material.authorities))
        issuer = material.issuer()
        assert issuer is not None
        assert all(issuer.fingerprint in prints for prints in _remembered(registered, now))
        now += timedelta(minutes=random.choice((1, 20, 61, 120 if loses else 60 * 13)))


def _remembered(registered: list[tuple[datetime, frozenset[str]]], now: datetime) -> list[frozenset[str]]:
    """The registrations that were in force at some time in the last overlap."""
    ends = [*(at for at, _ in registered[1:]), now]
    return [prints for (_, prints), end in zip(registered, ends, strict=False) if end > now - LIVES.overlap or end == now]


def test_what_is_stored_is_read_again() -> None:
    """Keys are matched by their certificates; times are to the microsecond."""
    made, _ = settled(NOTHING, START)
    made, _ = settled(made, START, made.fingerprints, "ca", "ca 1")
    again, wrong = from_data(to_data(made))
    assert wrong == ()
    assert to_data(again) == to_data(made)
    assert again.fingerprints == made.fingerprints
    assert from_data({}) == (NOTHING, ())


@pytest.mark.parametrize("time", ["2026-11-25T10:00:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59Z", "soon", 7])
def test_a_time_that_berth_did_not_write_counts_as_not_set(time: object) -> None:
    """One without a zone, or at an end of the calendar, is told of; what is due is still found."""
    data = to_data(settled(NOTHING, START)[0])
    times = json.loads(data[TIMES])
    for one in times["authorities"].values():
        one |= {"published": time, "retired": time}
    read, wrong = from_data({**data, TIMES: json.dumps(times).encode()})
    assert {(one.published, one.retired) for one in read.authorities} == {(None, None)}
    assert [sentence.partition(" of CA")[0] for sentence in wrong] == [f"{TIMES}: published", f"{TIMES}: retired"]
    assert settled(read, START)[1] == []


def test_what_is_damaged_is_told_and_taken_from_memory() -> None:
    """Whatever field is cut or gone: a replica that has it writes it again, and without one it is made anew."""
    made, _ = settled(NOTHING, START)
    data = to_data(made)
    words = {
        CA: "ca.crt: ",
        CA_KEY: "ca.key: ",
        LEAF: "tls.crt and tls.key: ",
        LEAF_KEY: "tls.crt and tls.key: ",
        TIMES: "authorities.json: ",
    }
    for name in FIELDS:
        for value in (data[name][: len(data[name]) // 2], b"nonsense", b""):
            stored, wrong = from_data({**data, name: value})
            if name != TIMES or value:
                assert any(words[name] in one for one in wrong), (name, wrong)
            assert not any("PRIVATE" in one for one in wrong)
            assert to_data(replace(merge_material(made, stored)))[CA] == data[CA]
            assert merge_material(made, stored).authorities[0].key is not None
            anew, _ = settled(stored, START)
            assert anew.leaf is not None
            assert anew.issuer() is not None
    assert merge_material(made, from_data({})[0]) == made
