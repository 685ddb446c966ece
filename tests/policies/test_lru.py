"""What was used last is kept, up to so many bytes."""

from __future__ import annotations

from policies.lru import LruCache


def test_what_is_kept_is_found() -> None:
    """And nothing else."""
    cache: LruCache[str] = LruCache(1600)
    cache.keep("a", "x", 100)
    assert (cache.get("a"), cache.get("b")) == ("x", None)


def test_the_one_not_used_for_longest_goes_first() -> None:
    """To be found is to be used."""
    cache: LruCache[int] = LruCache(1600)
    for number in range(16):
        cache.keep(number, number, 100)
    assert cache.get(0) == 0
    cache.keep(16, 16, 100)
    assert [number for number in range(17) if cache.get(number) is None] == [1]


def test_one_that_is_large_displaces_no_others() -> None:
    """Over a sixteenth of all it is not kept."""
    cache: LruCache[str] = LruCache(1600)
    cache.keep("small", "x", 100)
    cache.keep("large", "y", 101)
    assert (cache.get("large"), cache.get("small")) == (None, "x")


def test_what_is_kept_twice_counts_once() -> None:
    """Its bytes are there once."""
    cache: LruCache[str] = LruCache(1600)
    for _ in range(40):
        cache.keep("a", "x", 100)
    for number in range(15):
        cache.keep(number, "y", 100)
    assert len(cache) == 16


def test_all_is_forgotten() -> None:
    """And there is room again for all."""
    cache: LruCache[int] = LruCache(1600)
    for _ in range(2):
        for number in range(16):
            cache.keep(number, number, 100)
        assert len(cache) == 16
        cache.clear()
        assert len(cache) == 0
