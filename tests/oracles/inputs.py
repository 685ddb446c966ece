"""Everything that the oracles are asked, by name, as plain data: what one commit writes down here another one can answer.

``{"sessions": ...}`` are reviews under worlds, ``{"words": ..., "files": ..., "cluster": ...}`` is a command among files,
``{"texts": ...}`` are files of the repository, and ``{"chart": name}`` is a rendering of ``tests.deploy.variants``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from tests.oracles import adapter, reviews
from tests.support.generators.written_claims import review_of
from tests.support.recorded import eks, gke, on_premises

Raw = dict[str, Any]
Files = dict[str, str]
Input = tuple[str, Callable[[], Raw]]
ROOT = Path(__file__).parents[2]
TESTS, EXAMPLES = ROOT / "tests", ROOT / "docs" / "examples"
BLOCKS = 100
OURS = ("ClusterGPUPolicy", "GPUPolicy", "GPUNodeTemplate")
FACTS = (
    "Namespace", "Node", "NodePool", "EC2NodeClass", "NodeClass", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice",
    "LocalQueue", "ClusterQueue", "ResourceFlavor", "PriorityClass", "RuntimeClass", "Queue",
)  # fmt: skip
FORMS = {
    "try": ("diff", "yaml", "json", "review"),
    "why": ("text", "json"),
    "scan": ("text", "json", "html"),
    "audit": ("table", "json", "csv", "html"),
    "replay": ("text", "json", "junit", "github"),
    "effective": ("table", "json", "yaml"),
    "test": ("text", "junit", "json"),
}
WORLD: Raw = {
    "platforms": ["karpenter-aws"], "migStrategy": "mixed", "queues": [], "maxMode": "Enforce", "allNodes": False, "facts": [],
    "consoleUrl": "", "catalog": [],
}  # fmt: skip
PATHS = ("/mutate", "/validate", "/advise", "/label")
OF_BERTH = (
    "crds", "gpus", "gpus A100", "gpus H100-80GB", "gpus nothing", "version", "export scheduler", "webhooks", "webhooks --queues",
    "webhooks --claims Off", "webhooks --claims Fail --exclude-namespace x", "webhooks --url https://berth.example:8443", "nothing",
    "completion bash", "completion zsh", "completion fish", "try absent.yaml", "try --platforms nowhere absent.yaml", "scan", "audit",
    "help", "help serve", "help try", "help console", "help gpus", "help effective", "help audit", "help why", "help scan", "help test",
    "help replay", "help crds", "help webhooks", "help export", "help certs",
)  # fmt: skip
TWINS = (
    "reviews/random-000", "reviews/recorded", "examples/scan_-o_text", "examples/effective_-o_table_--policies_library", "files/crds",
    "examples/try_-o_review_pretrain", "examples/why_-o_json_-f_pretrain", "examples/replay_-o_text", "examples/test_-o_text",
    "clusters/gke/audit_-o_table_--policies", "clusters/gke/why_-o_text_-n_lab_pod/h100-0",
)  # fmt: skip
"""Beginnings of the names that ``make test`` checks."""


@cache
def oracles() -> dict[str, Callable[[], Raw]]:
    """Return what makes each input, by name."""
    parts = (_reviews(), _examples(), _kinds(), _manifests(), _clusters(), _cases(), _texts())
    named = [*(one for part in parts for one in part), *(one for line in OF_BERTH for one in _typed("berth", line, {}))]
    named += [(f"chart/{name}", partial(dict, chart=name)) for name in adapter.variants()]
    found = {name.replace(" ", "_"): make for name, make in named}
    assert len(found) == len(named), "two inputs have one name"
    return found


@cache
def library() -> list[Raw]:
    """Return the shipped policies."""
    return [value for text in _read(ROOT / "policies", "library").values() for value in yaml.safe_load_all(text)]


def _read(folder: Path, *parts: str, leave_out: str = "") -> Files:
    """Return the texts of these files, and of those in these folders, by their paths below ``folder``."""
    paths = {path for part in parts for path in (folder / part, *(folder / part).rglob("*")) if path.is_file()}
    names = {path: str(path.relative_to(folder)) for path in sorted(paths)}
    return {name: path.read_text() for path, name in names.items() if not leave_out or not name.startswith(f"{leave_out}/")}


@cache
def _inputs() -> Files:
    files: Files = yaml.safe_load((Path(__file__).parent / "inputs.yaml").read_text())
    return files


def _objects(text: str) -> list[Raw]:
    """Return the objects of a file; none of one that cannot be parsed."""
    try:
        return [one for one in yaml.safe_load_all(text) if isinstance(one, dict) and "kind" in one]
    except yaml.YAMLError:
        return []


def _manifests_of_kinds() -> dict[str, list[Raw]]:
    return {name: [case["manifest"] for case in yaml.safe_load(text)] for name, text in _read(TESTS / "kinds", ".").items()}


# --- reviews -------------------------------------------------------------------------------------------------------------


def _reviews() -> Iterator[Input]:
    yield from ((f"reviews/random-{block:03}", partial(_random, block)) for block in range(BLOCKS))
    yield "reviews/recorded", lambda: _under_the_library([*_read(TESTS / "reviews", ".").values()])
    yield "reviews/kinds", lambda: _under_the_library([_body(one) for some in _manifests_of_kinds().values() for one in some])
    yield "reviews/inputs", lambda: _under_the_library([text for file in _inputs().values() for text in _bodies_of(file)])
    for folder in (*sorted((TESTS / "cases").iterdir()), TESTS / "claim_cases", TESTS / "workload_cases"):
        yield f"reviews/{folder.name}", partial(_golden, folder)


def _random(block: int) -> Raw:
    return {"sessions": reviews.sessions(block)}


def _body(made: Raw, namespace: str = "ml", **more: Any) -> str:
    """Return the review of the creation of any object."""
    return json.dumps(reviews.body(reviews.request_of(made, namespace, **more)), default=str)


def _bodies_of(text: str) -> list[str]:
    return [text] if '"AdmissionReview"' in text else [_body(one) for one in _objects(text) if one["kind"] not in (*OURS, *FACTS)]


def _under_the_library(bodies: Sequence[str]) -> Raw:
    """Return every body on every path: under the shipped policies in force, in Warn and in Audit, and on another platform."""
    worlds = [{**WORLD, "policies": library(), "maxMode": mode} for mode in ("Enforce", "Warn", "Audit")]
    other = {"platforms": ["gke", "gfd"], "queues": ["kueue"], "facts": eks.objects(), "consoleUrl": "https://berth.example"}
    posted = [[path, body] for body in bodies for path in PATHS]
    return {"sessions": [{"world": world, "reviews": posted} for world in (*worlds, {**worlds[0], **other})]}


def _golden(folder: Path) -> Raw:
    """Return the golden cases of a folder, each under its own world."""
    read = ((path, case) for path in sorted(folder.rglob("*.yaml")) for case in yaml.safe_load_all(path.read_text()))
    return {"sessions": [_case(path, case.get("given", case)) for path, case in read]}


def _case(path: Path, given: Raw) -> Raw:
    policies, api = given.get("policies", []), {"apiVersion": library()[0]["apiVersion"]}
    world = {**WORLD, **{key: given[key] for key in WORLD if key in given}}
    world["policies"] = library() if policies == "library" else [{**api, **policy} for policy in policies]
    return {"world": world, "reviews": [[way, _body_of_case(path, given)] for way in PATHS]}


def _body_of_case(path: Path, given: Raw) -> str:
    namespace, user = given.get("namespace", "ml"), given.get("user", "alice")
    if given.get("review"):
        return Path(path.parent, given["review"]).read_text()
    if given.get("claim"):
        return json.dumps(review_of(given["claim"], namespace=namespace, user=user))
    if given.get("workload"):
        return _body(given["workload"], namespace)
    more = {"userInfo": {"username": user, "groups": given.get("groups", [])}, "operation": given.get("operation", "CREATE")}
    more |= {"oldObject": given.get("oldPod"), "subResource": given.get("subresource", "")}
    return _body({**reviews.POD, **given["pod"]}, namespace, **more)


# --- commands ------------------------------------------------------------------------------------------------------------


def _typed(part: str, line: str, files: Files, cluster: Sequence[Raw] | None = None) -> Iterator[Input]:
    """Yield the command of a line, beside the shipped policies; in every form of its output, where the line has ``-o``."""
    files = {**_read(ROOT / "policies", "library"), **files}
    for form in FORMS[line.split()[0]] if " -o" in line else ("",):
        words = line.replace(" -o", f" -o {form}", 1).split()
        yield f"{part}/{' '.join(words)}", partial(dict, words=words, files=files, cluster=cluster)


def _scans(part: str, options: str, files: Files, cluster: Sequence[Raw] | None = None) -> Iterator[Input]:
    for line in ("scan -o", "scan --diff", "scan --suggest suggested"):
        yield from _typed(part, f"{line} {options}", files, cluster)


def _examples() -> Iterator[Input]:
    files = {**_read(EXAMPLES, ".", leave_out="recipes"), **_read(TESTS, "reviews")}
    for name in (name for name in files if not name.startswith(("reviews", "policy-tests"))):
        yield from _typed("examples", f"try -o {name}", files)
        yield from _typed("examples", f"try -o --policies library --as Enforce {name}", files)
        yield from _typed("examples", f"why -o -f {name} --facts cluster.yaml", files)
        if any(kind in files[name] for kind in OURS):
            yield from _typed("examples", f"effective -o --policies {name} -n research --gpus 4", files)
    yield from _typed("examples", "effective -o --policies library -n x --workload Job --duration 6h", files)
    yield from _typed("examples", "test -o policy-tests/cases", files)
    yield from _typed("examples", "replay -o --processes 1 --diff --policies library reviews", files)
    yield from _typed("examples", "replay -o --processes 1 --against library reviews", files)
    yield from _scans("examples", "--from cluster.yaml", files)


def _kinds() -> Iterator[Input]:
    facts = _read(EXAMPLES, "cluster.yaml")
    for file, manifests in _manifests_of_kinds().items():
        yield from _typed("kinds", f"try -o --facts cluster.yaml {file}", {**facts, file: yaml.safe_dump_all(manifests)})
        for number, manifest in enumerate(manifests):
            name = f"{number}-{file}"
            yield from _typed("kinds", f"why -o --facts cluster.yaml -f {name}", {**facts, name: yaml.safe_dump(manifest)})


def _manifests() -> Iterator[Input]:
    """Yield the commands on each group of files that begin alike, such as a pod and the nodes that it waits for."""
    for group, names in groupby(_inputs(), key=lambda name: re.findall(r"^c\d+|^[^.]+", name)[0]):
        part, files = f"inputs/{group}", {name: _inputs()[name] for name in names}
        kinds = {name: {value["kind"] for value in _objects(text)} for name, text in files.items()}
        ours = {name: f"--policies {name}" for name in files if kinds[name] and kinds[name] <= {*OURS}}
        known = " ".join([*ours.values(), *(f"--facts {name}" for name in files if kinds[name] & {*FACTS})])
        if subjects := [name for name in files if name not in ours]:
            yield from _typed(part, f"try -o {known} {' '.join(subjects)}", files)
        for name in (name for name in subjects if not kinds[name] <= {*FACTS}):
            yield from _typed(part, f"why -o {known} -f {name}", files)
        if ours:
            yield from _typed(part, f"effective -o {known} -n ml", files)
        if {"Node", "NodePool"} & set().union(*kinds.values()):
            yield from _scans(part, " ".join(f"--from {name}" for name in files), files)
            objects = [_placed(value) for text in files.values() for value in _objects(text)]
            yield from _typed(part, f"audit -o {' '.join(ours.values()) or '--policies library'}", files, objects)


def _placed(value: Raw) -> Raw:
    return {**value, "metadata": {"namespace": "default", **value["metadata"]}} if value["kind"] == "Pod" else value


def _clusters() -> Iterator[Input]:
    policies = [{**policy, "metadata": {"uid": "u", "generation": 1, **policy["metadata"]}} for policy in library()]
    recordings = {**_read(TESTS, "reviews"), **_read(EXAMPLES, "at-most-eight.yaml")}
    dumped = _objects((EXAMPLES / "cluster.yaml").read_text())
    clusters = {"eks": eks.objects(), "gke": gke.objects(), "on-premises": on_premises.objects(), "examples": dumped}
    for name, values in clusters.items():
        part = f"clusters/{name}"
        objects = [one for value in values for one in (value["items"] if value["kind"] == "List" else [value])]
        pods, governed = [value for value in objects if value["kind"] == "Pod"], [*objects, *policies]
        yield from _scans(part, "--from dump.yaml", {"dump.yaml": yaml.safe_dump_all(objects)})
        yield from _scans(part, "", {}, governed)
        yield from _typed(part, "audit -o", {}, governed)
        yield from _typed(part, "audit -o --policies library --as Enforce", {}, objects)
        preview = "--enforce-preview ClusterGPUPolicy/at-most-eight --recordings reviews"
        yield from _typed(part, f"audit -o --policies at-most-eight.yaml {preview}", recordings, objects)
        yield from _typed(part, "replay -o --processes 1 --policies library", {}, governed)
        for namespace in sorted({pod["metadata"]["namespace"] for pod in pods}):
            yield from _typed(part, f"effective -o -n {namespace}", {}, governed)
        for pod in pods:
            yield from _typed(part, f"why -o -n {pod['metadata']['namespace']} pod/{pod['metadata']['name']}", {}, governed)
        yield from _typed(part, "why -o job/absent", {}, objects)


def _cases() -> Iterator[Input]:
    for folder in sorted((TESTS / "cases").iterdir()):
        yield from _typed("cases", f"test -o cases/{folder.name}", _read(TESTS, f"cases/{folder.name}", "reviews"))
    yield from _typed("cases", "test -o claim_cases", _read(TESTS, "claim_cases"))


def _texts() -> Iterator[Input]:
    folders = {"crds": ["deploy/crds"], "chart": ["deploy/chart"], "docs": ["docs/reference.md", "docs/berth.1"]}
    folders["manifests"] = [str(path.relative_to(ROOT)) for path in (ROOT / "deploy").glob("*.yaml")]
    for name, paths in folders.items():
        yield f"files/{name}", partial(lambda paths: {"texts": _read(ROOT, *paths)}, paths)
