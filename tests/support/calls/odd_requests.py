"""Requests that no honest caller makes, byte for byte, by what is odd about them. ``NEXT`` is the good one that is sent behind each."""

from __future__ import annotations

from tests.support.calls.raw_tls import chunk, head, post
from tests.support.calls.server_process import ROOT

REVIEW = (ROOT / "tests" / "reviews" / "pods-create-train-llama.json").read_bytes()
NEXT = post(REVIEW)
SIZE = len(REVIEW)
CHUNKED = chunk(REVIEW[:1000]) + chunk(REVIEW[1000:]) + chunk(b"")


def line(text: str) -> bytes:
    """A POST with this request line."""
    return text.encode("latin-1") + NEXT[NEXT.index(b"\r\n") :]


def more(lines: bytes) -> bytes:
    """A good POST with these lines among its headers."""
    return head(SIZE).replace(b"\r\n\r\n", b"\r\n" + lines + b"\r\n\r\n") + REVIEW


def lengths(*values: str, body: bytes = REVIEW) -> bytes:
    """A POST that says these lengths."""
    headers = "".join(f"Content-Length: {value}\r\n" for value in values).encode("latin-1")
    return head(None).replace(b"\r\n\r\n", b"\r\n" + headers + b"\r\n") + body


def coded(*values: str, body: bytes = CHUNKED) -> bytes:
    """A POST with these transfer codings."""
    headers = "".join(f"Transfer-Encoding: {value}\r\n" for value in values).encode("latin-1")
    return head(None).replace(b"\r\n\r\n", b"\r\n" + headers + b"\r\n") + body


TORN = {
    "length-and-chunked": head(SIZE, Transfer_Encoding="chunked") + CHUNKED,
    "chunked-and-length": head(None, Transfer_Encoding="chunked", Content_Length=str(SIZE)) + CHUNKED,
    "length-0-and-chunked": head(0, Transfer_Encoding="chunked") + CHUNKED,
    "two-lengths": lengths(str(SIZE), str(SIZE + 1)),
    "two-lengths-the-other-way": lengths(str(SIZE + 1), str(SIZE)),
    "a-list-of-lengths": lengths(f"{SIZE}, {SIZE + 1}"),
    "length-is-negative": lengths(f"-{SIZE}"),
    "length-has-a-plus": lengths(f"+{SIZE}"),
    "length-is-hexadecimal": lengths(hex(SIZE)),
    "length-has-an-exponent": lengths("5e3"),
    "length-is-a-text": lengths("many"),
    "length-has-a-space-in-it": lengths("5 000"),
    "length-past-64-bits": lengths("18446744073709551621"),
    "length-of-5000-digits": lengths("9" * 5000),
    "length-too-short": post(REVIEW).replace(f"Length: {SIZE}".encode(), f"Length: {SIZE - 5}".encode()),
    "chunked-not-last": coded("chunked, identity"),
    "chunked-twice": coded("chunked, chunked"),
    "another-coding": coded("cow"),
    "coding-after-a-tab": coded("\x0bchunked"),
    "chunk-size-is-no-number": coded("chunked", body=b"zz\r\n" + CHUNKED),
    "chunk-size-is-negative": coded("chunked", body=b"-5\r\n" + CHUNKED),
    "chunk-size-has-a-prefix": coded("chunked", body=b"0x5\r\n" + CHUNKED),
    "chunk-size-past-64-bits": coded("chunked", body=b"f" * 17 + b"\r\n" + CHUNKED),
    "chunk-is-longer-than-it-says": coded("chunked", body=b"5\r\n0123456789\r\n" + CHUNKED),
    "http-2-preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
    "http-9.9": line("POST /mutate HTTP/9.9"),
    "no-http": b"hello\r\n\r\n",
    "tls-in-tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 64,
    "method-in-lower-case": line("post /mutate HTTP/1.1"),
    "unknown-method": line("BREW /mutate HTTP/1.1"),
    "method-with-nul": line("PO\x00ST /mutate HTTP/1.1"),
    "path-with-a-space": line("POST /mu tate HTTP/1.1"),
    "path-with-nul": line("POST /mutate\x00 HTTP/1.1"),
    "header-without-colon": more(b"Nothing"),
    "header-with-space-before-colon": more(b"X-A : 1"),
    "header-without-name": more(b": 1"),
    "header-with-nul": more(b"X-A: 1\x002"),
    "header-with-bare-return": more(b"X-A: 1\rX-B: 2"),
    "length-hidden-by-a-space": lengths(str(SIZE)).replace(b"Content-Length:", b"Content-Length :"),
}
"""What comes first in each is a request that could be read in two ways, or in none."""

