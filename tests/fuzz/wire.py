"""Fuzzed bodies against a running server: several TLS connections that are kept alive, a call on each at a time, as fast as they go.

Blocking sockets and a reader of our own for the little of HTTP that comes back: http.client takes longer than the server does.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random

from tests.fuzz import bodies, donors
from tests.support.calls.server_process import Running
from tests.testcluster.calls import PATIENCE

PATHS = ("/mutate", "/validate", "/advise")
CONNECTIONS = 8
POOL = 2000
"""documents at a time that bodies are made from: each new one takes the place of another"""
HANG = 1.0
"""Seconds to an answer, asked alone, that no body may take: of CPU, once it took so long among others"""
MIB = 2**20


def fuzzed(random: Random) -> Iterator[tuple[str, bytes]]:
    """(path, body) without end: two thirds new mutations of a document, the others one of those with a few of its bytes changed."""
    pool = list(donors.seeds())
    while True:
        body = random.choice(pool)
        if random.random() < 0.67:
            body = bodies.documented(random, body)
            _take(random, pool, body)
        else:
            body = bodies.bytewise(random, body)
        yield _path(random, body), body


def _take(random: Random, pool: list[bytes], body: bytes) -> None:
    """The seeds stay, so that mutations of mutations do not end in nothing but 400."""
    if len(pool) < POOL:
        pool.append(body)
    else:
        pool[random.randrange(len(donors.seeds()), POOL)] = body


def _path(random: Random, body: bytes) -> str:
    """Where the API server would send it; elsewhere now and then."""
    if random.random() < 0.05:
        return random.choice(PATHS)
    return random.choice(PATHS[:2]) if b'"pods"' in body else PATHS[2]


@dataclass(slots=True)
class Connection:
    """One TLS connection, dialled again when the server has closed it."""

    running: Running
    context: ssl.SSLContext
    _socket: socket.socket | None = None
    _rest: bytes = b""

    def send(self, path: str, body: bytes) -> None:
        """A whole request."""
        if self._socket is None:
            plain = socket.create_connection(("127.0.0.1", self.running.port), timeout=PATIENCE)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket, self._rest = self.context.wrap_socket(plain, server_hostname="127.0.0.1"), b""
        head = f"POST {path}?timeout=5s HTTP/1.1\r\nHost: berth\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self._socket.sendall(head.encode() + body)

    def answer(self) -> Answer:
        """The answer to what was sent. Raises OSError and AssertionError where there is none, or none that HTTP knows."""
        head = self._until_head()
        lines = head.decode("ascii").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        body = self._exactly(int(headers["content-length"]))
        if headers.get("connection") == "close":
            self.close()
        return Answer(status=int(lines[0].split()[1]), headers=headers, body=body)

    def cpu(self) -> float:
        """Seconds that the server has used."""
        fields = Path(f"/proc/{self.running.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # utime, stime: proc(5)

    def close(self) -> None:
        """The next request dials again."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _until_head(self) -> bytes:
        while b"\r\n\r\n" not in self._rest:
            self._more()
        head, _, self._rest = self._rest.partition(b"\r\n\r\n")
        return head

    def _exactly(self, size: int) -> bytes:
        while len(self._rest) < size:
            self._more()
        body, self._rest = self._rest[:size], self._rest[size:]
        return body

    def _more(self) -> None:
        assert self._socket is not None
        piece = self._socket.recv(65536)
        assert piece, f"the server closed the connection instead of answering; so far: {self._rest[:200]!r}"
        self._rest += piece


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    headers: dict[str, str]
    """names in lower case"""
    body: bytes


@dataclass(slots=True)
class Report:
    """What became of the bodies."""

    statuses: Counter[int] = field(default_factory=Counter)
    slowest: float = 0.0
    """seconds, of those that were asked alone because they had taken long among others"""
    wrong: list[tuple[str, str, bytes]] = field(default_factory=list)
    """(why, path, body) of answers that must not be"""
    resident: list[int] = field(default_factory=list)
    """bytes of the server's memory after each window"""


def drive(running: Running, seed: int, number: int, windows: int = 20) -> Report:
    """So many bodies on all connections; the server's memory and log are looked at after each window."""
    report, log, source = Report(), LogWatch(running.log), fuzzed(Random(seed))
    context = ssl.create_default_context(cafile=str(running.ca))
    with contextlib.ExitStack() as closing:
        connections = [closing.enter_context(contextlib.closing(Connection(running, context))) for _ in range(CONNECTIONS)]
        for _ in range(windows):
            for _ in range(max(1, number // windows // CONNECTIONS)):
                _round(connections, list(islice(source, CONNECTIONS)), report)
            report.wrong += [("the log says failed", "", line) for line in log.failures()]
            report.resident.append(resident(running.process.pid))
    assert running.process.poll() is None, "the server ended"
    return report


def _round(connections: list[Connection], calls: list[tuple[str, bytes]], report: Report) -> None:
    """A call on each connection at once."""
    started = time.monotonic()
    for connection, (path, body) in zip(connections, calls, strict=True):
        connection.send(path, body)
    for connection, (path, body) in zip(connections, calls, strict=True):
        _note(report, path, body, connection.answer)
    if time.monotonic() - started > HANG:
        for path, body in calls:  # which one, if any: the machine may have been busy
            _alone(connections[0], path, body, report)


def _note(report: Report, path: str, body: bytes, answered: Callable[[], Answer]) -> None:
    answer = answered()
    report.statuses[answer.status] += 1
    if why := wrong(answer):
        report.wrong.append((why, path, body))


def _alone(connection: Connection, path: str, body: bytes, report: Report) -> None:
    """The shortest of three times, in CPU of the server: what hangs does so each time, and a machine that stands still costs nothing."""
    times = []
    for _ in range(3):
        started = connection.cpu()
        connection.send(path, body)
        connection.answer()
        times.append(connection.cpu() - started)
    report.slowest = max(report.slowest, min(times))
    if min(times) > HANG:
        report.wrong.append((f"takes {min(times):.1f} s", path, body))


def wrong(answer: Answer) -> str:
    """Why an answer must not be; "" for one that may: 200 with a review, 4xx, or 503 that says when to try again."""
    if answer.status == 503:
        return "" if "retry-after" in answer.headers else "503 without Retry-After"
    if answer.status == 200:
        return _wrong_review(json.loads(answer.body))
    return "" if 400 <= answer.status < 500 else f"status {answer.status}"


def _wrong_review(review: dict[str, object]) -> str:
    response = review.get("response")
    if review.get("kind") != "AdmissionReview" or not isinstance(response, dict) or "uid" not in response:
        return "no AdmissionReview"
    return "" if ("patch" in response) == ("patchType" in response) else "patch without patchType, or the other way round"


def resident(pid: int) -> int:
    """Bytes of memory that a process has."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


class LogWatch:
    """Reads a log while it grows, and gives its blocks back: a million decisions are a gigabyte."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._at = log.stat().st_size

    def failures(self) -> list[bytes]:
        """The new lines that tell of a failure."""
        with self._log.open("rb") as file:
            file.seek(self._at)
            new = file.read()
        self._at += len(new)
        os.truncate(self._log, 0)  # the server writes on where it was: what is before becomes a hole
        return [line for line in new.splitlines() if b'"event":"failed"' in line]
