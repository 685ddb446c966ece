"""Random worlds (policies, templates, platforms, cluster facts) and pods for them, all shapes and hostile ones.

Everything is drawn from one ``random.Random``: a seeded one for the long runs, hypothesis' own (``worlds``, ``cases``)
for the laws, so that what fails is made small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any, TypeVar, cast

from hypothesis import strategies as st

from policies import snapshot
from policies.catalog import Catalog
from policies.cluster_facts import ClusterFacts
from policies.engine import Request
from policies.policy import (
    Allow,
    Bounds,
    Capacity,
    Default,
    DeviceLimit,
    InNotIn,
    LabelExpression,
    LabelSelector,
    LongRuns,
    Machine,
    Match,
    MigDefault,
    NodeTemplate,
    Policy,
    PolicySet,
    Require,
    Sharing,
    Taint,
    TolerationPattern,
)
from tests.pods import pod
from tests.worlds import World
from webhook.files import read_catalog
