"""What a status says in words: lists that end, what a policy does in one line, and where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from policies import duration
from policies.compiled import Compiled, CompiledTemplate
from policies.policy import Allow, Bounds, Default, LabelSelector, LongRuns, Match, Require, TolerationPattern
from policies.wording import cut

MOST_MESSAGE = 2_000
"""characters of a condition's message: the API allows 32,768, nobody reads them, and ten thousand objects are held by every watcher"""
MOST_LINE = 120
"""characters of ``what`` and ``where``, which stand side by side in columns of `kubectl get gpu`; the whole is in the spec"""
MOST_LISTED = 4
"""items of a list in such a line"""
MOST_NAMED = 5
"""others that are named"""
_TAIL = 24
"""characters kept for "; and 1000000 more" """


def sentences(parts: Sequence[str], end: str = "", most: int = MOST_MESSAGE) -> str:
    """``a; b; and 3 more. END``, never longer than ``most``: parts are left out whole, and only the first is ever cut."""
    room = most - len(end) - _TAIL
    shown: list[str] = []
    for part in parts:
        room -= len(part) + 2
        if room < 0 and shown:
            break
        shown.append(cut(part, most - len(end) - _TAIL))
    rest = len(parts) - len(shown)
    text = "; ".join([*shown, *([f"and {rest} more"] if rest else [])])
    return f"{text}{'' if text.endswith(('?', '.')) else '.'} {end}" if text and end else text or end


def named(names: Iterable[str], count: int) -> str:
    """``a, b and c``, or with ``count`` above five ``a, b, c, d, e and 7 more``. ``names``: at least the first five."""
    shown = [name for name, _ in zip(names, range(MOST_NAMED), strict=False)]
    if count > len(shown):
        return f"{', '.join(shown)} and {count - len(shown)} more"
    return " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))


# --- what a policy does ------------------------------------------------------------------------------------------------


def what(compiled: Compiled) -> str:
    """``require families in [hopper], gpusPerPod max 8; default gracePeriod 30m``."""
    policy = compiled.policy
    parts = (
        ("require", [*(c.text for c in compiled.require), *_required(policy.require)]),
        ("default", [*_defaults(compiled, policy.default)]),
        ("allow", [*_allowed(policy.allow)]),
    )
    said = "; ".join(f"{verb} {', '.join(texts)}" for verb, texts in parts if texts) or "nothing"
    capped = "" if compiled.mode == policy.mode else f" (as {compiled.mode}: --max-mode)"
    return cut(said, MOST_LINE - len(capped)) + capped


def what_template(compiled: CompiledTemplate) -> str:
    """``families in [ampere], capacity [on-demand]; labels karpenter.sh/nodepool=gpu-a100; taints pool=a100:NoSchedule``."""
    template = compiled.template
    parts = (
        ", ".join(c.text for c in compiled.constraints) or "any GPU",
        _after("labels", ", ".join(f"{key}={value}" for key, value in template.labels)),
        _after("taints", ", ".join(f"{t.key}={t.value}:{t.effect}" for t in template.taints)),
    )
    return cut("; ".join(filter(None, parts)), MOST_LINE)


def _after(word: str, text: str) -> str:
    return f"{word} {text}" if text else ""


def _required(require: Require) -> Iterator[str]:
    if require.long_runs is not None:
        yield _long(require.long_runs)
    if require.gpus_per_pod is not None:
        limit = require.gpus_per_pod
        yield " ".join(
            [
                "gpusPerPod",
                *([f"max {limit.max}"] if limit.max is not None else []),
                *([f"of {_list(limit.one_of)}"] if limit.one_of else []),
            ]
        )
    if require.requests_equal_limits:
        yield f"requestsEqualLimits {_list(require.requests_equal_limits)}"
    bounds = (("gracePeriod min", require.grace_min), ("gracePeriod max", require.grace_max), ("protection max", require.protection_max))
    yield from (f"{name} {duration.text(seconds)}" for name, seconds in bounds if seconds is not None)
    if require.forbid_tolerations:
        yield f"forbid tolerations {_list([toleration(p) for p in require.forbid_tolerations])}"


