"""Callers that are slow, idle, too many or never stop their headers: cut, counted, and harmless to the others."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from server import request_reader
from server.http import Answer, Call, Later, Rejection, come_back, text_answer
from server.limits import Limits
from tests.support.calls.in_process import StandIn, exchange, port, read_answer, run
from tests.support.calls.server_process import ROOT, Running, serving, until
from tests.testcluster.calls import PATIENCE

REVIEW = (ROOT / "tests" / "reviews" / "pods-create-train-llama.json").read_bytes()
HEAD = b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(REVIEW)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that waits one second for a request and has room for a hundred connections."""
    folder = tmp_path_factory.mktemp("server")
    with serving(folder, "--request-deadline", "1", "--connections", "100", "--platforms", "karpenter-aws") as it:
        yield it


@contextlib.contextmanager
def dialled(server: Running) -> Iterator[ssl.SSLSocket]:
    context = ssl.create_default_context(cafile=str(server.ca))
    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as raw,
        context.wrap_socket(raw, server_hostname="localhost") as tls,
    ):
        yield tls


def wait_for_the_end(connection: socket.socket) -> None:
    """Returns once the server has ended the connection; what it says before is read. Raises TimeoutError where it never does."""
    with contextlib.suppress(ssl.SSLEOFError, ConnectionResetError):
        while connection.recv(65536):
            pass


def cuts(server: Running, reason: str) -> float:
    line = f'berth_connections_cut_total{{reason="{reason}"}} '
    text = server.health("/metrics").body.decode()
    return float(text.partition(line)[2].partition("\n")[0])


@pytest.mark.parametrize("begun", [b"POST /mutate HT", HEAD[:60], HEAD + REVIEW[:500]], ids=["request-line", "head", "body"])
def test_a_request_that_does_not_end_is_cut(begun: bytes, server: Running) -> None:
    """After the deadline, wherever it stopped; others are answered meanwhile."""
    before = cuts(server, "slow")
    with dialled(server) as connection:
        connection.sendall(begun)
        assert server.post("/mutate", REVIEW).status == 200
        wait_for_the_end(connection)
    assert cuts(server, "slow") == before + 1


@pytest.mark.parametrize("number", [1, 2, 5, 50, 600])
@pytest.mark.parametrize("ends", ["the socket", "TLS"])
def test_calls_before_the_end_of_what_is_sent_are_answered(number: int, ends: str, server: Running) -> None:
    """All of them, in order, to a caller that sends several at once and then closes its side."""
    with dialled(server) as connection:
        connection.sendall((HEAD + REVIEW) * number)
        if ends == "the socket":
            with socket.socket(fileno=os.dup(connection.fileno())) as same:
                same.shutdown(socket.SHUT_WR)
        answers = b""
        while answers.count(b"HTTP/1.1 200 OK") < number or not answers.endswith(b"}"):
            more = connection.recv(2**20)
            assert more, f"{answers.count(b'HTTP/1.1 200 OK')} answers"
            answers += more


def test_a_request_in_pieces_is_answered(server: Running) -> None:
    """Within the deadline it does not matter how the bytes come, and the deadline is gone afterwards."""
    with dialled(server) as connection:
        for _ in range(2):
            for piece in (HEAD[:7], HEAD[7:], REVIEW[:100], REVIEW[100:]):
                connection.sendall(piece)
            assert read_answer(connection).status == 200


def test_a_head_without_end_is_cut(server: Running) -> None:
    """Past 64 KiB of headers, before the deadline."""
    before = cuts(server, "head")
    with dialled(server) as connection, contextlib.suppress(ConnectionResetError, BrokenPipeError, ssl.SSLEOFError):
        connection.sendall(b"POST /mutate HTTP/1.1\r\n")
        for _ in range(40):
            connection.sendall(b"X-Flood: " + b"y" * 4000 + b"\r\n")
        wait_for_the_end(connection)
    until(lambda: cuts(server, "head") == before + 1, "the cut")


def test_too_many_connections_are_told_to_come_back(tmp_path: Path) -> None:
    """A hundred that have asked and ask again stay; the next is answered 503 with Retry-After and closed, also where it says nothing; a
    place that is free is given."""
    with serving(tmp_path, "--connections", "100", "--request-deadline", "60") as server:
        with contextlib.ExitStack() as stack:
            held = [stack.enter_context(dialled(server)) for _ in range(100)]
            for connection in held:
                connection.sendall(HEAD + REVIEW)
                assert read_answer(connection).status == 200
                connection.sendall(HEAD + REVIEW[:500])
            until(lambda: b"berth_requests_in_flight 100.0" in server.health("/metrics").body, "a hundred calls on their way")
            for asks in (True, False):
                with dialled(server) as rejected:
                    if asks:
                        rejected.sendall(HEAD + REVIEW)
                    received = read_answer(rejected)
                assert (received.status, received.headers["retry-after"], received.headers["connection"]) == (503, "1", "close")
            held[0].sendall(REVIEW[500:])
            assert read_answer(held[0]).status == 200
        until(lambda: server.post("/mutate", REVIEW).status == 200, "a free place")
        assert cuts(server, "crowded") >= 2


