"""Bodies in pieces: what was added comes back, what is held is bounded, and everything is given back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from server.port import BodyMemory
from server.request_reader import SMALL, Pieces


@given(st.lists(st.integers(1, 3 * SMALL)))
def test_pieces_of_any_size_become_one_body(sizes: list[int]) -> None:
    """In order, its head too; and all that was taken for them is free again."""
    memory = BodyMemory(10**9)
    pieces, sent = Pieces(memory), [bytes([number % 256]) * size for number, size in enumerate(sizes)]
    assert all(pieces.add(piece) for piece in sent)
    assert pieces.head(100) == b"".join(sent)[:100]
    assert pieces.whole() == b"".join(sent)
    assert memory.has(10**9)


def test_what_does_not_fit_drops_the_body() -> None:
    """Its memory is for others at once."""
    memory = BodyMemory(20_000)
    first, second = Pieces(memory), Pieces(memory)
    assert first.add(b"x" * 10_000)
    assert second.add(b"x" * 5_000)
    assert not second.add(b"x" * 5_000)
    assert (second.whole(), memory.has(20_000 - 10_000 - 100)) == (b"", True)
    first.drop()
    assert memory.has(20_000)


def test_many_small_pieces_cost_little_more_than_their_bytes() -> None:
    """A byte at a time is held as a few strings, though each counts as more."""
    pieces = Pieces(BodyMemory(10**9))
    for _ in range(100_000):
        pieces.add(b"x")
    assert len(pieces._pieces) < 10
