"""The fields about the queue in which a pod waits: that of a pod which names none, and those in one of which it must be."""

from __future__ import annotations

from policies import policy
from policies.objects import parts as part
from policies.objects import validation as between
from policies.objects.field_types import Field, Items, Shape, Struct, Text

_QUEUE = Text(wanted="the name of a queue", pattern=part.DNS_SUBDOMAIN, most=63)
_PARTITION = Text(wanted="the name of a partition", pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$", most=63)
_ANY_QUEUE = Text(wanted="the name of a queue, or *", pattern=rf"^(\*|{part.DNS_SUBDOMAIN[1:-1]})$", most=63)
_ANY_PARTITION = Text(wanted="the name of a partition, or *", pattern=r"^(\*|[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)$", most=63)
"""The names of Kueue's and KAI's queues are label values too, of 63 characters at most."""
_SYSTEMS = ("kueue", "kai", "volcano", "slurm")

_ONE = Struct(
    build=policy.Queue,
    one_of=_SYSTEMS,
    rules=(between.topology_needs_kueue,),
    fields=(
        Field(
            name="kueue", shape=_QUEUE, example="team-a",
            about="A LocalQueue of Kueue's, as label `kueue.x-k8s.io/queue-name` of the workload that Kueue manages: pods get none.",
        ),
        Field(
            name="topology", shape=part.KEY, example="cloud.provider.com/topology-block",
            about="With `kueue`: the level of that queue's Topology at which pods of one GPU template prefer to be together: annotation"
            " `kueue.x-k8s.io/podset-preferred-topology` of the template. Only where every flavor of what such pods ask for has a"
            " Topology with this level: otherwise Kueue never admits the workload.",
        ),
        Field(
            name="kai", shape=_QUEUE, example="team-a",
            about="A queue of KAI's, as label `kai.scheduler/queue`; KAI's scheduler places the pod.",
        ),
        Field(
            name="volcano", shape=_QUEUE, example="gpu",
            about="A queue of Volcano's, as annotation `scheduling.volcano.sh/queue-name`; Volcano's scheduler places the pod.",
        ),
        Field(
            name="slurm", shape=_PARTITION, example="gpu",
            about="A partition of Slurm's, by Slurm bridge, which places the pod. Written as annotation where Slurm bridge reads it: on a"
            " Job, JobSet or other workload when it is made, else on a pod that none owns, with the time limit of"
            " `berth.dev/expected-duration`, else of `activeDeadlineSeconds`.",
        ),
    ),
)  # fmt: skip


def _several(name: str, shape: Shape, example: str, about: str) -> Field:
    return Field(name=name, shape=Items(of=shape, most=64), example=example, about=about)


_SOME = Struct(
    build=policy.Queues,
    any_of=_SYSTEMS,
    fields=(
        _several(
            "kueue", _ANY_QUEUE, "[team-a]",
            "LocalQueues of Kueue's, or `*` for any. Pods of the workloads that Kueue suspends are made by known controllers; others"
            " must be held by Kueue's gate, and `--queues kueue` must say that Kueue manages pods here.",
        ),
        _several("kai", _ANY_QUEUE, "[team-a]", "Queues of KAI's, or `*` for any."),
        _several("volcano", _ANY_QUEUE, "[gpu]", "Queues of Volcano's, or `*` for any."),
        _several("slurm", _ANY_PARTITION, "[gpu]", "Partitions of Slurm's, by Slurm bridge, or `*` for any."),
    ),
)  # fmt: skip

REQUIRED = Field(
    name="queue", shape=_SOME, example="{kai: [team-a]}",
    about="The queues in one of which a GPU pod must wait: one that names a node, another scheduler, another queue or none is denied,"
    " whoever makes it. Several policies admit what all of them name.",
)  # fmt: skip
DEFAULT = Field(
    name="queue", shape=_ONE, example="{kai: team-a}",
    about="The queue of a GPU pod that names none, and no scheduler of its own. It comes before `schedulerName`. The queue system must be"
    " there: without it such pods stay Pending.",
)  # fmt: skip