def test_who_has_asked_longest_ago_makes_room(server: Running) -> None:
    """Of a hundred that each asked once: it is told to come back, for it may have sent a call this very moment. The others stay."""
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(dialled(server)) for _ in range(100)]
        for connection in [*held, held[0]]:
            connection.sendall(HEAD + REVIEW)
            assert read_answer(connection).status == 200
        assert server.post("/mutate", REVIEW).status == 200
        received = read_answer(held[1])
        assert (received.status, received.headers["retry-after"], received.headers["connection"]) == (503, "1", "close")
        for connection in (held[0], held[2], held[99]):
            connection.sendall(HEAD + REVIEW)
            assert read_answer(connection).status == 200


def test_who_never_asked_makes_room_for_who_does(server: Running) -> None:
    """A hundred idle connections, in a handshake or after it, lock nobody out: the oldest goes."""
    with contextlib.ExitStack() as stack:
        asked = stack.enter_context(dialled(server))
        asked.sendall(HEAD + REVIEW)
        assert read_answer(asked).status == 200
        for number in range(120):
            silent = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) if number % 2 else dialled(server)
            stack.enter_context(silent)
        assert server.post("/mutate", REVIEW).status == 200
        asked.sendall(HEAD + REVIEW)
        assert read_answer(asked).status == 200


def test_empty_lines_are_no_request(server: Running) -> None:
    """They are skipped, and a request after them is answered."""
    with dialled(server) as connection:
        connection.sendall(b"\r\n")
        connection.sendall(b"\r\n" + HEAD + REVIEW)
        assert read_answer(connection).status == 200


def test_what_is_not_http_is_turned_away(server: Running) -> None:
    """400 or a closed connection, and the server goes on."""
    with dialled(server) as connection:
        connection.sendall(b"\x16\x03\x01\x00\x05hello\r\n\r\n")
        assert read_answer(connection).status == 400
    assert server.post("/mutate", REVIEW).status == 200
    assert [event["event"] for event in server.events()].count("library") == 0


class Echo(StandIn):
    """An application that says what of a body it got, and remembers what else it was told."""

    room = 1000
    most = 5000

    def __init__(self) -> None:
        self.lost_calls: list[Call] = []
        self.rejection: Rejection | None = None

    def begin(self, call: Call) -> Rejection | None:
        return self.rejection

    def answer(self, call: Call, later: Later) -> Answer:
        if call.rejection is not None:
            return call.rejection.answer
        too_long = max(call.size, call.declared) > self.most
        return text_answer(
            413 if too_long else 200, f"{call.method.decode()} {call.path.decode()} {call.size} {len(call.body)}", close=too_long
        )

    def lost(self, call: Call) -> None:
        self.lost_calls.append(call)


def answers_to(*pieces: bytes, app: Echo | None = None, limits: Limits | None = None, cuts: list[str] | None = None) -> bytes:
    """What a caller hears that sends these pieces."""

    async def exchanged() -> bytes:
        async with port(app or Echo(), limits or Limits(), [] if cuts is None else cuts) as (_, number):
            return await exchange(number, *pieces)

    return run(exchanged())


class Late(Echo):
    """Parks each call for a moment."""

    def answer(self, call: Call, later: Later) -> None:  # type: ignore[override]
        answer = super().answer(call, later)
        asyncio.get_running_loop().call_later(0.1, lambda: later(call, answer))


@pytest.mark.parametrize("number", [1, 3])
def test_parked_calls_are_answered_to_a_caller_that_sends_nothing_more(number: int) -> None:
    """Without TLS, where one side of a connection can be closed: those that wait for something, and those behind them."""
    assert answers_to(*[request(BODY) * number], app=Late()).count(b"HTTP/1.1 200 OK") == number


