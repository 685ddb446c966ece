"""The fields about queues: the default queue of a pod that names none, and the queues that pods must use."""

from __future__ import annotations

from catalog.shapes.scalars import PatternText
from catalog.shapes.structs import Field, Items, Shape, Struct
from policies import policy
from policies.objects import parts as part
from policies.objects import validation as between

_QUEUE = PatternText(wanted="the name of a queue", pattern=part.DNS_SUBDOMAIN, most=63)
_PARTITION = PatternText(wanted="the name of a partition", pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$", most=63)
_ANY_QUEUE = PatternText(wanted="the name of a queue, or *", pattern=rf"^(\*|{part.DNS_SUBDOMAIN[1:-1]})$", most=63)
_ANY_PARTITION = PatternText(wanted="the name of a partition, or *", pattern=r"^(\*|[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)$", most=63)
"""The names of Kueue's and KAI's queues are label values too, of 63 characters at most."""
_SYSTEMS = ("kueue", "kai", "volcano", "slurm")

_ONE = Struct(
    build=policy.QueueName,
    one_of=_SYSTEMS,
    rules=(between.topology_needs_kueue,),
    fields=(
        Field(
            name="kueue", shape=_QUEUE, example="team-a",
            description="LocalQueue of Kueue, as label `kueue.x-k8s.io/queue-name` of the workload that Kueue manages, not of its pods.",
        ),
        Field(
            name="topology", shape=part.KEY, example="cloud.provider.com/topology-block",
            description="With `kueue`: the topology level at which pods of one GPU template prefer to be together, as annotation"
            " `kueue.x-k8s.io/podset-preferred-topology` of the template. Every flavor for these pods must have this level;"
            " otherwise Kueue never admits the workload.",
        ),
        Field(
            name="kai", shape=_QUEUE, example="team-a",
            description="Queue of KAI, as label `kai.scheduler/queue`, with KAI's scheduler.",
        ),
        Field(
            name="volcano", shape=_QUEUE, example="gpu",
            description="Queue of Volcano, as annotation `scheduling.volcano.sh/queue-name`, with Volcano's scheduler.",
        ),
        Field(
            name="slurm", shape=_PARTITION, example="gpu",
            description="Partition of Slurm. Berth writes it as an annotation on a new workload or a pod without an owner, and sets Slurm"
            " bridge's scheduler. The time limit comes from `berth.dev/expected-duration`, or else from `activeDeadlineSeconds`.",
        ),
    ),
)  # fmt: skip


def _several(name: str, shape: Shape, example: str, description: str) -> Field:
    return Field(name=name, shape=Items(of=shape, most=64), example=example, description=description)


_SOME = Struct(
    build=policy.Queues,
    any_of=_SYSTEMS,
    fields=(
        _several(
            "kueue", _ANY_QUEUE, "[team-a]",
            "LocalQueues of Kueue, or `*` for any. If Kueue suspends the workload, as it does Jobs, a controller in the"
            " catalog's `podMakers` must create its pods. Other pods are admitted only with Kueue's scheduling gate, if the server has"
            " `--queues kueue`.",
        ),
        _several("kai", _ANY_QUEUE, "[team-a]", "Queues of KAI, or `*` for any."),
        _several("volcano", _ANY_QUEUE, "[gpu]", "Queues of Volcano, or `*` for any."),
        _several("slurm", _ANY_PARTITION, "[gpu]", "Partitions of Slurm, by Slurm bridge, or `*` for any."),
    ),
)  # fmt: skip

REQUIRED = Field(
    name="queue", shape=_SOME, example="{kai: [team-a]}",
    description="Queues that GPU pods must use. A pod that names a node, another scheduler, another queue or no queue is "
    "denied. With several policies, a queue must be in all of them.",
)  # fmt: skip
DEFAULT = Field(
    name="queue", shape=_ONE, example="{kai: team-a}",
    description="Queue of a GPU pod that names neither a queue nor a scheduler. It takes precedence over `schedulerName`. If "
    "the queue system is not running, the pod stays Pending.",
)  # fmt: skip
