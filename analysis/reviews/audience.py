"""The audience of a remark: the author, in a warning, or only the platform team, in the log, the metrics and
``berth try``.

The audience of a code is a column of its row (``policies.messages``). An author who requests by annotation
the same as a policy's default is told what came of it: the annotation takes precedence over every default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kube.pod import ANNOTATIONS, mapping_at
from policies.messages import TABLE
from policies.verdict import AuditOutcome, Remark, Verdict, Violation


def warned(remarks: Sequence[Remark], violations: Sequence[Violation], pod: Mapping[str, Any]) -> Iterator[Remark]:
    """Yield the remarks about ``pod`` that its author should read, without those about a value that it is
    denied for."""
    denied = {violation.path for violation in violations if TABLE[violation.code].of_value}
    for remark in remarks:
        if _for_author(remark, pod) and not (remark.path and remark.path in denied):
            yield remark


def of_platform(remarks: Sequence[Remark], pod: Mapping[str, Any]) -> Iterator[Remark]:
    """Return the remarks about ``pod`` that only the platform team can act upon, not its author."""
    return (remark for remark in remarks if not _for_author(remark, pod))


def _for_author(remark: Remark, pod: Mapping[str, Any]) -> bool:
    """Return whether the remark is for the author.

    A remark that names policies still is where the author's annotation requests it: it names those that
    granted or matched.
    """
    if TABLE[remark.code].audience == "author" or not remark.policies:
        return True
    return remark.path[:2] == ANNOTATIONS and _annotations(pod).get(str(remark.path[2])) is not None


def _annotations(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping_at(mapping_at(pod, "metadata", ()), "annotations", ("metadata",))


def for_author(verdict: Verdict, value: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the code and the text of the warnings for whoever makes an object: the remarks meant for authors, and what policies in Warn
    would deny."""
    yield from ((remark.code, str(remark)) for remark in warned(verdict.remarks, verdict.violations, value))
    for outcome in (w for w in verdict.audit_outcomes if w.mode == "Warn"):
        yield from ((v.code, f"{v.code} ({describe_outcome(outcome)}): {v.fact}; {v.fix}") for v in outcome.violations)


def describe_outcome(outcome: AuditOutcome) -> str:
    """Return the words for what a policy in Warn would do with the object."""
    return f"would be denied if {outcome.policy} were in Enforce"
