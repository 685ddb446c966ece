"""The smallest group of sets that have nothing in common."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from policies.rules.node_affinity.denials import smallest


@given(st.lists(st.integers(0, 255), max_size=6))
def test_smallest_is_a_smallest_group(sets: list[int]) -> None:
    """It is empty exactly where all have something in common, has nothing in common itself, and no member to spare;
    up to two it is the smallest there is."""
    group = smallest(sets, 255)

    def common(indices: tuple[int, ...]) -> int:
        rows = 255
        for i in indices:
            rows &= sets[i]
        return rows

    assert (group == ()) is bool(common(tuple(range(len(sets)))))
    if group:
        assert not common(group)
        assert all(common(tuple(i for i in group if i != left)) for left in group)
        if len(group) > 2:
            assert all(common(pair) for pair in combinations(range(len(sets)), 2))
