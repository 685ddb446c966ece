"""Requests that are odd, wrong or two things at once (reliability.md E10): each has one meaning, and nothing is answered twice.

What is wrong in the framing is 400 and the end of the connection: what comes after it could be anybody's words. Whatever else is
odd is answered and the connection goes on. Never 3xx, which the API server follows, and never 5xx.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.calls.odd_requests import EITHER_WAY, NEXT, ODD, ONE_AND_NO_MORE, REVIEW, SIZE, TORN
from tests.support.calls.raw_tls import Reply, Wire, dialled, head, post
from tests.support.calls.server_process import LIBRARY, Running, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that waits for a request as long as it takes. It has made no mistake of its own at the end."""
    with serving(tmp_path_factory.mktemp("server"), "--policies", LIBRARY, "--request-deadline", "60") as it:
        yield it
        assert it.events("failed") == []
        assert b"Traceback" not in it.log.read_bytes()


@pytest.fixture
def wire(server: Running) -> Iterator[Wire]:
    """A connection for the request under test. Afterwards the server lives and judges on another one."""
    with dialled(server) as it:
        yield it
    assert server.process.poll() is None
    with dialled(server) as other:
        other.send(NEXT)
        reply = other.reply()
        assert reply is not None
        assert reply.status == 200


@pytest.mark.parametrize("request_", TORN.values(), ids=TORN)
def test_a_request_with_two_meanings_has_none(request_: bytes, wire: Wire) -> None:
    """400, and the end: the good request behind it is not answered, for where it begins is anybody's guess.

    A body that is cut short is a review that can't be read, with a uid: rejected in an answer, and the rest is garbage.
    """
    wire.send(request_ + NEXT)
    replies = wire.replies()
    assert [reply.status for reply in replies] in ([], [400], [200, 400])
    assert [json.loads(reply.body)["response"]["allowed"] for reply in replies if reply.status == 200] in ([], [False])
    assert not replies or replies[-1].closes


@pytest.mark.parametrize(("request_", "statuses"), ODD.values(), ids=ODD)
def test_what_is_only_odd_is_answered(request_: bytes, statuses: set[int], wire: Wire) -> None:
    """Once, with the right status; the next request on the connection is judged, unless the answer closed it."""
    wire.send(request_ + NEXT)
    first, second = wire.reply(), wire.reply()
    assert first is not None
    assert first.status in statuses
    assert "location" not in first.headers
    assert first.closes == (second is None)
    assert second is None or second.status == 200


@pytest.mark.parametrize("request_", EITHER_WAY.values(), ids=EITHER_WAY)
def test_what_servers_read_differently_is_answered_in_one_way(request_: bytes, wire: Wire) -> None:
    """Judged or turned away; and then either the connection ends or the next request is judged: never something between."""
    wire.send(request_ + NEXT)
    first, second = wire.reply(), wire.reply()
    assert first is None or first.status in {200, 400, 404, 405, 415}
    assert second is None or (first is not None and not first.closes and second.status == 200)


@pytest.mark.parametrize("request_", ONE_AND_NO_MORE.values(), ids=ONE_AND_NO_MORE)
def test_what_keeps_no_connection_is_answered_and_closed(request_: bytes, wire: Wire) -> None:
    """Other versions of HTTP, and a caller that wants it so; what it sends after that is not read."""
    wire.send(request_ + NEXT)
    (reply,) = wire.replies()
    assert reply.status in {200, 400, 405}


def test_a_head_request_has_no_body_in_its_answer(wire: Wire) -> None:
    """Or the next answer would be read as that body."""
    wire.send(b"HEAD /mutate HTTP/1.1\r\nHost: x\r\n\r\n" + NEXT)
    first, second = wire.reply(of_head=True), wire.reply()
    assert first is not None
    assert first.status == 405
    assert second is None or second.status == 200


def numbered(number: int) -> bytes:
    """A request whose answer is like no other's."""
    review = json.loads(REVIEW)
    review["request"]["uid"] = f"uid-{number}"
    return post(json.dumps(review).encode(), path=("/mutate", "/validate")[number % 2])


def uid(reply: Reply | None) -> str:
    assert reply is not None
    answered: str = json.loads(reply.body)["response"]["uid"]
    return answered


@pytest.mark.parametrize("piece", [1, 7, 1000, 10**9])
def test_a_hundred_requests_at_once_are_answered_in_order(piece: int, wire: Wire) -> None:
    """However the bytes are cut: in one write, or so many to a record of TLS (then they are ten, or it takes too long)."""
    requests = [numbered(number) for number in range(100 if piece >= 1000 else 2)]
    data = b"".join(requests)
    for at in range(0, len(data), piece):
        wire.send(data[at : at + piece])
    assert [uid(wire.reply()) for _ in requests] == [f"uid-{number}" for number in range(len(requests))]


def test_a_caller_that_expects_to_be_told_is_told(wire: Wire) -> None:
    """100 Continue before the body, and the answer after it."""
    wire.send(head(SIZE, Expect="100-continue"))
    interim = wire.reply()
    assert interim is not None
    assert interim.status == 100
    wire.send(REVIEW + NEXT)
    assert [reply and reply.status for reply in (wire.reply(), wire.reply())] == [200, 200]


def test_a_caller_that_expects_to_be_told_no_is_told_no(wire: Wire) -> None:
    """Before it sends gigabytes."""
    wire.send(head(2**32, Expect="100-continue"))
    interim = wire.reply()
    assert interim is not None
    assert interim.status == 413


def test_a_length_that_is_too_long_ends_at_the_deadline(tmp_path: Path) -> None:
    """The body never comes: the connection is ended, without an answer to half a review."""
    with serving(tmp_path, "--request-deadline", "2") as server, dialled(server) as wire:
        begun = time.monotonic()
        wire.send(post(REVIEW).replace(f"Length: {SIZE}".encode(), f"Length: {SIZE + 5}".encode()))
        assert [reply.status for reply in wire.replies()] in ([], [408])
        assert time.monotonic() - begun > 1.5
