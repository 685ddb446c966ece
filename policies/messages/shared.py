"""Templates that several rows use: what the author wrote, what is required, what to type."""

from __future__ import annotations

SHARED = {
    "spared": "{fact}; {fix} (not denied: it is {actor:and})",
    # what the author wrote
    "container": 'container "{name}"',
    "selector": "{where} {key}={value}",
    "expression": "{where} {key} {operator}",
    "expression with values": "{where} {key} {operator} {values}",
    "claim unread": '{kind} "{claim}" is too large for Berth, or there are too many claims',
    "claim missing": '{kind} "{claim}" does not exist',
    "of size": "{gigabytes}gb",
    "of usable size": "of at least {mebibytes} MiB usable",
    "none": "none",
    # what policies require
    "constraint": "{policy} {field} ({text})",
    "required": "Required: {constraints:and}.",
    "the policies changed": "Likely cause: the policies changed while the pod was being created, or Berth did not mutate it.",
    # what to type
    "set": "set {path} to {value}",
    "set shorter": "set it to {value} in {around}",
    "an amount": "an amount",
    "one of": "one of {values}",
    "one of more": "one of {values} ...",
    "use": "use {allowed}",
    "remove": "remove it",
    "create the claim": "create the claim first",
    "shorten the claim": "shorten it, or delete unused claims in the namespace",
    "fix the policies": "ask the platform team to fix it",
    # of claims
    "claim has more": "the claim requests {count} GPUs, more than the {most} that one pod may have here",
    "claim outside": 'no device that {kind} "{claim}" requests meets {demands:and}',
    "claim asks for all": "{request} requests all devices, and one pod may have {most} here",
    "ask for fewer": "request at most {most}, or split the work over more pods",
    "ask for allowed": "ask the platform team which counts are allowed",
    "write a count": "write allocationMode: ExactCount and a count of at most {most}",
    "any way": "The firstAvailable alternative with the most devices counts.",
}
