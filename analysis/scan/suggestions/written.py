"""All suggestions for one cluster, each with its effect, and the comment that says why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from analysis.scan.finding import Hit, Value
from analysis.scan.seen import ScannedCluster
from analysis.scan.suggestions import accelerators, namespaces, notebooks, runs
from analysis.scan.suggestions.effects import effect
from analysis.scan.suggestions.suggestion import Code, Suggestion, SuggestionEffect
from policies.state.updater import Options


class WrittenSuggestion(NamedTuple):
    """One suggestion with its effect."""

    suggestion: Suggestion
    effect: SuggestionEffect


def suggestions(seen: ScannedCluster, hits: Sequence[Hit], options: Options) -> Iterator[WrittenSuggestion]:
    """Yield every policy that fits what was seen."""
    for one in (*accelerators.suggest(seen), *runs.suggest(seen, hits), *notebooks.suggest(seen, hits), *namespaces.suggest(seen)):
        yield WrittenSuggestion(one, effect(one, seen, hits, options))


_WHY: Mapping[Code, str] = {
    "accelerators": "GPU pods tolerate the taints of GPU nodes of their vendor, and their device requests equal their limits.",
    "runs": "Training and other finite runs ({workloads}) are protected from disruption.",
    "notebooks": "Notebooks with one GPU get a small GPU. {notebooks} use a large GPU, and this cluster has {models}.",
    "namespace": "Guardrail of namespace {namespace}, from what it uses today: {running} pods, {gpus} GPUs, the largest with {largest}.",
}


def comment(written: WrittenSuggestion) -> Iterator[str]:
    """Yield the lines of the comment above a policy: why it is there, and what it would do today."""
    suggestion, done = written
    values = {key: ", ".join(map(str, value)) if isinstance(value, tuple) else value for key, value in suggestion.values.items()}
    yield _WHY[suggestion.code].format_map(values)
    yield from (reason.format_map(values) for reason in _REASONS[suggestion.code](suggestion.values))
    yield f"Of the existing GPU pods, this policy matches {done.matched}, would change {done.changed} and deny {done.denied}."
    if done.found:
        yield f"It would fix {done.fixed} of the {done.found} pods with the problem that it is for."
    yield "In Audit it changes nothing. Preview: berth audit --policies FILE. Apply: kubectl apply -f FILE. Then set mode: Enforce."


def _of_accelerators(values: Mapping[str, Value]) -> Iterator[str]:
    if values["keys"]:
        yield "GPU nodes here have the taints {keys}."
    if values["untainted"]:
        yield "{untainted} GPU nodes have no taint. With this policy in Enforce you can taint them, and GPU pods tolerate it."


def _of_runs(values: Mapping[str, Value]) -> Iterator[str]:
    if values["unprotected"]:
        yield "{unprotected} of their pods have no protection against disruption, or no time for a checkpoint."
    if values["spot"]:
        yield "{spot} of their pods are long runs on spot nodes. Runs over 2h, or of unknown length, go to on-demand capacity."
    if values["families"]:
        yield "All of them run on {families}, although the cluster has more architectures."
    if values["cut"]:
        yield "gracePeriod is {grace}, the most that a NodePool's terminationGracePeriod allows."


def _of_namespace(values: Mapping[str, Value]) -> Iterator[str]:
    if values["families"]:
        yield "All of them run on {families}."
    if values["taints"]:
        yield "Its nodes have the taints {taints}. Pods without the toleration stay pending."


def _nothing(values: Mapping[str, Value]) -> Iterator[str]:
    yield from ()


_REASONS = {"accelerators": _of_accelerators, "runs": _of_runs, "notebooks": _nothing, "namespace": _of_namespace}
