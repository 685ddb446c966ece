"""Random fields of policies, with the odd and the hostile ones, as the parser would let them through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Literal, TypeVar

from catalog.platforms import Capacity, Sharing
from kube.taints import TolerationPattern
from policies.policy import Bounds, Default, DeviceLimit, InNotIn, LongRuns, MachineFields, MigDefault, QueueName, Queues, Require

T = TypeVar("T")
CAPACITIES: tuple[Capacity, ...] = ("spot", "on-demand", "reserved")
SHARINGS: tuple[Sharing, ...] = ("Exclusive", "MIG", "TimeSliced")


def chance(random: Random, part: float) -> bool:
    return random.random() < part


def some(random: Random, values: Sequence[T], least: int = 1, most: int = 3) -> tuple[T, ...]:
    """A few different ones, in any order."""
    return tuple(random.sample(values, min(len(values), random.randint(least, most))))


def maybe(random: Random, part: float, make: Callable[[Random], T]) -> T | None:
    return make(random) if chance(random, part) else None


FAMILIES = ("hopper", "ampere", "turing", "ada-lovelace", "blackwell", "volta", "cdna3")
MODELS = (
    "T4",
    "A100",
    "A100-40GB",
    "A100-80GB",
    "H100",
    "H100-80GB",
    "H100-94GB",
    "L4",
    "L40S",
    "A10G",
    "H200",
    "B200",
    "V520",
    "MI300X",
    "V100",
    "GH200",
)
INSTANCES = ("p4d", "p4de", "p5", "g4dn", "g5", "g6", "g4ad", "a2", "a3", "g2", "n1", "NCads_A100_v4", "x9")


def in_not_in(random: Random, names: Sequence[str]) -> InNotIn:
    """Never a list of which nothing is left: the parser denies that."""
    match random.randrange(5):
        case 0 | 1:
            return InNotIn(in_=some(random, names))
        case 2 | 3:
            return InNotIn(not_in=some(random, names))
    in_ = some(random, names, 2, 4)
    rest = [name for name in names if name != in_[0]]
    return InNotIn(in_=in_, not_in=some(random, rest, 1, 2))


def memory(random: Random) -> Bounds:
    least = random.choice((16, 24, 40, 80))
    most = random.choice((24, 40, 80, 96, 180))
    kind = random.randrange(3)
    return Bounds(min=least if kind != 1 else None, max=max(least, most) if kind != 0 else None)


def machine(random: Random, part: float) -> MachineFields:
    return MachineFields(
        families=maybe(random, part, lambda r: in_not_in(r, FAMILIES)),
        models=maybe(random, part, lambda r: in_not_in(r, MODELS)),
        instance_families=maybe(random, part, lambda r: in_not_in(r, INSTANCES)),
        gpu_memory=maybe(random, part, memory),
    )


def long_runs(random: Random) -> LongRuns:
    return LongRuns(over=random.choice((3600, 7200, 14400)), capacity=some(random, CAPACITIES, 1, 2), unknown_is_long=chance(random, 0.6))


def capacities(random: Random) -> tuple[Capacity, ...]:
    return some(random, CAPACITIES, 1, 2)


def pattern(random: Random) -> TolerationPattern:
    return TolerationPattern(
        key=random.choice(("team", "team", "pool", "dedicated", "nvidia.com/gpu", "level")),
        value=random.choice((None, "research", "web", "a100", "101", "99")),
        effect=random.choice((None, None, "NoSchedule", "NoExecute")),
    )


def patterns(random: Random, part: float) -> tuple[TolerationPattern, ...]:
    return tuple(pattern(random) for _ in range(random.randint(1, 2))) if chance(random, part) else ()


def device_limit(random: Random) -> DeviceLimit:
    kind = random.randrange(3)
    return DeviceLimit(max=random.choice((1, 2, 4, 8)) if kind != 1 else None, one_of=(1, 2, 4, 8) if kind else ())


def mig(random: Random) -> MigDefault:
    if chance(random, 0.2):
        return MigDefault(usable_mib=random.choice((4864, 9000, 19968)))
    return MigDefault(slice_gb=random.choice((5, 10, 10, 20, 40, 71, 12, 24)))


def equal(random: Random) -> tuple[Literal["accelerators", "cpuAndMemory"], ...]:
    return random.choice((("accelerators",), ("accelerators",), ("accelerators",), ("accelerators",), ("cpuAndMemory", "accelerators")))


def floored(require: Require, part: float) -> Require:
    """With a least grace, never more than the most, which the parser denies. Drawn from what else is required: a seed that once found
    something gives the same of all else."""
    random = Random(repr(require))
    least = random.choice((20, 30, 45, 600, 1200)) if chance(random, part) else None
    return replace(require, grace_min=least if least is None else min(least, require.grace_max or least))


def require(random: Random, part: float) -> Require:
    found = Require(
        machine=machine(random, part * 0.6),
        capacity=capacities(random) if chance(random, part) else (),
        long_runs=maybe(random, part * 0.5, long_runs),
        sharing=some(random, SHARINGS, 1, 2) if chance(random, part) else (),
        gpus_per_pod=maybe(random, part * 0.7, device_limit),
        requests_equal_limits=equal(random) if chance(random, part) else (),
        grace_max=random.choice((60, 600, 3600)) if chance(random, part * 0.6) else None,
        protection_max=random.choice((3600, 86400)) if chance(random, part * 0.6) else None,
        forbid_tolerations=patterns(random, part * 0.6),
    )
    return with_queues(with_runtime(floored(found, part * 0.6), part * 0.4), part * 0.15)


def with_runtime(require: Require, part: float) -> Require:
    """With a longest time, drawn from what else is required, as ``floored`` does."""
    random = Random(f"runtime {require!r}")
    return replace(require, max_runtime=random.choice((3600, 86400)) if chance(random, part) else None)


def with_queues(require: Require, part: float) -> Require:
    """With queues in which a pod must be, drawn from what else is required, as ``floored`` does."""
    random = Random(f"queues {require!r}")
    if not chance(random, part):
        return require
    systems = some(random, ("kueue", "kai", "volcano", "slurm"), 1, 3)
    return replace(require, queue=Queues(**{system: random.choice((("a",), ("a", "b"), ("b",), ("*",))) for system in systems}))


def queue(random: Random) -> QueueName:
    system, name = random.choice(("kueue", "kai", "kai", "volcano", "slurm")), random.choice(("a", "a", "b"))
    level = {"topology": "cloud.provider.com/topology-block"} if system == "kueue" and random.random() < 0.5 else {}
    return QueueName(**{system: name}, **level)


def running(default: Default, part: float) -> Default:
    """With defaults about how pods run, drawn from what else is given: a seed that once found something gives the same of all else."""
    random = Random(repr(default))
    return replace(
        default,
        max_runtime=random.choice((600, 7200, 86400)) if chance(random, part) else None,
        shared_memory=random.choice((2**30, 2**33)) if chance(random, part) else None,
        runtime_class=random.choice(("nvidia", "nvidia", "kata")) if chance(random, part) else None,
        priority_class=random.choice(("gpu", "low")) if chance(random, part) else None,
        scheduler_name=random.choice(("packing", "packing", "default-scheduler")) if chance(random, part) else None,
        topology=random.choice(("rack", "topology.kubernetes.io/zone")) if chance(random, part) else None,
        network_devices=chance(random, part),
        queue=queue(random) if chance(random, part) else None,
    )


def default(random: Random, part: float, templates: Sequence[str]) -> Default:
    return running(_default(random, part, templates), part * 0.5)


def _default(random: Random, part: float, templates: Sequence[str]) -> Default:
    return Default(
        accelerator_taints=chance(random, 0.5),
        node_template=random.choice(templates) if templates and chance(random, part * 0.6) else None,
        machine=machine(random, part * 0.35),
        capacity=capacities(random) if chance(random, part * 0.7) else (),
        long_runs=maybe(random, part * 0.5, long_runs),
        mig=maybe(random, part * 0.6, mig),
        grace=random.choice((30, 120, 1800)) if chance(random, part) else None,
        protect_for=random.choice((7200, 43200, "Always")) if chance(random, part) else None,
        tolerate=patterns(random, part),
        repair=("accelerators",) if chance(random, part) else (),
    )
