"""Keys that queue systems and sharing schedulers define: none of them is told misspelt, and a typist's slip in one is."""

from __future__ import annotations

from random import Random

import pytest

from catalog.reserved_keys import PLACES, ReservedKeys, Where
from policies.pods.actors import KUEUE_LABELS
from policies.pods.fractions import FRACTION_DEVICES, FRACTIONS
from policies.pods.queue_systems import ANNOTATIONS, KEPT_ANNOTATIONS, KEPT_LABELS, SYSTEMS
from policies.rules.queues import words
from tests.support.cases import golden
from tests.support.counts import count

CATALOG = golden.catalog_with()
OTHER: dict[Where, Where] = {"labels": "annotations", "annotations": "labels"}


def told(where: Where, key: str) -> list[str]:
    return [remark.text for remark in words.remark_ignored_keys({where: {key: "x"}, OTHER[where]: {}}, CATALOG)]


def names(one: ReservedKeys, where: Where) -> frozenset[str]:
    return one.labels if where == "labels" else one.annotations


@pytest.mark.parametrize("one", CATALOG.reserved_keys, ids=lambda one: one.prefix)
def test_no_known_key_is_told_misspelt(one: ReservedKeys) -> None:
    """Where it is read nothing is said of it; elsewhere that it is not read there; of controllers' own keys nothing anywhere."""
    for where in PLACES:
        assert not [key for key in one.right(where) if told(where, key)]
        for name in names(one, where) - names(one, OTHER[where]):
            (sentence,) = told(OTHER[where], one.prefix + name)
            assert "does not read it there" in sentence


@pytest.mark.parametrize("one", CATALOG.reserved_keys, ids=lambda one: one.prefix)
def test_a_slip_in_a_key_is_told_or_like_none(one: ReservedKeys) -> None:
    """A letter left out, doubled or swapped: the key that was meant, or nothing where two are as near; never another one."""
    random, found = Random(one.prefix), 0
    for _ in range(count(50, 500)):
        where = random.choice([place for place in PLACES if names(one, place)])
        name = random.choice(sorted(names(one, where)))
        at = random.randrange(1, len(name))
        slips = (name[:at] + name[at + 1 :], name[:at] + name[at] + name[at:], name[: at - 1] + name[at] + name[at - 1] + name[at + 1 :])
        slip = random.choice(slips)
        sentences = told(where, one.prefix + slip)
        assert all(one.prefix + name in sentence for sentence in sentences) or slip in one.labels | one.annotations | one.others
        found += bool(sentences)
    assert found


def test_what_berth_reads_of_queues_is_known() -> None:
    """Every key beneath a reserved prefix that Berth itself reads or writes is one that nothing is said of."""
    of_systems = {(system.where, system.key) for system in SYSTEMS}
    read = {*of_systems, *(("labels", key) for key in (*KEPT_LABELS, *KUEUE_LABELS))}
    read |= {("annotations", key) for key in (*KEPT_ANNOTATIONS, *ANNOTATIONS, *FRACTIONS, FRACTION_DEVICES)}
    read |= {(words.where, words.key) for words in CATALOG.words}
    assert not [(where, key) for where, key in sorted(read) if told(where, key)]


def test_prefixes_exclude_each_other() -> None:
    """A key has one reader at most."""
    prefixes = [one.prefix for one in CATALOG.reserved_keys]
    assert not [(one, other) for one in prefixes for other in prefixes if one != other and one.startswith(other)]


def test_many_keys_are_looked_at_in_bounds() -> None:
    """An author may write thousands."""
    many = {f"kueue.x-k8s.io/queue-nam{number:04}": "x" for number in range(5000)}
    assert not list(words.remark_ignored_keys({"labels": many, "annotations": {}}, CATALOG))
    slips = {f"kueue.x-k8s.io/queue-nam{letter}": "x" for letter in "abcdfghijklmnopqrstuvwxyz"}
    assert len(list(words.remark_ignored_keys({"labels": slips, "annotations": {}}, CATALOG))) == 16
