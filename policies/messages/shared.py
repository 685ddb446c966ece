"""Templates that several rows use: what the author wrote, what is required, what to type."""

from __future__ import annotations

SHARED = {
    "spared": "{fact}; {fix} (not denied: it is {actor:and})",
    # what the author wrote
    "container": 'container "{name}"',
    "selector": "{where} {key}={value}",
    "expression": "{where} {key} {operator}",
    "expression with values": "{where} {key} {operator} {values}",
    "claim unread": '{kind} "{claim}" is too large, or one of too many, for Berth to keep',
    "claim missing": '{kind} "{claim}" is not there',
    "of size": "{gigabytes}gb",
    "of usable size": "of at least {mebibytes} MiB usable",
    "none": "none",
    # what policies require
    "constraint": "{policy} {field} ({text})",
    "required": "Required: {constraints:and}.",
    "the policies changed": "Likely: the policies changed while the pod was being created, or Berth was not called before.",
    # what to type
    "set": "set {path} to {value}",
    "set shorter": "set it to {value} in {around}",
    "an amount": "an amount",
    "one of": "one of {values}",
    "one of more": "one of {values} ...",
    "use": "use {allowed}",
    "remove": "remove it",
    "create the claim": "create the claim first",
    "shorten the claim": "write it shorter, or delete unused claims of the namespace",
    "mend the policies": "ask the platform team to mend it",
    # of claims
    "claim has more": "the claim asks for {count} GPUs, more than the {most} that one pod may have here",
    "claim outside": '{kind} "{claim}" asks for devices of which none is {demands:and}',
    "claim asks for all": "{request} asks for as many devices as there are, and one pod may have {most} here",
    "ask for fewer": "ask for at most {most}, or split the work over more pods",
    "ask for allowed": "ask the platform team which counts are allowed",
    "write a count": "write allocationMode: ExactCount and a count of at most {most}",
    "any way": "Of the ways that firstAvailable lists, the one with the most counts.",
}