def _defaults(compiled: Compiled, default: Default) -> Iterator[str]:
    if default.accelerator_taints:
        yield "acceleratorTaints"
    if default.node_template is not None:
        yield f"nodeTemplate {default.node_template}"
    if default.mig is not None:
        yield f"mig {slice_size(default)}"
    yield from (c.text for c in (*compiled.machine, compiled.capacity) if c is not None)
    if default.long_runs is not None:
        yield _long(default.long_runs)
    if default.grace is not None:
        yield f"gracePeriod {duration.text(default.grace)}"
    if default.protect_for is not None:
        yield f"protectFor {long_time(default.protect_for)}"
    if default.tolerate:
        yield f"tolerate {_list([toleration(p) for p in default.tolerate])}"
    if default.repair:
        yield f"repair {_list(default.repair)}"


def _allowed(allow: Allow) -> Iterator[str]:
    if allow.node_templates:
        yield f"nodeTemplates {_list(allow.node_templates)}"
    if allow.tolerations:
        yield f"tolerations {_list([toleration(p) for p in allow.tolerations])}"


def slice_size(default: Default) -> str:
    """``slice 10gb``."""
    assert default.mig is not None
    return f"slice {default.mig.slice_gb}gb" if default.mig.slice_gb is not None else f"usableMemory {default.mig.usable_mib}Mi"


def long_time(value: int | str) -> str:
    """``12h``, or ``Always``."""
    return value if isinstance(value, str) else duration.text(value)


def toleration(pattern: TolerationPattern) -> str:
    """``team=research:NoSchedule``, as kubectl writes taints."""
    value = "" if pattern.value is None else f"={pattern.value}"
    return f"{pattern.key}{value}{'' if pattern.effect is None else f':{pattern.effect}'}"


def _long(long_runs: LongRuns) -> str:
    return f"capacity {_list(long_runs.capacity)} for runs over {duration.text(long_runs.over)}"


def _list(values: Iterable[object]) -> str:
    return f"[{_few(values)}]"


def _few(values: Iterable[object]) -> str:
    """``a, b, c, d``, or ``a, b, c and 7 more``."""
    texts = [str(value) for value in values]
    if len(texts) <= MOST_LISTED:
        return ", ".join(texts)
    return f"{', '.join(texts[: MOST_LISTED - 1])} and {len(texts) - MOST_LISTED + 1} more"


# --- where it does it --------------------------------------------------------------------------------------------------


def where(compiled: Compiled, picked: int) -> str:
    """``all namespaces; pods of Job that ask for at least 4 GPUs``. ``picked``: how many namespaces the selector picks now."""
    policy = compiled.policy
    selector = policy.match.namespace_selector
    if policy.namespace is not None:
        place = f"namespace {policy.namespace}"
    elif selector is None or selector == LabelSelector():
        place = "all namespaces"
    else:
        place = f"{picked} {'namespace' if picked == 1 else 'namespaces'} with {cut(_selector(selector), MOST_LINE // 2)}"
    pods = " ".join(_pods(policy.match))
    return cut(f"{place}; pods {pods}" if pods else place, MOST_LINE)


def _pods(match: Match) -> Iterator[str]:
    if match.workloads:
        yield f"of {_few(match.workloads)}"
    if match.pod_selector is not None and match.pod_selector != LabelSelector():
        yield f"with {_selector(match.pod_selector)}"
    if match.gpus is not None:
        yield f"that ask for {_gpus(match.gpus)}"


def _gpus(bounds: Bounds) -> str:
    if bounds.min == bounds.max:
        return f"{bounds.min} GPUs" if bounds.min != 1 else "1 GPU"
    parts = [f"{word} {value}" for word, value in (("at least", bounds.min), ("at most", bounds.max)) if value is not None]
    return f"{' and '.join(parts)} GPUs"


def _selector(selector: LabelSelector) -> str:
    labels = [f"{key}={value}" for key, value in selector.match_labels]
    return ", ".join([*labels, *(f"{e.key} {e.operator}{f' {_list(e.values)}' if e.values else ''}" for e in selector.match_expressions)])
