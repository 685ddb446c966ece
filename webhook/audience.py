"""Who hears a remark: the author, in a warning, or only the platform team, in the log, the metrics and ``berth try``.

A warning that its reader can do nothing about teaches to skip all of them. So what Berth left out of a policy's default
is no warning; what the author wrote, asked for by annotation, or must know before the pod waits, is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from policies.author import SLICE, TEMPLATE
from policies.pod import mapping_at
from policies.verdict import Remark, Violation

Audience = Literal["author", "platform"]

_SAID: Mapping[int, Audience] = {
    201: "author",  # wrote the value; a typo waits for ever
    202: "author",  # gets neither default: a conflict that nobody else may notice
    203: "platform",  # its default promises more than its requirements leave; the rest was written
    204: "platform",  # its default does nothing here, and the pod asked for nothing
    205: "platform",  # what it requires is not in force on this platform
    206: "author",  # wrote the label; the pod may wait for ever
    208: "platform",  # its catalog or its facts lack what the pod asks for
    209: "author",  # wrote the terms
    210: "platform",  # its default found no slice, and the pod keeps the GPU that it asked for
    211: "platform",  # its default promises more time than its platform gives
    212: "platform",  # its default and its maximum exclude each other here
    213: "platform",  # its requirements don't reach a node that the author named, and may name
    214: "author",  # wrote the preferences
    215: "platform",  # its queue's flavors must carry what Berth does not write
    217: "author",  # asks for what no known machine has
    218: "platform",  # its grant is missing
    219: "platform",  # its default or catalog names a taint that no pod may tolerate
    220: "author",  # asked for a whole GPU, and gets a slice
    221: "author",  # named no nodes, and gets some only
    222: "author",  # wrote another grace period, or none
    230: "platform",  # its catalog lacks the name
}
AUDIENCE: Mapping[str, Audience] = {f"BERTH-{number}": audience for number, audience in _SAID.items()}
"""Of each remark. Others are for the author: refusals that a pod is spared, and codes that nobody has placed."""

ASKED_BY: Mapping[str, str] = {"BERTH-210": SLICE, "BERTH-215": TEMPLATE}
"""Annotations by which authors ask for the same as a policy's default: the remark is then about their own wish, which comes
before every default, and theirs to hear. That it names policies tells nothing: it names those that granted or matched."""


_OF_VALUES = frozenset({"BERTH-125", "BERTH-151", "BERTH-152"})
"""refusals of a value that a remark may speak of too: one of each value at most, however many others there are"""


def warned(remarks: Sequence[Remark], violations: Sequence[Violation], pod: Mapping[str, Any]) -> Iterator[Remark]:
    """The remarks about ``pod`` that its author should read, without those about a value that it is refused for."""
    refused = [violation.fact for violation in violations if violation.code in _OF_VALUES]
    for remark in remarks:
        if _for_author(remark, pod) and not any(fact.startswith(_openings(remark)) for fact in refused):
            yield remark


def of_platform(remarks: Sequence[Remark], pod: Mapping[str, Any]) -> Iterator[Remark]:
    """The remarks about ``pod`` that its author can do nothing about: the platform team's to read."""
    return (remark for remark in remarks if not _for_author(remark, pod))


def _for_author(remark: Remark, pod: Mapping[str, Any]) -> bool:
    if AUDIENCE.get(remark.code) != "platform" or not remark.policies:
        return True
    annotation = ASKED_BY.get(remark.code)
    return annotation is not None and _annotations(pod).get(annotation) is not None


def _annotations(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping_at(mapping_at(pod, "metadata", ()), "annotations", ("metadata",))


def _openings(remark: Remark) -> tuple[str, ...]:
    """How the fact of a refusal begins that is about the same value; none where a refusal is about something else."""
    if remark.code == "BERTH-201":  # spec.nodeSelector KEY: "VALUE" is ..., and there spec.nodeSelector KEY=VALUE or KEY In [VALUE]
        place = remark.text.partition(": ")[0]
        return f"{place}=", f"{place} "
    annotation = ASKED_BY.get(remark.code)
    return () if annotation is None else (f'metadata.annotations["{annotation}"]',)
