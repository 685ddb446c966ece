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

from tests.oracles import adapter, random_reviews
from tests.support.generators.written_claims import review_of
from tests.support.recorded import eks, gke, on_premises

Raw = dict[str, Any]
ROOT = Path(__file__).parents[2]
TESTS, EXAMPLES, INPUTS = ROOT / "tests", ROOT / "docs" / "examples", Path(__file__).parent / "inputs.yaml"
BLOCKS = 100
OURS = ("ClusterGPUPolicy", "GPUPolicy", "GPUNodeTemplate")
FACTS = (
    "Namespace", "Node", "NodePool", "EC2NodeClass", "NodeClass", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice",
    "LocalQueue", "ClusterQueue", "ResourceFlavor", "PriorityClass", "RuntimeClass", "Queue",
)  # fmt: skip
TRY, PAIR, SCAN, TABLE = ("diff", "yaml", "json", "review"), ("text", "json"), ("text", "json", "html"), ("table", "json", "yaml")
AUDIT, REPLAY, TEST = ("table", "json", "csv", "html"), ("text", "json", "junit", "github"), ("text", "junit", "json")
WORLD: Raw = {"platforms": ["karpenter-aws"], "migStrategy": "mixed", "queues": [], "maxMode": "Enforce", "allNodes": False, "facts": []}
USER, PATHS = {"username": "alice", "groups": ["system:authenticated"]}, ("/mutate", "/validate", "/advise", "/label")
TWINS = (
    "reviews/random-000", "reviews/recorded", "examples/scan_-o_text", "examples/effective_-o_table_--policies_library", "examples/test_-o_text",
    "examples/try_-o_review_pretrain", "examples/why_-o_json_-f_pretrain", "examples/replay_-o_text", "clusters/gke/audit_-o_table_--policies_lib",
    "clusters/gke/why_-o_text_-n_lab_pod/h100-0", "files/crds",
)  # fmt: skip
"""Beginnings of the names that ``make test`` checks."""


@cache
def oracles() -> dict[str, Callable[[], Raw]]:
    """Return what makes each input, by name."""
    named: list[tuple[str, Callable[[], Raw]]] = [(f"reviews/random-{n:03}", partial(_random, n)) for n in range(BLOCKS)]
    named += [("reviews/recorded", _recorded), ("reviews/kinds", _kinds), ("reviews/inputs", _reviews_of_inputs)]
    named += [(f"reviews/cases-{folder.name}", partial(_cases, folder)) for folder in sorted((TESTS / "cases").iterdir())]
    named += [(f"reviews/{name}", partial(_cases, TESTS / name)) for name in ("claim_cases", "workload_cases")]
    for part, given in (*_examples(), *_of_kinds(), *_of_inputs(), *_of_clusters(), *_of_cases(), *_of_berth()):
        named.append((f"{part}/{'_'.join(given['words'])}".replace(" ", "_"), partial(dict, given)))
    named += [(f"files/{name}", partial(_texts, name)) for name in ("crds", "chart", "manifests", "docs")]
    named += [(f"chart/{name.replace(' ', '_')}", partial(dict, chart=name)) for name in adapter.variants()]
    oracles = dict(named)
    assert len(oracles) == len(named), "two inputs have one name"
    return oracles


# --- reviews -------------------------------------------------------------------------------------------------------------


def _random(block: int) -> Raw:
    return {"sessions": random_reviews.sessions(block)}


@cache
def _library() -> list[Raw]:
    return [one for path in sorted((ROOT / "policies" / "library").glob("*.yaml")) for one in yaml.safe_load_all(path.read_text())]


def _under_the_library(bodies: Sequence[str]) -> Raw:
    """Return every body on every path, under the shipped policies in force, in Audit and in Warn, and without any for the platform."""
    worlds = [{**WORLD, "policies": _library(), "consoleUrl": "", "maxMode": mode} for mode in ("Enforce", "Warn", "Audit")]
    worlds.append(
        {**worlds[0], "platforms": ["gke", "gfd"], "queues": ["kueue"], "facts": eks.objects(), "consoleUrl": "https://c.example"}
    )
    return {"sessions": [{"world": world, "reviews": [[path, body] for body in bodies for path in PATHS]} for world in worlds]}


