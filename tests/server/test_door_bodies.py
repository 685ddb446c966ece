"""Bodies that mean harm (reliability.md E3, E4, E5): each is a 400, a rejection or a judged review, and the next review is answered.

How much work a body may be: tests/fuzz/test_growth.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.calls.raw_tls import Wire, dialled, post
from tests.support.calls.server_process import LIBRARY, ROOT, Running, serving
from tests.support.counts import PROVE, count

TEXT = (ROOT / "tests" / "reviews" / "pods-create-train-llama.json").read_text()
REVIEW: dict[str, Any] = json.loads(TEXT)
GOOD = TEXT.encode()
WORKLOAD = (ROOT / "tests" / "reviews" / "deployments-create-vllm-server.json").read_text()
SPEC = '"spec":{'
PATHS = ("/mutate", "/validate", "/advise")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with the shipped library, whose affinity rules read most of a pod. Nothing was a mistake of its own at the end."""
    with serving(tmp_path_factory.mktemp("server"), "--policies", LIBRARY, "--platforms", "karpenter-aws") as it:
        yield it
        assert it.events("failed") == []


@pytest.fixture
def wire(server: Running) -> Iterator[Wire]:
    """A connection for the body under test. Afterwards the server lives and judges on another one."""
    with dialled(server) as it:
        yield it
    assert server.process.poll() is None
    with dialled(server) as other:
        assert status(other, GOOD, "/mutate") == 200


def status(wire: Wire, body: bytes, path: str) -> int:
    """Of the answer; of a 200 it is a review's with the right form."""
    wire.send(post(body, path=path))
    reply = wire.reply()
    assert reply is not None, "the connection ended"
    if reply.status == 200:
        assert isinstance(json.loads(reply.body)["response"]["allowed"], bool)
    return reply.status


def reached(body: bytes, wire: Wire) -> set[int]:
    """What the body gets on each path, on one connection that goes on."""
    return {status(wire, body, path) for path in PATHS}


def put(literal: str, *, key: str = "extra") -> bytes:
    """The recorded review with a field more in its pod's spec, as written: what it holds need not be JSON."""
    changed = TEXT.replace(SPEC, f"{SPEC}{json.dumps(key)}:{literal},", 1)
    assert changed != TEXT
    return changed.encode("utf-8", "surrogatepass")


NEVER_JSON = [
    pytest.param(literal, id=literal[:30])
    for literal in (
        *("NaN", "Infinity", "-Infinity", "nan", "+1", "01", "0x10", ".5", "1.", "1e", "--1"),
        *("True", "undefined", "'x'", '"\\x41"', '"\\u12"', '"a\nb"', '"\x00"', "{1: 2}", "[1,]", "/* */ 1", "1 // one"),
    )
]
AS_GO_READS_IT = ["1e400", "-1e400", "1e99999999999", '"\\ud800"', '"\\udc00"', '"\\ud800\\ud800"', '"\\udc00\\ud800"', '"\ud800"']


@pytest.mark.parametrize("literal", NEVER_JSON)
def test_what_json_does_not_have_is_denied(literal: str, wire: Wire) -> None:
    """Wherever it stands, also in a field that nobody reads: what Python's own parser takes is no exception. Advice warns of it."""
    assert_unreadable(put(literal), wire)


def assert_unreadable(body: bytes, wire: Wire) -> None:
    """Its uid is known, so it is answered, for an error status would let it pass at Ignore: BERTH-005, a rejection of a pod."""
    for path in PATHS:
        response = answered(body, wire, path)
        text = response["warnings"][0] if response["allowed"] else response["status"]["message"]
        assert (response["uid"], response["allowed"], text[:9]) == (REVIEW["request"]["uid"], path == "/advise", "BERTH-005")


def answered(body: bytes, wire: Wire, path: str) -> dict[str, Any]:
    """The response in the answer."""
    wire.send(post(body, path=path))
    reply = wire.reply()
    assert reply is not None
    assert reply.status == 200
    response: dict[str, Any] = json.loads(reply.body)["response"]
    return response


@pytest.mark.parametrize("literal", AS_GO_READS_IT)
def test_what_go_reads_in_a_field_that_nobody_reads_hides_nothing(literal: str, wire: Wire) -> None:
    """A number past a double's and half a character, which the API server keeps in managedFields: the pod is judged as without it."""
    for path in ("/mutate", "/validate"):
        assert answered(put(literal), wire, path) == answered(GOOD, wire, path)
    assert status(wire, put(literal), "/advise") == status(wire, GOOD, "/advise") == 400


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_another_encoding_is_400(encoding: str, wire: Wire) -> None:
    """JSON between machines is UTF-8 (RFC 8259, 8.1): no head is found in it, so there is nobody to answer."""
    body = TEXT.replace("train", "trän", 1).encode(encoding)
    assert reached(body, wire) == {400}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-7"])
def test_another_encoding_with_a_head_in_ascii_is_denied(encoding: str, wire: Wire) -> None:
    """Nor is there a byte order mark before it (RFC 8259, 8.1); the uid is found behind it all the same."""
    assert_unreadable(TEXT.replace("train", "trän", 1).encode(encoding), wire)


@pytest.mark.parametrize("literal", ['"\\u0000"', '"\\ud83d\\ude00"', '"\\uffff"', '"\\u2028"', '""', '"\\u001b[31m"', '"\U0010ffff"'])
def test_odd_text_is_text(literal: str, wire: Wire) -> None:
    """NUL, an escape sequence, half a line: in a value and in a key, on the pods' paths it is judged."""
    for body in (put(literal), put("1", key=json.loads(literal) or " ")):
        assert {status(wire, body, path) for path in ("/mutate", "/validate")} == {200}


