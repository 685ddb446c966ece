"""The rows of warnings about a decision, BERTH-2xx. A comment on each gives its audience and the reason for
it.

A warning that its reader can do nothing about teaches to skip all of them. So what was left out of a policy's
default is for the platform team; what the author wrote, asked for by annotation, or must know before the pod
waits, is for the author.
"""

from __future__ import annotations

from policies.messages.row import Audience, Row, Word


def _row(code: str, title: str, audience: Audience, word: Word | None, *, of_edits: bool = False, **templates: str) -> Row:
    return Row(
        code=code,
        title=title,
        kind="warning",
        audience=audience,
        word=word,
        of_edits=of_edits,
        templates={name.replace("_", " "): template for name, template in templates.items()},
    )


_POOL = "NodePool {pool} ends a node after its terminationGracePeriod, and deletes a pod that asks for more when draining starts"

ROWS = (
    _row(  # the author wrote the value, and a typo waits for ever; what is required is written all the same
        "BERTH-201",
        "a value that the catalog does not know",
        "author",
        None,
        cloud='{where} {key}: "{value}" is a machine of {cloud}, which no node of {platforms:or} is',
        near='{where} {key}: "{value}" is no value that is known; did you mean "{near}"?',
        known='{where} {key}: "{value}" is no value that is known; known: {known}',
        new='{where} {key}: "{value}" is no value that is known; a new one is added with --catalog',
        held="{unknown}. {demands:and} is held by {label}, which its feature discovery sets",
    ),
    _row(  # the author gets neither default: a conflict that nobody else may notice
        "BERTH-202",
        "two defaults that differ",
        "author",
        "skipped",
        text="the defaults of {policies:and} differ on {axis}: neither acts; make them equal or let one match fewer pods",
    ),
    _row(  # the platform team's default promises more than its requirements leave; the rest was written
        "BERTH-203",
        "a default that was clipped",
        "platform",
        "skipped",
        clipped="default {constraint} is clipped to what is required",
        toleration="default toleration {key} is not added: {policies:and} forbids it",
        grace="default gracePeriod {seconds} s is clipped to the maximum {most} s",
    ),
    _row(  # its default does nothing here, and the pod asked for nothing
        "BERTH-204",
        "a default that does not act",
        "platform",
        "skipped",
        unread="defaults about nodes do not act: {authored} is about nodes, and no platform in force knows it",
        nothing_left="default {constraints:and} leaves nothing inside what is required and asked for: it does not act",
        actor="default {axis} does not act: it is {actor:and}, for which no default chooses nodes",
        not_there="default nodeTemplate {name} is not defined: it does not act",
        not_allowed="default nodeTemplate {name} is in no ClusterGPUPolicy's allow.nodeTemplates for this namespace: it does not act",
        forbidden="default nodeTemplate {name} has a taint that {policies:and} forbids: it does not act",
        template_leaves_nothing="default nodeTemplate {name} leaves nothing inside what is required and asked for: it does not act",
    ),
    _row(  # what it requires is not in force on this platform, whose nodes don't tell it
        "BERTH-205",
        "something that a platform can't say",
        "platform",
        "inexpressible",
        text="{constraint} can't be expressed on {platform}: not written and not judged there",
    ),
    _row(  # the author wrote the label, and the pod may wait for ever
        "BERTH-206",
        "a label that comes too late",
        "author",
        None,
        text="{where}: {key} is set only after a node has booted, so {platform} makes no new node for this pod; use {other}",
    ),
    _row(  # the platform team's catalog or facts lack what the pod requests: it is not judged as meant
        "BERTH-208",
        "an accelerator without known nodes",
        "platform",
        "skipped",
        unknown_model="{name} has no known nodes: where it may run is judged as a device of an unknown model",
        not_judged="{name} has no known nodes: where it may run is not judged",
        claim="a resource claim can't be read: where the pod may run is not judged",
    ),
    _row(  # the author wrote the terms: too many to say what is required on more than one platform
        "BERTH-209",
        "too many node affinity terms",
        "author",
        "inexpressible",
        text="over {most} node affinity terms: only the first platform is written",
    ),
    _row(  # the platform team's default found no slice, and the pod keeps the GPU that it asked for
        "BERTH-210",
        "a MIG slice that was skipped",
        "platform",
        "skipped",
        actor="MIG slice {size} skipped: it is {actor:and}, whose resources are not renamed",
        several='MIG slice {size} skipped: container "{container}" asks for more than one whole GPU',
        nowhere="MIG slice {size} skipped: no node on {platforms} inside what is required has one; a GPUNodeTemplate (gpus.migProfiles) or"
        " --catalog says where such nodes exist",
        any_platform="MIG slice {size} skipped: no node on any platform inside what is required has one; a GPUNodeTemplate"
        " (gpus.migProfiles) or --catalog says where such nodes exist",
    ),
    _row(  # its default promises more time than its platform gives: the pod ends sooner than it says
        "BERTH-211",
        "a grace period that something cuts",
        "platform",
        None,
        cut="grace {seconds} s is cut to {most} s: {by} grants no more",
        cut_by_pool="grace {seconds} s is cut to {most} s: " + _POOL,
        set_past_platform="grace {seconds} s is set, but {by} gives {most} s",
        set_past_pool="grace {seconds} s is set, and {most} s granted: " + _POOL,
    ),
    _row(  # its default and its maximum exclude each other here
        "BERTH-212",
        "a protection that was not written",
        "platform",
        "skipped",
        text="{key} is not written: it knows no duration here, and at most {most} of protection is allowed",
    ),
    _row(  # its requirements don't reach a node that the author named, and may name
        "BERTH-213",
        "a node that is not judged",
        "platform",
        "skipped",
        unknown="the pod names its node, whose labels are not known: where it runs is not judged",
        daemon="a DaemonSet's pod can't be moved: its nodes are outside what is required here",
    ),
    _row(  # the author wrote the preferences
        "BERTH-214",
        "preferences that no longer count",
        "author",
        None,
        text="no preferred node affinity term is inside what is required here: none will count",
    ),
    _row(  # the flavors of the platform team's queue must carry what is judged and not written
        "BERTH-215",
        "a queue places the pod",
        "platform",
        "skipped",
        text="it is {actor:and}: {constraints:and} is judged and not written; the queue's flavors must carry it",
    ),
    _row(  # the author asks for what no known machine has
        "BERTH-217",
        "nothing that is known fits",
        "author",
        None,
        nothing="no node type that is known here offers all that the pod asks for: it may stay Pending",
        slice="no machine of {platforms:or} has {name}, a slice of {models:and}; {there:;}",
        none_like_it="{platform} has none like it",
        no_slices="{platform} has no GPU that can be sliced",
        nearest="nearest: {name} ({machine})",
        nearest_by_label="nearest: {key}={profile} ({machine})",
    ),
    _row(  # the platform team's grant is missing
        "BERTH-218",
        "a toleration that was not granted",
        "platform",
        "skipped",
        text="toleration {taint} of {policies} is in no ClusterGPUPolicy's allow.tolerations: not added",
    ),
    _row(  # its default or catalog names a taint that no pod may tolerate
        "BERTH-219",
        "a toleration that nobody may have",
        "platform",
        "skipped",
        text="toleration {key} is not added: that taint marks nodes which no workload may use",
    ),
    _row(  # the author asked for a whole GPU, and gets a slice; the edit is counted
        "BERTH-220",
        "a slice in place of a GPU",
        "author",
        None,
        of_edits=True,
        text="{where}: {old}: 1 {became}, {size}; for a whole GPU annotate the pod {annotation}: none (default of {policies:and})",
        containers="{path} (and {more} more)",
        renamed="became {resource}: 1",
        labelled="is one MIG slice {profile} now",
        models="{gigabytes} GB of {models:or}",
        more_models="{gigabytes} GB of {model} and others",
    ),
    _row(  # the author named no nodes, and gets some only; the edit is counted
        "BERTH-221",
        "nodes that a default chose",
        "author",
        None,
        of_edits=True,
        template="the pod names no nodes, so it goes to those of GPUNodeTemplate {template} alone; name others by {selector} {key} (default"
        " of {policies:and})",
        machine="the pod names no GPU, so it goes to {constraints:and} alone; for another write {selector} {key} (default of"
        " {policies:and})",
        machine_by_value="the pod names no GPU, so it goes to {constraints:and} alone; for another write {selector} {key}: {value} (default"
        " of {policies:and})",
    ),
    _row(  # the author wrote another grace period, or none; the edit is counted
        "BERTH-222",
        "a grace period that was raised",
        "author",
        None,
        of_edits=True,
        text="{path} {former} is raised to {seconds}: at least {least} is required here; write {seconds} or more there (asked by"
        " {policies})",
        service="{path} {former} is raised to {seconds}: at least {least} is required here; write {seconds} or more there, or annotate the"
        " pod {annotation}: grace (asked by {policies})",
        opted_out="{path} {former} is raised to {seconds}: at least {least} is required here; write {seconds} or more there; {annotation}:"
        " grace is for services alone (asked by {policies})",
    ),
    _row(  # the author wrote what keeps the pod waiting for ever, and the scheduler says it to nobody who looks
        "BERTH-223",
        "a pod that nothing here can run",
        "author",
        None,
        tainted="nothing here can run it: {where} have taint {taints:and}, which is not tolerated{pools}; tolerate it in {path}",
        labelled="nothing here can run it: {path} asks for {asked}, and {where} {found}{pools}; change or remove that",
        too_many="nothing here can run it: it asks for {need} {resource}, and no {places} has more than {most}; ask for {most} or fewer in"
        " one pod",
        none_offered="nothing here can run it: no {places} has {resource}; ask for {offered:or}, or ask who runs the cluster for such"
        " nodes",
        nothing_offered="nothing here can run it: no {places} has {resource}; ask who runs the cluster for such nodes",
        not_together="nothing here can run it: no {places} has {devices} together; ask for them in several pods",
        node="node",
        node_or_pool="node and no NodePool",
        such_nodes="nodes with {devices}",
        made="nodes with {devices} of NodePool {pool}",
        no_pool_either=", and no NodePool makes others",
        nothing_more="",
        compared="{key} {operator} {values}",
        there="{key}",
        value="{values:or}",
        has="have {value}",
        has_not="have no such label",
    ),
    _row(  # the platform team's catalog lacks the name: what is required of it is not judged as it is meant
        "BERTH-230",
        "an accelerator that the catalog does not know",
        "platform",
        "skipped",
        text="pods ask for {name}, which the catalog does not know: it is judged by the worst; name it in --catalog FILE, in resources, or"
        " in notAccelerators if it is none",
    ),
)
