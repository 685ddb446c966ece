"""Lines of a watch, however they are cut into pieces."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.client.errors import Garbled, ResponseTooLarge
from cluster.client.line_stream import MOST, Lines


def lines_of(pieces: list[bytes]) -> Lines:
    rest = list(pieces)

    async def read() -> bytes:
        return rest.pop(0) if rest else b""

    return Lines(read)


async def every(lines: Lines) -> list[bytes]:
    return [one async for one in lines]


@given(st.lists(st.binary(max_size=6).map(lambda text: text.replace(b"\n", b"")), max_size=8), st.lists(st.integers(1, 7), max_size=20))
def test_lines_do_not_depend_on_how_they_arrive(wanted: list[bytes], sizes: list[int]) -> None:
    """Whatever the pieces, the lines are those that were sent."""
    text, pieces = b"".join(one + b"\n" for one in wanted), []
    for size in sizes:
        if text[:size]:
            pieces.append(text[:size])
        text = text[size:]
    assert asyncio.run(every(lines_of(pieces + ([text] if text else [])))) == wanted


def test_an_end_in_the_middle_of_a_line_is_an_error() -> None:
    """What came before it is given first."""

    async def work() -> None:
        lines = lines_of([b'{"a": 1}\n{"b"', b": "])
        assert await lines.batch() == [b'{"a": 1}']
        with pytest.raises(Garbled, match="in the middle of a line"):
            await lines.batch()

    asyncio.run(work())


def test_a_line_without_end_is_an_error_before_it_fills_the_memory() -> None:
    """At 16 MiB."""
    lines = lines_of([b"x" * (1 << 20)] * 100)
    with pytest.raises(ResponseTooLarge, match="more than 16 MiB"):
        asyncio.run(lines.batch())
    assert MOST == 16 << 20