def _recorded() -> Raw:
    return _under_the_library([path.read_text() for path in sorted((TESTS / "reviews").glob("*.json"))])


def _reviews_of_inputs() -> Raw:
    bodies = [text for name, text in _files_of_inputs().items() if '"AdmissionReview"' in text]
    made = [_body(one, "ml") for text in _files_of_inputs().values() for one in _objects(text) if one["kind"] not in (*OURS, *FACTS)]
    return _under_the_library([*bodies, *made])


def _kinds() -> Raw:
    return _under_the_library([_body(case["manifest"], "ml") for path in _kind_files() for case in yaml.safe_load(path.read_text())])


def _kind_files() -> list[Path]:
    return sorted((TESTS / "kinds").glob("*.yaml"))


def _body(made: Raw, namespace: str, **more: Any) -> str:
    """Return the review of the creation of any object."""
    group, _, version = str(made.get("apiVersion")).rpartition("/")
    plural = f"{str(made.get('kind')).lower()}s"
    request = {
        "uid": "u",
        "kind": {"group": group, "version": version, "kind": made.get("kind")},
        "resource": {"group": group, "version": version, "resource": plural},
        "namespace": namespace,
        "operation": "CREATE",
        "userInfo": USER,
        "object": made,
        **more,
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}, default=str)


def _cases(folder: Path) -> Raw:
    """Return the golden cases of a folder, each under its own world."""
    return {"sessions": [session for path in sorted(folder.rglob("*.yaml")) for session in _case(path)]}


def _case(path: Path) -> Iterator[Raw]:
    for case in yaml.safe_load_all(path.read_text()):
        given = case.get("given", case)
        policies, catalog = given.get("policies", []), given.get("catalog", [])
        world = {
            **WORLD,
            "consoleUrl": "",
            **{key: given[key] for key in WORLD if key in given},
            "catalog": catalog[0] if catalog else None,
        }
        world["policies"] = (
            _library() if policies == "library" else [{"apiVersion": _library()[0]["apiVersion"], **one} for one in policies]
        )
        yield {"world": world, "reviews": [[way, body] for body in _bodies(path, given) for way in PATHS]}


def _bodies(path: Path, given: Raw) -> Iterator[str]:
    namespace, user = given.get("namespace", "ml"), given.get("user", "alice")
    who = {"userInfo": {"username": user, "groups": given.get("groups", [])}, "operation": given.get("operation", "CREATE")}
    if given.get("review"):
        yield (path.parent / given["review"]).read_text()
    elif given.get("claim"):
        yield json.dumps(review_of(given["claim"], namespace=namespace, user=user))
    elif given.get("workload"):
        yield _body(given["workload"], namespace, **who)
    else:
        pod, old = {"apiVersion": "v1", "kind": "Pod"}, given.get("oldPod")
        more = {"oldObject": {**pod, **old} if old else None, "subResource": given.get("subresource", "")}
        yield _body({**pod, **given["pod"]}, namespace, **who, **more)


# --- commands ------------------------------------------------------------------------------------------------------------

Part = tuple[str, Raw]


def _given(part: str, words: Sequence[str], files: dict[str, str], cluster: Sequence[Raw] | None = None) -> Part:
    return part, {"words": [*words], "files": files, "cluster": cluster}


def _each(
    part: str, words: Sequence[str], forms: Sequence[str], files: dict[str, str], cluster: Sequence[Raw] | None = None
) -> Iterator[Part]:
    """Yield the command in each of these forms."""
    yield from (_given(part, [words[0], "-o", form, *words[1:]], files, cluster) for form in forms)


def _read(folder: Path, *parts: str) -> dict[str, str]:
    found = [path for part in parts for path in (folder / part, *(folder / part).rglob("*"))]
    paths = sorted(path for path in found if path.is_file())
    return {str(path.relative_to(folder)): path.read_text() for path in paths}