ODD: dict[str, tuple[bytes, set[int]]] = {
    "get": (b"GET /mutate HTTP/1.1\r\nHost: x\r\n\r\n", {405}),
    "put": (line("PUT /mutate HTTP/1.1"), {405}),
    "patch": (line("PATCH /validate HTTP/1.1"), {405}),
    "delete": (line("DELETE /mutate HTTP/1.1"), {405}),
    "options": (b"OPTIONS /mutate HTTP/1.1\r\nHost: x\r\n\r\n", {405}),
    "options-of-all": (b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", {404, 405}),
    "trace": (b"TRACE /mutate HTTP/1.1\r\nHost: x\r\n\r\n", {405}),
    "no-body": (b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\r\n", {400, 411}),
    "empty-lines-first": (b"\r\n\r\n" + NEXT, {200}),
    "two-slashes": (post(REVIEW, path="//mutate"), {404}),
    "slash-at-the-end": (post(REVIEW, path="/mutate/"), {404}),
    "both": (post(REVIEW, path="//mutate/"), {404}),
    "dots": (post(REVIEW, path="/x/../mutate"), {404}),
    "encoded": (post(REVIEW, path="/%6dutate"), {200, 404}),
    "encoded-nul": (post(REVIEW, path="/mutate%00"), {404}),
    "semicolon": (post(REVIEW, path="/mutate;a=b"), {404}),
    "query": (post(REVIEW, path="/mutate?timeout=10s"), {200}),
    "empty-query": (post(REVIEW, path="/mutate?"), {200}),
    "odd-query": (post(REVIEW, path="/mutate?%00=%zz&&==?/../?"), {200}),
    "long-path": (post(REVIEW, path="/" + "x" * 30_000), {404}),
    "absolute": (post(REVIEW, path="https://berth.berth-system.svc/mutate"), {200, 404}),
    "absolute-of-another": (post(REVIEW, path="http://169.254.169.254/mutate"), {200, 404}),
    "chunked": (coded("chunked"), {200}),
    "chunked-capitals": (coded("Chunked"), {200}),
    "chunked-with-extension": (coded("chunked", body=CHUNKED.replace(b"\r\n", b";a=b;c\r\n", 1)), {200}),
    "chunked-with-trailer": (coded("chunked", body=CHUNKED[:-2] + b"X-Trailer: 1\r\n\r\n"), {200}),
    "upgrade-to-h2c": (
        more(b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ"),
        {200, 400},
    ),
    "upgrade-of-a-post": (more(b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13"), {200, 400}),
    "upgrade": (b"GET /mutate HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", {400, 405}),
    "unknown-expectation": (more(b"Expect: a-miracle"), {200, 417}),
    "a-byte-above-127": (more(b"X-A: \xe9\xff"), {200}),
    "type-with-charset": (post(REVIEW).replace(b"application/json", b"Application/JSON; charset=utf-8"), {200}),
    "identity": (more(b"Content-Encoding: identity"), {200}),
    "2000-headers": (more(b"\r\n".join(b"X-%d: 1" % number for number in range(2000))), {200}),
    "wants-no-json": (more(b"Accept: text/html;q=1"), {200}),
    "wants-gzip": (more(b"Accept-Encoding: gzip, br"), {200}),
    "range": (more(b"Range: bytes=0-1"), {200}),
    "forwarded": (
        more(b"X-Forwarded-For: 10.0.0.1\r\nX-HTTP-Method-Override: PUT\r\nX-Original-URL: /x"),
        {200},
    ),
}
"""Each with the statuses that are right for it."""

EITHER_WAY = {
    "trailer-that-lies": coded("chunked", body=CHUNKED[:-2] + b"Content-Length: 99999\r\n\r\n"),
    "two-equal-lengths": lengths(str(SIZE), str(SIZE)),
    "a-list-of-equal-lengths": lengths(f"{SIZE}, {SIZE}"),
    "length-with-zeros": lengths(f"000{SIZE}"),
    "no-host": post(REVIEW).replace(b"Host: berth.berth-system.svc\r\n", b""),
    "two-hosts": more(b"Host: other"),
    "folded-header": more(b"X-A: 1\r\n 2"),
    "bare-newlines": post(REVIEW).partition(b"{")[0].replace(b"\r\n", b"\n") + REVIEW,
    "gzip-and-chunked": coded("gzip, chunked"),
    "identity-coding": coded("identity", body=REVIEW),
    "http-1.2": line("POST /mutate HTTP/1.2"),
    "path-of-bytes": post(REVIEW, path="/mut\xe4te"),
    "fragment": post(REVIEW, path="/mutate#x"),
    "connect": b"CONNECT berth.berth-system.svc:443 HTTP/1.1\r\nHost: x\r\n\r\n",
    "two-types": more(b"Content-Type: text/plain"),
    "asterisk": post(REVIEW, path="*"),
}
"""Of these the RFCs leave more than one reading."""

ONE_AND_NO_MORE = {
    "chunked-in-http-1.0": coded("chunked").replace(b"HTTP/1.1", b"HTTP/1.0"),
    "http-2.0": line("POST /mutate HTTP/2.0"),
    "http-0.9": b"GET /mutate\r\n\r\n",
    "http-1.0": line("POST /mutate HTTP/1.0"),
    "no-more-wanted": more(b"Connection: Close"),
}
"""After each the connection is to end."""
