"""Seeded random reviews as plain data: the objects of a cluster, options of the server, and bodies to post under them.

Whatever a generator of ``tests/support`` draws becomes manifests and AdmissionReviews, so that another commit can be fed the same.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from tests.support.cases.workload_manifests import WORKLOADS, template_of, with_templates
from tests.support.claims import random_claims
from tests.support.claims.published_devices import API_VERSION, slice_of
from tests.support.generators import random_pods, random_worlds
from tests.support.generators.random_changes import OURS, Changing, options
from tests.support.generators.random_cluster import NODES, TAINTS
from tests.support.generators.random_oddities import odd_pod
from tests.support.generators.random_worlds import AUDITED, World, catalog
from tests.support.generators.written_objects import sayable, written

Raw = dict[str, Any]
BLOCK, SESSION = 1000, 50
"""Reviews of one digest, and those that one world decides."""
POD = {"apiVersion": "v1", "kind": "Pod"}
QUEUES = ("kueue.x-k8s.io/queue-name", "kai.scheduler/queue", "scheduling.volcano.sh/queue-name")


def sessions(block: int) -> list[Raw]:
    """Return the worlds of a block, each with its reviews."""
    return [_session(Random(f"oracle {block} {number}"), f"{block}-{number}") for number in range(BLOCK // SESSION)]


def _session(random: Random, name: str) -> Raw:
    drawn = random_worlds.world(random, random.choice((AUDITED, ("Enforce",), ("Enforce",))), fresh=True)
    reviews: list[tuple[str, Raw]] = []
    for number in range(SESSION):
        path, request = random.choices((_pod, _claim, _workload), (7, 1, 2))[0](random, drawn)
        again = copy.deepcopy(random.choice(reviews)) if reviews and random.random() < 0.06 else (path, request)
        again[1]["uid"] = f"{name}-{number}"
        reviews.append(again)
    return {"world": _world(random, drawn), "reviews": [[path, _body(random, request)] for path, request in reviews]}


def _body(random: Random, request: Raw) -> str:
    """Return the review; one in thirty is damaged. The request shares parts with others, so a copy is."""
    review = body(request)
    if random.random() < 0.03:
        review = copy.deepcopy(review)
        _damage(random, review)
    return json.dumps(review)


def _damage(random: Random, value: Any) -> None:
    """Put a value of another type somewhere below ``value``."""
    while True:
        places = [*value] if isinstance(value, dict) else [*range(len(value))]
        place = random.choice(places)
        below = value[place]
        if not (isinstance(below, dict | list) and below) or random.random() < 0.15:
            value[place] = random.choice((None, [], {}, "x", -7, True, 1.5, [None], {"a": {}}))
            return
        value = below


def body(request: Raw) -> Raw:
    """Return the AdmissionReview around a request."""
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def request_of(made: Raw, namespace: str, resource: str = "", user: str = "alice", **more: Any) -> Raw:
    """Return the request to create an object. ``resource``: its plural, unless it is the kind's with an s."""
    group, _, version = str(made.get("apiVersion")).rpartition("/")
    return {
        "uid": "",
        "kind": {"group": group, "version": version, "kind": made.get("kind")},
        "resource": {"group": group, "version": version, "resource": resource or f"{str(made.get('kind')).lower()}s"},
        "name": (made.get("metadata") or {}).get("name", ""),
        "namespace": namespace,
        "operation": "CREATE",
        "userInfo": {"username": user, "groups": ["system:authenticated"]},
        "object": made,
        "oldObject": None,
        "dryRun": False,
        **more,
    }


def _pod(random: Random, drawn: World) -> tuple[str, Raw]:
    asked = random_pods.request(random, drawn)
    pod = odd_pod(random, canonical=False) if random.random() < 0.1 else asked.pod
    more: Raw = {"userInfo": {"username": asked.user, "groups": [*asked.groups]}}
    if random.random() < 0.2:
        more |= {"operation": "UPDATE", "oldObject": pod, "subResource": random.choice(("", "", "resize", "ephemeralcontainers"))}
        pod = _updated(random, drawn, pod)
    path = random.choice(("/mutate", "/mutate", "/validate"))
    return path, request_of({**POD, **pod}, asked.namespace, user=asked.user, dryRun=random.random() < 0.03, **more) | {"object": pod}


