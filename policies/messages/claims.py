"""The rows about what a claim's selectors demand. A comment on each warning gives its audience and the reason for it."""

from __future__ import annotations

from policies.messages.row import MessageRow

DENIALS = (
    MessageRow(
        code="BERTH-127",
        title="a claim without the required selector",
        kind="denial",
        templates={
            "open": "{request} may get a device that violates {wanted}",
            "again": "create the claim again (controllers retry automatically)",
            "wanted": "Required: {wanted}.",
            "undone": "Likely cause: another webhook removed the selector that Berth wrote, the policies changed meanwhile, or the webhook"
            " mutate.claims-made is not registered.",
            "text": "Berth writes: {text}",
            "full": "{request} has {number} selectors and no room for one that requires {wanted}",
            "fewer": "write at most {most}",
            "apart": '{kind} "{claim}" requests {count} GPUs, so it lacks the selectors of {policies:and},'
            " for pods with {least} GPUs or more",
            "together": "request all GPUs of the pod in one claim of {least} or more",
        },
    ),
)

REMARKS = (
    MessageRow(  # the author's claim gets a narrower device than it asks for, and may wait for it
        code="BERTH-241",
        title="devices that a default chose",
        kind="warning",
        audience="author",
        of_edits=True,
        templates={
            "chosen": "{request} selects no device, so it only gets {constraints:and}; for another, write a selector (default of"
            " {policies:and})"
        },
    ),
    MessageRow(  # the author chose the spelling, nobody tells that Karpenter passes over it, and the other one works
        code="BERTH-243",
        title="a claim that Karpenter creates no node for",
        kind="warning",
        audience="author",
        templates={
            "text": "no node has such devices, and Karpenter creates none for a claim, so the pod waits; request {resource}: {count} in"
            " resources.limits instead{served}",
            "by class": ' (DRA also serves it: DeviceClass "{device_class}")',
            "by plugin": ", served by a device plugin or a DeviceClass with that extendedResourceName",
        },
    ),
    MessageRow(  # what it requires is not in force on these devices, and only another driver or a catalog can tell them apart
        code="BERTH-242",
        title="a constraint that a DRA driver can't express",
        kind="warning",
        audience="platform",
        word="inexpressible",
        templates={
            "text": "{constraints:and} is not written to {request}: driver {driver} does not publish it",
            "models": "{constraints:and} is not written to {request}: the names of {models} in driver {driver} are unknown (draDrivers of"
            " --catalog)",
        },
    ),
)
