"""What was used last is kept, up to so many bytes."""

from __future__ import annotations

from policies.kept import Kept


def test_what_is_kept_is_found() -> None:
    """And nothing else."""
    kept: Kept[str] = Kept(1600)
    kept.keep("a", "x", 100)
    assert (kept.get("a"), kept.get("b")) == ("x", None)


def test_the_one_not_used_for_longest_goes_first() -> None:
    """To be found is to be used."""
    kept: Kept[int] = Kept(1600)
    for number in range(16):
        kept.keep(number, number, 100)
    assert kept.get(0) == 0
    kept.keep(16, 16, 100)
    assert [number for number in range(17) if kept.get(number) is None] == [1]


def test_one_that_is_large_displaces_no_others() -> None:
    """Over a sixteenth of all it is not kept."""
    kept: Kept[str] = Kept(1600)
    kept.keep("small", "x", 100)
    kept.keep("large", "y", 101)
    assert (kept.get("large"), kept.get("small")) == (None, "x")


def test_what_is_kept_twice_counts_once() -> None:
    """Its bytes are there once."""
    kept: Kept[str] = Kept(1600)
    for _ in range(40):
        kept.keep("a", "x", 100)
    for number in range(15):
        kept.keep(number, "y", 100)
    assert len(kept) == 16


def test_all_is_forgotten() -> None:
    """And there is room again for all."""
    kept: Kept[int] = Kept(1600)
    for _ in range(2):
        for number in range(16):
            kept.keep(number, number, 100)
        assert len(kept) == 16
        kept.clear()
        assert len(kept) == 0