def request(body: bytes = b"", *headers: str, line: str = "POST /mutate HTTP/1.1", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    lines = [line, "Host: x", f"Content-Length: {size}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def chunked(*chunks: bytes) -> bytes:
    head = b"POST /mutate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in (*chunks, b""))


def sentences(heard: bytes) -> list[str]:
    """Of each answer its first line and its body's."""
    found = []
    while heard:
        head, _, rest = heard.partition(b"\r\n\r\n")
        size = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        found.append(head.split(b"\r\n")[0].decode()[9:12] + " " + rest[:size].decode().strip())
        heard = rest[size:]
    return found


BODY = b"x" * 300


def test_a_call_is_answered_however_its_bytes_come() -> None:
    """In one piece, byte by byte, in chunks, in chunks of a byte: the same answer."""
    whole = request(BODY)
    for pieces in ([whole], [whole[:3], whole[3:]], [whole[:-200], whole[-200:]], [chunked(BODY)], [chunked(*[b"x"] * 300)]):
        assert sentences(answers_to(*pieces)) == ["200 POST /mutate 300 300"]
    slowly = [bytes([byte]) for byte in request(b"xyz")]
    assert sentences(answers_to(*slowly)) == ["200 POST /mutate 3 3"]


def test_calls_behind_each_other_are_answered_in_order() -> None:
    """A hundred that came in one piece, one in each turn of the event loop; then the connection goes on."""
    many = b"".join(request(b"x" * size) for size in range(100))
    assert sentences(answers_to(many, request(BODY))) == [
        *(f"200 POST /mutate {size} {size}" for size in range(100)),
        "200 POST /mutate 300 300",
    ]


def test_of_a_body_over_the_cap_only_its_head_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a length or without, and whether its first piece was long or short."""
    monkeypatch.setattr(request_reader, "UID_BYTES", 50)
    for pieces in (
        [request(b"x" * 20, length=1500), b"x" * 1480],
        [request(b"x" * 200, length=1500), b"x" * 1300],
        [chunked(*[b"x" * 20] * 75)[:300], chunked(*[b"x" * 20] * 75)[300:]],
    ):
        assert sentences(answers_to(*pieces)) == ["200 POST /mutate 1500 50"]


def test_what_no_body_can_be_is_not_read_on() -> None:
    """The answer comes before its end, and the connection ends with it, however much is still sent."""
    for pieces in ([request(b"x" * 20, length=10**9)], [chunked(b"x" * 4000, b"x" * 4000)[:-1000], b"x" * 500, b"x" * 500]):
        heard = answers_to(*pieces)
        assert heard.startswith(b"HTTP/1.1 413 ")
        assert b"\r\nconnection: close\r\n" in heard


def test_a_body_that_no_page_reads_is_413() -> None:
    """Though the page answers GET, and its whole head has arrived."""
    assert sentences(answers_to(b"GET /mutate HTTP/1.1\r\nHost: x\r\nContent-Length: 70000\r\n\r\n"))[:1] == ["413 send no body"]


def test_bodies_hold_no_more_together_than_they_may() -> None:
    """One that does not fit is answered with 503, to be tried again elsewhere; what was taken for it is free again."""
    cuts: list[str] = []
    limits = Limits(body_memory=1200)

    async def both() -> None:
        async with port(Echo(), limits, cuts) as (server, number):
            half = asyncio.create_task(exchange(number, request(b"x" * 600, length=900), b"x" * 300, pause=0.5))
            while server.port.bodies.has(1000):
                await asyncio.sleep(0.01)
            second = await exchange(number, request(b"x" * 600, length=900), b"x" * 300)
            assert sentences(second) == ["503 too many unfinished bodies"]
            assert b"retry-after: 1\r\nconnection: close\r\n" in second
            assert sentences(await exchange(number, request(b"x" * 900))) == ["200 POST /mutate 900 900"]  # in one piece
            assert sentences(await half) == ["200 POST /mutate 900 900"]
            assert server.port.bodies.has(1200)

    run(both())


def test_a_rejection_waits_for_the_body_and_drops_it() -> None:
    """A caller that is still writing may not read."""
    app = Echo()
    app.rejection = Rejection("unavailable", come_back("not now"))
    assert sentences(answers_to(request(b"x" * 20, length=400), b"x" * 379, b"x", app=app)) == ["503 not now"]


def test_who_asks_first_is_told_to_go_on() -> None:
    """Expect: 100-continue; or the rejection, at once. A caller that sends without waiting gets no 100."""
    expecting = request(b"", "Expect: 100-continue", length=300)
    heard = answers_to(expecting, BODY)
    assert heard.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    app = Echo()
    app.rejection = Rejection("rejected", text_answer(415, "no"))
    assert sentences(answers_to(expecting, app=app)) == ["415 no"]
    assert answers_to(request(BODY, "Expect: 100-continue")).startswith(b"HTTP/1.1 200 ")


def test_a_caller_that_leaves_in_the_middle_is_told_of() -> None:
    """The application hears that its call is lost, and what its body held is free."""
    app = Echo()

    async def leave() -> None:
        async with port(app, Limits(body_memory=1000), []) as (server, number):
            assert await exchange(number, request(b"x" * 600, length=900)) == b""
            while not app.lost_calls:
                await asyncio.sleep(0.01)
            assert server.port.bodies.has(1000)

    run(leave())
    assert app.lost_calls[0].path == b"/mutate"


@pytest.mark.parametrize(
    "head",
    [
        pytest.param("GET /mutate HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", id="close"),
        pytest.param("GET /mutate HTTP/1.0\r\n\r\n", id="1.0"),
        pytest.param("GET /mutate HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", id="1.0-keep-alive"),
    ],
)
def test_after_the_last_call_nothing_is_read(head: str) -> None:
    """It is answered, the connection ends, and what stands behind it is no call."""
    heard = answers_to(head.encode() + request(BODY))
    assert sentences(heard) == ["200 GET /mutate 0 0"]
    assert b"connection: close" in heard


def test_an_answer_to_head_has_no_body() -> None:
    """And the length that it would have for GET, as which the page is asked."""
    heard = answers_to(b"HEAD /mutate HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b"\r\ncontent-length: 16\r\n" in heard
    assert heard.endswith(b"\r\n\r\n")


def test_a_trailer_changes_nothing() -> None:
    """Not this call, and not the next one."""
    trailed = chunked(BODY)[:-2] + b"Content-Type: a\r\nHost: y\r\nExpect: x\r\n\r\n"
    assert sentences(answers_to(trailed + request(BODY))) == ["200 POST /mutate 300 300"] * 2


@pytest.mark.parametrize("begun", [b"POST ", b"POST /mutate HTTP/1.1\r\nHost: x\r\nX-A: ", b"POST /"], ids=["method", "header", "path"])
def test_a_head_may_have_so_many_bytes(begun: bytes) -> None:
    """Over it there is 431, or 400 where a part of it is too long by itself; and it is counted."""
    cuts: list[str] = []
    heard = answers_to(begun, *[b"y" * 8000] * 5, limits=Limits(head=32 * 2**10), cuts=cuts)
    assert sentences(heard)[0][:3] in {"431", "400"}
    assert cuts in (["head"], ["garbled"])


def test_chunks_that_hold_next_to_nothing_are_rejected() -> None:
    """A body costs about as much to read as it has bytes."""
    cuts: list[str] = []
    extension = chunked(b"x" * 20)[:-5].replace(b"14\r\n", b"14;" + b"y" * 8000 + b"\r\n")
    heard = answers_to(extension[:200], extension[200:], *[b"1;" + b"y" * 8000 + b"\r\nx\r\n"] * 20, cuts=cuts)
    assert sentences(heard) == ["400 send larger chunks"]
    assert cuts == ["garbled"]


def test_a_rejection_reaches_who_is_still_sending() -> None:
    """Ten megabytes after a request that is none: the answer is there when the caller looks."""
    assert sentences(answers_to(b"nonsense\r\n\r\n", *[b"x" * 2**20] * 10))[0].startswith("400 this is not HTTP/1.1: ")


FIRST, SECOND = (f"GET /{number} HTTP/1.1\r\nHost: x\r\n\r\n".encode() for number in (1, 2))


BEGUN = b"GET /2 HTTP"
"""of a call that goes on: its connection makes no room"""


@pytest.mark.parametrize(
    ("third", "sentence_begin"),
    [
        pytest.param(b"nonsense\r\n\r\n", "400 this is not HTTP/1.1", id="garbled"),
        pytest.param(b"GET /3 HTTP/1.1\r\n\r\n", "400 send one Host", id="rejected"),
        pytest.param(request(b"x", length=10**9), "413 POST /mutate", id="giant"),
    ],
)
def test_a_rejection_is_no_answer_to_an_earlier_call(third: bytes, sentence_begin: str) -> None:
    """It comes after the answers to those that came in the same piece, for a caller takes answers in order."""
    heard = sentences(answers_to(FIRST + SECOND + third + FIRST))
    assert heard[:2] == ["200 GET /1 0 0", "200 GET /2 0 0"]
    assert [sentence[: len(sentence_begin)] for sentence in heard[2:]] == [sentence_begin]


def test_a_second_host_is_rejected() -> None:
    """Also where nothing else is odd: two servers could each take another one."""
    assert sentences(answers_to(FIRST.replace(b"Host: x\r\n", b"Host: x\r\nHost: y\r\n"))) == ["400 send one Host"]


def test_calls_in_front_put_off_no_deadline() -> None:
    """What is begun behind two calls in one piece must arrive as soon as any other."""
    cuts: list[str] = []

    async def trickle() -> bytes:
        async with port(Echo(), Limits(request_deadline=1), cuts) as (_, number):
            reader, writer = await asyncio.open_connection("127.0.0.1", number)
            writer.write(FIRST + SECOND + request(b"x", length=100))
            heard = await asyncio.wait_for(reader.read(), PATIENCE)
            writer.close()
            return heard

    assert [sentence[:3] for sentence in sentences(run(trickle()))] == ["200", "200", "408"]
    assert cuts == ["slow"]


def test_a_call_that_is_turned_away_is_told_of() -> None:
    """There was no room for its connection, it came in pieces, and the application counts it as in flight: it hears that it is lost."""
    app = Echo()

    async def crowd() -> bytes:
        async with port(app, Limits(connections=1), []) as (_, number):
            reader, writer = await asyncio.open_connection("127.0.0.1", number)
            writer.write(FIRST + BEGUN)
            await reader.readuntil(b"0 0\n")
            heard = await exchange(number, request(b"x" * 20, length=400), b"x" * 380)
            writer.close()
            return heard

    assert sentences(run(crowd())) == ["503 too many connections"]
    assert [call.size for call in app.lost_calls] == [400]


def test_who_is_turned_away_has_no_longer_for_a_call_in_pieces() -> None:
    """There are few places for those that are only told to come back."""

    async def crowd() -> bytes:
        async with port(Echo(), Limits(connections=1, request_deadline=60), []) as (_, number):
            first, one = await asyncio.open_connection("127.0.0.1", number)
            one.write(FIRST + BEGUN)
            await first.readuntil(b"0 0\n")
            reader, writer = await asyncio.open_connection("127.0.0.1", number)
            writer.write(request(b"x", length=100))
            heard = await asyncio.wait_for(reader.read(), PATIENCE)
            one.close()
            writer.close()
            return heard

    assert sentences(run(crowd())) == ["503 too many connections"]


@pytest.mark.parametrize("behind", [b"", request(b"x", length=100)], ids=["nothing", "half-a-call"])
def test_answers_that_nobody_reads_are_not_piled_up(behind: bytes) -> None:
    """No further call is read, and the connection is cut after a while, whatever else is on its way."""
    cuts: list[str] = []

    class Long(Echo):
        def answer(self, call: Call, later: Later) -> Answer:
            return text_answer(200, "x" * 2**24)

    async def ask_on() -> None:
        async with port(Long(), Limits(unread=1, request_deadline=60), cuts) as (_, number):
            _, writer = await asyncio.open_connection("127.0.0.1", number, limit=1000)
            writer.write(request(BODY) * 50 if not behind else request(BODY) + behind)
            while not cuts:
                await asyncio.sleep(0.01)
            writer.transport.abort()

    run(ask_on())
    assert cuts == ["unread"]


def test_a_caller_that_reads_again_is_answered_on() -> None:
    """All of its calls, in order, none twice."""

    class Long(Echo):
        def answer(self, call: Call, later: Later) -> Answer:
            return text_answer(200, f"{call.size} " + "x" * 2**20)

    async def read_late() -> bytes:
        async with port(Long(), Limits(), []) as (_, number):
            reader, writer = await asyncio.open_connection("127.0.0.1", number, limit=1000)
            writer.write(b"".join(request(b"x" * size) for size in range(20)))
            await asyncio.sleep(0.2)
            heard = b""
            while heard.count(b"HTTP/1.1 200 OK") < 20 or not heard.endswith(b"x\n"):
                heard += await reader.read(2**20)
            writer.close()
            return heard

    assert [sentence.split()[1] for sentence in sentences(run(read_late()))] == [str(size) for size in range(20)]


def test_an_idle_connection_is_ended_and_counted() -> None:
    """One that never asked, and one that did and then fell silent, after the time that they are kept."""
    cuts: list[str] = []

    async def serve() -> None:
        async with port(Echo(), Limits(keep_alive=1), cuts) as (_, number):
            await asyncio.gather(*(asyncio.to_thread(fall_silent, number, asks=asks) for asks in (True, False)))

    run(serve())
    assert cuts == ["idle", "idle"]


def fall_silent(port: int, *, asks: bool) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client:
        if asks:
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_for_the_end(client)