def _examples() -> Iterator[Part]:
    files = {**_read(EXAMPLES, "."), **_read(ROOT / "policies", "library"), **_read(TESTS, "reviews")}
    for name in (name for name in files if not name.startswith(("library", "reviews", "policy-tests"))):
        one = {name: files[name]}
        yield from _each("examples", ["try", name], TRY, one)
        yield from _each(
            "examples", ["try", "--policies", "library", "--as", "Enforce", name], TRY, {**one, **_read(ROOT / "policies", "library")}
        )
        yield from _each("examples", ["why", "-f", name, "--facts", "cluster.yaml"], PAIR, files)
        if any(kind in files[name] for kind in OURS):
            yield from _each("examples", ["effective", "--policies", name, "-n", "research", "--gpus", "4"], TABLE, files)
    yield from _each("examples", ["effective", "--policies", "library", "-n", "x", "--workload", "Job", "--duration", "6h"], TABLE, files)
    yield from _each("examples", ["test", "policy-tests/cases"], TEST, files)
    yield from _each("examples", ["replay", "--processes", "1", "--diff", "--policies", "library", "reviews"], REPLAY, files)
    yield from _each("examples", ["replay", "--processes", "1", "--against", "library", "reviews"], REPLAY, files)
    yield from _scans("examples", ["--from", "cluster.yaml"], files, None)


def _scans(part: str, words: list[str], files: dict[str, str], cluster: Sequence[Raw] | None) -> Iterator[Part]:
    yield from _each(part, ["scan", *words], SCAN, files, cluster)
    yield _given(part, ["scan", "--diff", *words], files, cluster)
    yield _given(part, ["scan", "--suggest", "suggested", *words], files, cluster)


def _of_kinds() -> Iterator[Part]:
    facts = {"cluster.yaml": (EXAMPLES / "cluster.yaml").read_text()}
    for path in _kind_files():
        manifests = [case["manifest"] for case in yaml.safe_load(path.read_text())]
        yield from _each("kinds", ["try", "--facts", "cluster.yaml", path.name], TRY, {**facts, path.name: _dumped(manifests)})
        for number, manifest in enumerate(manifests):
            name = f"{path.stem}-{number}.yaml"
            yield from _each("kinds", ["why", "--facts", "cluster.yaml", "-f", name], PAIR, {**facts, name: _dumped([manifest])})


def _dumped(objects: Sequence[Raw]) -> str:
    return yaml.safe_dump_all(objects, sort_keys=False)


def _objects(text: str) -> list[Raw]:
    """Return the objects of a file; none of one that cannot be parsed."""
    try:
        return [one for one in yaml.safe_load_all(text) if isinstance(one, dict) and "kind" in one]
    except yaml.YAMLError:
        return []


@cache
def _files_of_inputs() -> dict[str, str]:
    files: dict[str, str] = yaml.safe_load(INPUTS.read_text())
    return files


def _of_inputs() -> Iterator[Part]:
    """Yield the commands on each group of files that begin alike, such as a pod and the nodes that it waits for."""
    for part, names in groupby(_files_of_inputs(), key=lambda name: (re.match(r"c\d+", name) or re.match(r"[^.]*", name))[0]):  # type: ignore[index]
        files = {name: _files_of_inputs()[name] for name in names}
        yield from _of_group(f"inputs/{part}", files)


def _of_group(part: str, files: dict[str, str]) -> Iterator[Part]:
    objects = [one for text in files.values() for one in _objects(text)]
    ours = {name for name, text in files.items() if (read := _objects(text)) and all(one["kind"] in OURS for one in read)}
    facts = {name for name, text in files.items() if any(one["kind"] in FACTS for one in _objects(text))}
    policies, known = (
        [word for name in sorted(names) for word in (option, name)] for option, names in (("--policies", ours), ("--facts", facts))
    )
    subjects = [name for name in files if name not in ours]
    if subjects:
        yield from _each(part, ["try", *policies, *known, *subjects], TRY, files)
    for name in subjects:
        if not all(one["kind"] in FACTS for one in _objects(files[name])):
            yield from _each(part, ["why", *policies, *known, "-f", name], PAIR, files)
    if policies:
        yield from _each(part, ["effective", *policies, *known, "-n", "ml"], TABLE, files)
    if any(one["kind"] in ("Node", "NodePool") for one in objects):
        yield from _scans(part, [word for name in files for word in ("--from", name)], files, None)
        served = [{**one, "metadata": {"namespace": "default", **one["metadata"]}} if one["kind"] == "Pod" else one for one in objects]
        yield from _each(
            part, ["audit", "--policies", *(ours or ["library"])], AUDIT, {**files, **_read(ROOT / "policies", "library")}, served
        )


