"""All suggestions for one cluster, each with its effect, and the comment that says why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from policies.scan.finding import Hit, Value
from policies.scan.remedies import Applier
from policies.scan.seen import Seen
from policies.scan.suggestions import accelerators, namespaces, notebooks, runs
from policies.scan.suggestions.effects import effect
from policies.scan.suggestions.suggestion import Code, Effect, Suggestion
from policies.state.updater import Options


class Written(NamedTuple):
    """One suggestion with its effect."""

    suggestion: Suggestion
    effect: Effect


def suggestions(seen: Seen, hits: Sequence[Hit], options: Options, apply: Applier) -> Iterator[Written]:
    """Yield every policy that fits what was seen."""
    for one in (*accelerators.suggest(seen), *runs.suggest(seen, hits), *notebooks.suggest(seen, hits), *namespaces.suggest(seen)):
        yield Written(one, effect(one, seen, hits, options, apply))


_WHY: Mapping[Code, str] = {
    "accelerators": "Every GPU pod tolerates the taints of GPU nodes of its own vendor, and asks for as many devices as it is limited to.",
    "runs": "Training and other runs to an end ({workloads}) are not cut short.",
    "notebooks": "Notebooks of one GPU get a small one: {notebooks} hold a large one, and this cluster has {models}.",
    "namespace": "What namespace {namespace} uses today is its guardrail: {running} pods with {gpus} GPUs, the largest with {largest}.",
}


def comment(written: Written) -> Iterator[str]:
    """Yield the lines of the comment above a policy: why it is there, and what it would do today."""
    suggestion, done = written
    values = {key: ", ".join(map(str, value)) if isinstance(value, tuple) else value for key, value in suggestion.values.items()}
    yield _WHY[suggestion.code].format_map(values)
    yield from (reason.format_map(values) for reason in _REASONS[suggestion.code](suggestion.values))
    yield f"Of the GPU pods that exist it applies to {done.matched}, would change {done.changed} and deny {done.denied}."
    if done.found:
        yield f"Of {done.found} pods of which the scan found what it is for, it would mend {done.mended}."
    yield "In Audit it changes nothing. See it with berth audit --policies FILE, then kubectl apply -f FILE; then mode: Enforce."


def _of_accelerators(values: Mapping[str, Value]) -> Iterator[str]:
    if values["keys"]:
        yield "Nodes here carry the taints {keys}."
    if values["untainted"]:
        yield "{untainted} GPU nodes have no such taint: with this policy in Enforce they can be tainted without a GPU pod that waits."


def _of_runs(values: Mapping[str, Value]) -> Iterator[str]:
    if values["unprotected"]:
        yield "{unprotected} of their pods lack a mark against disruption, or time for a checkpoint."
    if values["spot"]:
        yield "{spot} of their pods are on spot machines for long: runs over 2h, or of unknown length, go to on-demand capacity."
    if values["families"]:
        yield "All of them are on {families}, of more architectures that the cluster has."
    if values["cut"]:
        yield "gracePeriod is {grace}: a NodePool's terminationGracePeriod leaves no more."


def _of_namespace(values: Mapping[str, Value]) -> Iterator[str]:
    if values["families"]:
        yield "All of them are on {families}."
    if values["taints"]:
        yield "Its nodes carry {taints}: pods that forget the toleration wait."


def _nothing(values: Mapping[str, Value]) -> Iterator[str]:
    yield from ()


_REASONS = {"accelerators": _of_accelerators, "runs": _of_runs, "notebooks": _nothing, "namespace": _of_namespace}
