"""Answers as bytes, paths out of request lines, and heads that are not answered."""

from __future__ import annotations

import pytest

from server.http import Call, come_back, path_of, text_answer, unspoken


def test_an_answer_is_one_string_of_bytes() -> None:
    """Status line, headers, length and body."""
    answer = text_answer(405, "no", b"allow: POST\r\n")
    expected = b"HTTP/1.1 405 Method Not Allowed\r\ncontent-type: text/plain; charset=utf-8\r\nallow: POST\r\n"
    assert answer.encoded(close=False) == expected + b"content-length: 3\r\n\r\nno\n"
    assert answer.encoded(close=True, only_head=True) == expected + b"connection: close\r\ncontent-length: 3\r\n\r\n"
    assert (answer.status, answer.close) == (405, False)


def test_to_come_back_is_said_with_seconds_and_a_closed_connection() -> None:
    """Which is what makes the API server ask again, and another replica."""
    answer = come_back("later")
    assert (answer.status, answer.close) == (503, True)
    assert b"\r\nretry-after: 1\r\n" in answer.encoded(close=True)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        (b"/mutate", b"/mutate"),
        (b"/mutate?timeout=5s", b"/mutate"),
        (b"/mutate?a=/x?y", b"/mutate"),
        (b"//mutate", b"//mutate"),
        (b"http://host/mutate?x", b"/mutate"),
        (b"https://host:8443/a/b", b"/a/b"),
        (b"http://host", b"/"),
        (b"*", b"*"),
        (b"host:443", b"host:443"),
    ],
)
def test_a_path_is_told_apart_from_what_is_around_it(url: bytes, path: bytes) -> None:
    """A query says nothing here, and a host in the request line is one more name of ours."""
    assert path_of(url) == path


HOST = {b"host": b"x"}


@pytest.mark.parametrize(
    ("version", "headers", "status"),
    [
        ("1.1", HOST, None),
        ("1.0", {}, None),
        ("1.1", {**HOST, b"transfer-encoding": b"Chunked"}, None),
        ("1.1", {**HOST, b"expect": b"100-Continue"}, None),
        ("1.1", {**HOST, b"expect": b"a miracle"}, 417),
        ("1.1", {}, 400),
        ("1.1", {b"host": b"x, y"}, 400),
        ("1.1", {**HOST, b"transfer-encoding": b"gzip, chunked"}, 400),
        ("1.0", {b"transfer-encoding": b"chunked"}, 400),
        ("2.0", HOST, 400),
        ("0.9", {}, 400),
    ],
)
def test_a_head_that_is_not_everyday_is_answered_or_not(version: str, headers: dict[bytes, bytes], status: int | None) -> None:
    """What has one meaning is; what two servers could read in two ways is rejected, and its connection closed."""
    rejected = unspoken(version, headers, upgrade=False)
    assert (rejected and (rejected.status, rejected.close)) == (status and (status, True))


def test_another_protocol_is_not_spoken() -> None:
    """After Upgrade or CONNECT the parser would leave the rest of the connection to somebody else."""
    rejected = unspoken("1.1", HOST, upgrade=True)
    assert rejected is not None
    assert rejected.status == 400


def test_the_length_that_a_call_declares_is_a_number() -> None:
    """0 where it has none."""
    assert Call(b"POST", b"/", {b"content-length": b"17 "}, 0.0).declared == 17
    assert Call(b"POST", b"/", {}, 0.0).declared == 0
