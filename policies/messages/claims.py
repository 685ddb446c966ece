"""The rows about what a claim's selectors demand. A comment on each warning gives its audience and the reason for it."""

from __future__ import annotations

from policies.messages.row import Row

DENIALS = (
    Row(
        code="BERTH-127",
        title="a claim that may be given another device",
        kind="denial",
        templates={
            "open": "{request} may be given a device outside {wanted}",
            "again": "create the claim again (controllers do so by themselves)",
            "wanted": "Required: {wanted}.",
            "undone": "Likely: another webhook removed the selector that Berth wrote, the policies changed in that moment, or the webhook"
            " mutate.claims-made is not registered.",
            "text": "Berth writes: {text}",
            "full": "{request} has {number} selectors, so there is no room for one that demands {wanted}",
            "fewer": "write at most {most}",
            "apart": '{kind} "{claim}" of {count} was judged without {policies:and}, for pods with {least} GPUs or more, as this pod is',
            "together": "ask for all GPUs of the pod in one claim of {least} or more",
        },
    ),
)

REMARKS = (
    Row(  # the author's claim gets a narrower device than it asks for, and may wait for it
        code="BERTH-241",
        title="devices that a default chose",
        kind="warning",
        audience="author",
        of_edits=True,
        templates={
            "chosen": "{request} names no device, so it gets {constraints:and} alone; for another write a selector (default of"
            " {policies:and})"
        },
    ),
    Row(  # the author chose the spelling, nobody tells that Karpenter passes over it, and the other one works
        code="BERTH-243",
        title="a claim that no node is made for",
        kind="warning",
        audience="author",
        templates={
            "text": "no node has such devices, and Karpenter makes none for a claim, so the pod waits; ask for {resource}: {count} in"
            " resources.limits instead{served}",
            "by class": ' (served by DRA too: DeviceClass "{device_class}")',
            "by plugin": ", which a device plugin or a DeviceClass of that extendedResourceName serves",
        },
    ),
    Row(  # what it requires is not in force on these devices, and only another driver or a catalog can tell them apart
        code="BERTH-242",
        title="something that a driver does not publish",
        kind="warning",
        audience="platform",
        word="inexpressible",
        templates={
            "text": "{constraints:and} can't be said of devices of {driver}, which does not publish it: not written into {request}",
            "models": "{constraints:and} can't be said of {models} to {driver}, whose names for them are not known (draDrivers of"
            " --catalog): not written into {request}",
        },
    ),
)