def _of_clusters() -> Iterator[Part]:
    library, policies = (
        _read(ROOT / "policies", "library"),
        [{**one, "metadata": {"uid": "u", "generation": 1, **one["metadata"]}} for one in _library()],
    )
    examples = list(yaml.safe_load_all((EXAMPLES / "cluster.yaml").read_text()))
    recordings = {**_read(TESTS, "reviews"), **_read(EXAMPLES, "at-most-eight.yaml")}
    clusters = {"eks": eks.objects(), "gke": gke.objects(), "on-premises": on_premises.objects(), "examples": examples}
    for name, values in clusters.items():
        part = f"clusters/{name}"
        objects = [one for value in values for one in (value["items"] if value["kind"] == "List" else [value])]
        governed = [*objects, *policies]
        yield from _scans(part, ["--from", "dump.yaml"], {"dump.yaml": _dumped(objects)}, None)
        yield from _scans(part, [], {}, governed)
        yield from _each(part, ["audit"], AUDIT, {}, governed)
        yield from _each(part, ["audit", "--policies", "library", "--as", "Enforce"], AUDIT, library, objects)
        preview = [
            "audit",
            "--policies",
            "at-most-eight.yaml",
            "--enforce-preview",
            "ClusterGPUPolicy/at-most-eight",
            "--recordings",
            "reviews",
        ]
        yield from _each(part, preview, ("table", "json"), recordings, objects)
        yield from _each(part, ["replay", "--processes", "1", "--policies", "library"], REPLAY, library, governed)
        for namespace in sorted({one["metadata"]["namespace"] for one in objects if one["kind"] == "Pod"}):
            yield from _each(part, ["effective", "-n", namespace], TABLE, {}, governed)
        for pod in (one for one in objects if one["kind"] == "Pod"):
            where = ["-n", pod["metadata"]["namespace"], f"pod/{pod['metadata']['name']}"]
            yield from _each(part, ["why", *where], PAIR, {}, governed)
        yield _given(part, ["why", "job/absent"], {}, objects)


def _of_cases() -> Iterator[Part]:
    for folder in sorted((TESTS / "cases").iterdir()):
        yield from _each("cases", ["test", f"cases/{folder.name}"], TEST, _read(TESTS, f"cases/{folder.name}", "reviews"))
    yield from _each("cases", ["test", "claim_cases"], TEST, _read(TESTS, "claim_cases"))


def _of_berth() -> Iterator[Part]:
    lines = [
        "crds", "gpus", "gpus A100", "gpus H100-80GB", "gpus nothing", "version", "export scheduler", "webhooks", "webhooks --queues",
        "webhooks --claims Off", "webhooks --claims Fail --exclude-namespace x", "webhooks --url https://berth.example:8443",
        "completion bash", "completion zsh", "completion fish", "help", "nothing", "try absent.yaml",
        "try --platforms nowhere absent.yaml", "scan", "audit",
        "help serve", "help try", "help console", "help gpus", "help effective", "help audit", "help why", "help scan", "help test",
        "help replay", "help crds", "help webhooks", "help export", "help certs",
    ]  # fmt: skip
    yield from (_given("berth", line.split(), {}) for line in lines)


def _texts(part: str) -> Raw:
    deploy, docs = ROOT / "deploy", ROOT / "docs"
    paths = {
        "crds": sorted((deploy / "crds").rglob("*.yaml")),
        "chart": [path for path in sorted((deploy / "chart").rglob("*")) if path.suffix in (".yaml", ".json", ".tpl", ".txt")],
        "manifests": sorted(deploy.glob("*.yaml")),
        "docs": [docs / "reference.md", docs / "berth.1"],
    }[part]
    return {"texts": {str(path.relative_to(ROOT)): path.read_text() for path in paths}}
