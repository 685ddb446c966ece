"""The largest that is honest (reliability.md E6): pods and updates as large as the API server lets through, many at once."""

from __future__ import annotations

import copy
import fcntl
import json
import sys
import termios
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from server.limits import Limits
from tests.support.calls.process_usage import MIB, growth
from tests.support.calls.raw_tls import Wire, dialled, post
from tests.support.calls.server_process import LIBRARY, ROOT, Running, serving, until
from tests.support.calls.webhook_client import NAMES, calling
from tests.support.counts import count
from tests.testcluster.calls import PATIENCE

REVIEW: dict[str, Any] = json.loads((ROOT / "tests" / "reviews" / "pods-create-train-llama.json").read_text())
UPDATE: dict[str, Any] = json.loads((ROOT / "tests" / "reviews" / "pods-update-amd-bench.json").read_text())


def pod_of_3_mebibytes() -> dict[str, Any]:
    """The most that a client may send the API server."""
    return with_env(REVIEW, [{"name": "E", "value": "x" * (3 * MIB - 10_000)}])


def update_of_6_mebibytes() -> dict[str, Any]:
    """It holds the pod twice."""
    review = copy.deepcopy(UPDATE)
    for field in ("object", "oldObject"):
        review["request"][field]["metadata"].setdefault("annotations", {})["large"] = "x" * int(3.2 * MIB)
    return review


def ten_thousand_variables() -> dict[str, Any]:
    return with_env(REVIEW, [{"name": f"VARIABLE_{number}", "value": f"value-{number}"} for number in range(10_000)])


def a_thousand_containers() -> dict[str, Any]:
    """Each asks for a GPU, so each is judged."""
    review = copy.deepcopy(REVIEW)
    spec = review["request"]["object"]["spec"]
    spec["containers"] = [{**spec["containers"][0], "name": f"c-{number}"} for number in range(1000)]
    return review


def with_env(review: dict[str, Any], env: list[dict[str, str]]) -> dict[str, Any]:
    copied = copy.deepcopy(review)
    copied["request"]["object"]["spec"]["containers"][0]["env"] = env
    return copied


LARGE = [pod_of_3_mebibytes, update_of_6_mebibytes, ten_thousand_variables, a_thousand_containers]
AT_ONCE = count(3, 100)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with the shipped library, that waits for whoever is slow on a busy machine."""
    options = ["--policies", LIBRARY, "--platforms", "karpenter-aws", "--request-deadline", "60", "--shed-after", "30000"]
    with serving(tmp_path_factory.mktemp("server"), *options) as it:
        yield it
        assert it.events("failed") == []


@pytest.mark.parametrize("large", LARGE)
def test_the_largest_is_judged_many_at_once(
    large: Callable[[], dict[str, Any]], server: Running, record_property: Callable[[str, object], None]
) -> None:
    """Each gets its answer, if not at the first try; what they hold together is bounded."""
    data = post(json.dumps(large()).encode())
    assert len(data) < Limits().body
    tries: list[int] = []

    def all_at_once() -> None:
        together([lambda: tries.append(tries_until_judged(server, data))] * AT_ONCE)

    grown = growth(server, all_at_once)
    record_property("tries", sum(tries))
    record_property("peak above what it held, MiB", grown / MIB)
    assert len(tries) == AT_ONCE
    assert grown < Limits().body_memory * 1.25 + 64 * MIB


def tries_until_judged(server: Running, data: bytes) -> int:
    """As kube-apiserver does: after a 503 with Retry-After, again, on another connection."""
    for number in range(1, 60):
        with dialled(server) as wire:
            assert wire.send(data), "the answer came before its end, and took the connection with it"
            reply = wire.reply()
        assert reply is not None
        if reply.status == 200:
            assert isinstance(json.loads(reply.body)["response"]["allowed"], bool)
            return number
        assert (reply.status, reply.headers["retry-after"], reply.closes) == (503, "1", True)
        time.sleep(1)
    raise AssertionError("it never had room")


def together(acts: Iterable[Callable[[], object]]) -> None:
    """Each in a thread of its own. Raises what the first of them raised."""
    with ThreadPoolExecutor(1000) as pool:
        for done in [pool.submit(act) for act in acts]:
            done.result()


def test_a_burst_far_over_capacity_is_answered_or_told_to_come_back(tmp_path: Path) -> None:
    """Each of many large pods gets 200, or 503 with Retry-After on a connection that closes; after it all is as before."""
    data = post(json.dumps(pod_of_3_mebibytes()).encode())
    with serving(tmp_path, "--policies", LIBRARY, "--body-memory", str(64 * MIB), "--shed-after", "100") as server:
        replies: list[tuple[int, str | None, bool]] = []
        number = count(40, 200)
        begun = Barrier(number, timeout=PATIENCE)

        def one() -> None:
            with dialled(server) as wire:
                wire.send(data[:-1000])
                until(lambda: not on_its_way(wire), "a server that reads")
                begun.wait()
                assert wire.send(data[-1000:]), "the answer came before its end, and took the connection with it"
                reply = wire.reply()
            assert reply is not None
            replies.append((reply.status, reply.headers.get("retry-after"), reply.closes))

        together([one] * number)
        assert set(replies) <= {(200, None, False), (503, "1", True)}
        assert (503, "1", True) in replies, "it was no burst"
        until(lambda: server.post("/mutate", json.dumps(REVIEW).encode()).status == 200, "all to be as before")
        assert server.events("failed") == []


def on_its_way(wire: Wire) -> int:
    """Bytes that this side's kernel still holds."""
    return int.from_bytes(fcntl.ioctl(wire.socket, termios.TIOCOUTQ, bytes(4)), sys.byteorder)


def test_callers_over_capacity_are_served_by_another_replica(tmp_path: Path) -> None:
    """What a small one sheds, kube-apiserver's client sends again, and the larger one beside it answers: nobody's pod is lost."""
    review = tmp_path / "review.json"
    review.write_text(json.dumps(pod_of_3_mebibytes()))
    (tmp_path / "shared").mkdir()
    small, large = tmp_path / "small", tmp_path / "large"
    for folder in (small, large):
        folder.mkdir()
        (folder / "tls").symlink_to(tmp_path / "shared")
    with serving(small, *NAMES, "--body-memory", str(64 * MIB), "--shed-after", "100") as little, serving(large, *NAMES) as big:
        load = ["-callers", str(count(16, 100)), "-calls", "2", "-timeout", "600s"]
        with calling([little, big], *load, review=review) as callers:
            tally = callers.wait()
    assert (tally.failed, dict(tally.errors)) == (0, {}), tally
