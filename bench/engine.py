"""What a decision costs beside what cannot be saved: reading the review's JSON and writing the answer.

    python -m bench.engine [--policies PATH ...]

One process, no network. Prints the median of several rounds; compare ratios, not microseconds of another machine.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import orjson

from policies.engine import evaluate
from policies.snapshot import Snapshot
from webhook import review
from webhook.sources import Sources, SourcesError, load

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "tests" / "reviews" / "pods-create-train-llama.json"
ROUNDS, CALLS = 15, 300


def main() -> int:
    """Measure and print; 2 when the policies cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m bench.engine", description="The engine's time beside decoding and encoding.")
    parser.add_argument("--policies", nargs="+", default=[str(ROOT / "policies" / "library")], metavar="PATH")
    try:
        snapshot = load(Sources(policies=tuple(parser.parse_args().policies), platforms=("karpenter-aws",))).snapshot
    except SourcesError as error:
        print(error, file=sys.stderr)
        return 2
    body = SAMPLE.read_bytes()
    wire, whole = microseconds(lambda: echo(body)), microseconds(lambda: judge(body, snapshot))
    print(f"{len(body)} bytes, {len(snapshot.policies)} policies; median of {ROUNDS} rounds of {CALLS}")
    print(f"decode + encode     {wire:8.1f} us")
    print(f"whole decision      {whole:8.1f} us   {whole / wire:.1f} times")
    return 0


def echo(body: bytes) -> bytes:
    """What every webhook must do: decode, and encode an answer."""
    uid = orjson.loads(body)["request"]["uid"]
    return orjson.dumps({"apiVersion": review.API_VERSION, "kind": review.KIND, "response": {"uid": uid, "allowed": True}})


def judge(body: bytes, snapshot: Snapshot) -> bytes:
    """What ours does between the bytes."""
    asked = review.parse(body)
    verdict = evaluate(asked.request("mutate"), snapshot.facts_for(asked.namespace))
    return orjson.dumps(review.answer(asked, verdict))


def microseconds(call: Callable[[], object]) -> float:
    """Median time of one call."""
    call()
    rounds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        rounds.append((time.perf_counter() - start) / CALLS * 1e6)
    return statistics.median(rounds)


if __name__ == "__main__":
    sys.exit(main())