DIGITS = "9" * 5000
NUMBERS = [DIGITS, f"-{DIGITS}", f"0.{DIGITS}", f"1{'0' * 300}", "1e308", "-0", "-0.0", "1e-400", str(2**63), str(2**64), str(-(2**63) - 1)]
NUMBER_PLACES = [
    '"priority": {}, "x":',
    '"terminationGracePeriodSeconds": {}, "x":',
    '"activeDeadlineSeconds": {}, "x":',
    '"tolerations": [{{"key": "a", "tolerationSeconds": {}}}], "x":',
]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number[:12])
def test_a_huge_number_is_judged_or_400(number: str, wire: Wire) -> None:
    """Of five thousand digits or past 64 bits, in fields that are read and in one that is not."""
    for place in NUMBER_PLACES:
        changed = TEXT.replace(SPEC, SPEC + place.format(number) + "0,", 1)
        assert reached(changed.encode(), wire) <= {200, 400}
    assert reached(put(number), wire) <= {200, 400}


QUANTITIES: list[Any] = [
    *("1" + "0" * 30, "0.1n", "-1", "1e999999999", "1E+", "1e-999999999", "1E1000000", "", " ", "1 ", " 1", "+1", "1e" + "9" * 5000),
    *("0x10", "1_000", "1,000", "NaN", "Infinity", "-0", "1e", "1Ei", "1ki", "1kI", str(2**63), "1" * 5000, "0." + "0" * 5000 + "1"),
    *("\u0661", "\uff11", "1\u0000", "\u22121", "nvidia", 1e30, 1.5, -1, 2**63, 10**30, True, None, [], {}, [1], {"a": 1}),
]


@pytest.mark.parametrize("quantity", QUANTITIES, ids=lambda quantity: repr(quantity)[:24])
def test_an_odd_quantity_is_judged_or_400(quantity: Any, wire: Wire) -> None:
    """An exponent bomb costs no time: on each side of each resource, in limits, requests and overhead."""
    for resource in ("nvidia.com/gpu", "cpu", "nvidia.com/mig-1g.5gb"):
        for side in ("limits", "requests"):
            review = json.loads(TEXT)
            review["request"]["object"]["spec"]["containers"][0]["resources"].setdefault(side, {})[resource] = quantity
            assert reached(json.dumps(review).encode(), wire) <= {200, 400}
    assert reached(put(json.dumps({"cpu": quantity}), key="overhead"), wire) <= {200, 400}


DEPTHS = [10, 100, 254, 255, 256, 1023, 1024, 1025, 10_000, 100_000, *([1_000_000] if PROVE else [])]
NESTS = [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")]


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize(("opened", "closed"), NESTS, ids=["lists", "maps", "both"])
def test_nesting_is_judged_or_400(opened: str, closed: str, depth: int, wire: Wire) -> None:
    """In a field, as a field that is read, as the whole body, and never closed."""
    pairs = depth // len(closed)
    nest = opened * pairs + "1" + closed * pairs
    for body in (put(nest), put(nest, key="nodeSelector"), put(nest, key="containers"), put(nest, key="tolerations")):
        assert reached(body, wire) <= {200, 400}
    for text in (nest, opened * pairs, closed * pairs):
        assert reached(text.encode(), wire) == {400}


@pytest.mark.parametrize("key", ["spec", "request", "uid", "object", "containers", "limits"])
@pytest.mark.parametrize("other", ["null", "[]", "{}", '"x"', "7"])
def test_a_key_that_stands_twice_is_read_as_go_reads_it(key: str, other: str, wire: Wire) -> None:
    """The last one wins, so what stands first decides nothing: the answer is that to the review without it."""
    twice = TEXT.replace(f'"{key}":', f'"{key}": {other}, "{key}":').encode()
    assert twice != GOOD
    for path in ("/mutate", "/validate"):
        wire.send(post(twice, path=path) + post(GOOD, path=path))
        first, second = wire.reply(), wire.reply()
        assert first is not None
        assert second is not None
        assert (first.status, first.body) == (200, second.body)


WRONG: tuple[Any, ...] = ("x", -1.5, [], {}, True, None, [[]], {"": None})


def test_a_wrong_type_anywhere_in_a_workload_is_an_answer(wire: Wire) -> None:
    """Each value of a recorded Deployment in turn becomes a text, a number, a list ...: advised or 400. (Pods: test_wire.py;
    ``make test`` has some of these at each place.)"""
    review = json.loads(WORKLOAD)
    statuses = set()
    for number, (holder, key) in enumerate(list(places(review))):
        before = holder[key]
        for value in WRONG if PROVE else WRONG[number % 3 :: 3]:
            holder[key] = value
            statuses.add(status(wire, json.dumps(review).encode(), "/advise"))
        holder[key] = before
    assert statuses == {200, 400}


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each map or list with each of its keys, but what is in managedFields, which nobody reads."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items):
        if key != "managedFields":
            yield value, key
            yield from places(inner)


def test_an_endless_key_or_text_is_judged(tmp_path: Path, wire: Wire) -> None:
    """Six megabytes (two in ``make test``) in one key, one name, one value."""
    long = "x" * (count(2, 6) * 2**20)
    for body in (put("1", key=long), put(f'"{long}"', key="schedulerName"), put(json.dumps({long: long[:9]}), key="nodeSelector")):
        assert reached(body, wire) <= {200, 400}