def _updated(random: Random, drawn: World, pod: Raw) -> Raw:
    """Return the pod after a change that somebody may make of it."""
    made, other = copy.deepcopy(pod), random_pods.pod(random, drawn)
    match random.randrange(6):
        case 0:
            made.setdefault("metadata", {})["annotations"] = other["metadata"].get("annotations") or {"berth.dev/opt-out": "grace"}
        case 1:
            made["spec"]["tolerations"] = [*(made["spec"].get("tolerations") or ()), {"operator": "Exists"}]
        case 2:
            made["spec"].pop("schedulingGates", None)
            made["spec"]["nodeSelector"] = other["spec"].get("nodeSelector") or {"zone": "a"}
        case 3:
            made["spec"]["containers"] = other["spec"]["containers"]
        case 4:
            made["spec"]["affinity"] = other["spec"].get("affinity") or {}
        case _:
            return other
    return made


def _claim(random: Random, _: World) -> tuple[str, Raw]:
    made = random_claims.any_claim(random)
    path = random.choice(("/mutate", "/validate"))
    return path, request_of(made, random.choice(("ml", "ml", "team-a")), dryRun=random.random() < 0.03)


def _workload(random: Random, drawn: World) -> tuple[str, Raw]:
    workload = WORKLOADS[random.choice((*sorted(WORKLOADS), "Job", "Job", "Deployment"))]
    version = random.choice(workload.api_version)
    templates: list[Raw | None] = [template_of(random_pods.pod(random, drawn)) for _ in range(random.choice((1, 1, 2)))]
    made = with_templates(workload, version, templates)
    if random.random() < 0.4:
        made["metadata"][random.choice(("labels", "annotations"))] = {random.choice(QUEUES): random.choice(("gpu", "a", "none"))}
    more: Raw = {}
    if random.random() < 0.2:
        old = copy.deepcopy(made)
        old["metadata"].pop("labels", None)
        more = {"operation": "UPDATE", "oldObject": old}
    namespace = random.choice(("team-a", "team-b", "dev"))
    path = random.choice(("/advise", "/advise", "/label", "/validate"))
    return path, request_of(made, namespace, workload.resource, dryRun=random.random() < 0.03, **more)


def _world(random: Random, drawn: World) -> Raw:
    """Return the policies and facts as manifests, with the options of the server."""
    policies = [written(sayable(one)) for one in drawn.policy_set.policies]
    policies += [written(sayable(one)) for one in drawn.policy_set.templates]
    if random.random() < 0.4:
        api = policies[0]["apiVersion"]
        policies += [{"apiVersion": api, **one} for one in random_claims.policies(random, modes=AUDITED, name="devices")]
    chosen = options(random)
    return {
        "policies": policies,
        "facts": list(_facts(random)) if random.random() < 0.8 else [],
        "platforms": [*drawn.platforms],
        "migStrategy": drawn.mig_strategy,
        "queues": [*drawn.queues],
        "maxMode": chosen.max_mode,
        "allNodes": random.random() < 0.3,
        "consoleUrl": "https://berth.example.com" if random.random() < 0.2 else "",
    }


def _facts(random: Random) -> Iterator[Raw]:
    """Yield the objects of a cluster: what changes at random elsewhere, nodes of every sort, classes and slices."""
    changing = Changing(random, options(random))
    for _ in range(12):
        changing.batch()
    facts = {key: {**value, "kind": key[0]} for key, value in changing.there.items() if key not in OURS}
    nodes = {("Node", "", name): _node(name, labels) for name, labels in NODES.items()}
    classes = {("DeviceClass", "", name): _class(name, device_class) for name, device_class in random_claims.CLASSES.items()}
    slices = {("ResourceSlice", "", name): value for name in random.sample(sorted(NODES), 3) for value in _slices(random, name)}
    namespace = {"kind": "Namespace", "metadata": {"name": "ml", "labels": {"team": "research"}}}
    yield from [namespace, *(value for _, value in sorted({**nodes, **facts, **classes, **slices}.items()))]


def _node(name: str, labels: Mapping[str, str]) -> Raw:
    taints = [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in TAINTS.get(name, ())]
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": dict(labels)}, "spec": {"taints": taints}}


def _class(name: str, device_class: Any) -> Raw:
    wanted = [f'device.driver == "{device_class.driver}"']
    wanted += [f'device.attributes["{key.partition("/")[0]}"].{key.partition("/")[2]} == "{value}"' for key, value in device_class.equal]
    spec: Raw = {"selectors": [{"cel": {"expression": " && ".join(wanted)}}]}
    if device_class.extended:
        spec["extendedResourceName"] = device_class.extended
    return {"apiVersion": API_VERSION, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def _slices(random: Random, node: str) -> Iterator[Raw]:
    gpu = random.choice([gpu for gpu in catalog().gpus if gpu.vendor == "nvidia"])
    device = random_claims.device(random, gpu, catalog(), "gpu-0")
    if device is not None:
        yield slice_of(node, str(device.pop("driver")), [device])
