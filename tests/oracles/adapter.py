"""The one module of the oracles that names modules of Berth: the application of the first port, and the command in this process.

What differs from run to run is put right here: the time, the place on disk, ports, and the durations among the metrics.
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import importlib
import io
import json
import os
import pkgutil
import platform
import re
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

import cli
from cli import main
from server.limits import Limits
from sources.sources import Sources, SourcesError, load_sources
from telemetry import log
from telemetry.metrics import Metrics
from tests.oracles.layers import Seen, data_of, rendered_data, sentences_of
from tests.support.calls.in_process import ask
from tests.support.module_imports import LAYERS, ROOT
from webhook.admission.app import AdmissionState, App, starlette_of
from webhook.admission.namespace_shares import NamespaceShares

Raw = dict[str, Any]
NOW = datetime.datetime(2026, 11, 25, 12, tzinfo=datetime.UTC)
DURATION = re.compile(r"_seconds(_sum|_bucket)?$|_created$|_bytes$|^process_|^python_")
SERVED = {
    "v1": ("Namespace", "Node", "Pod", "Event"),
    "apps/v1": ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"),
    "batch/v1": ("Job", "CronJob"),
    "berth.dev/v1alpha1": ("ClusterGPUPolicy", "GPUPolicy", "GPUNodeTemplate"),
    "karpenter.sh/v1": ("NodePool",),
    "karpenter.k8s.aws/v1": ("EC2NodeClass",),
    "resource.k8s.io/v1": ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"),
}
"""Kinds that the cluster of a command has, by API version, besides those of its objects."""


class _Patient(NamespaceShares):
    """No namespace is ever over its share, however slow the machine is."""

    def is_tight(self, now: float) -> bool:
        return False


class _Stopped(datetime.datetime):
    """A clock that stands still."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> _Stopped:
        return cls.fromtimestamp(NOW.timestamp(), tz)


def answers(session: Raw) -> Iterator[Seen]:
    """Post the reviews of a session under its world; yield each answer with its log lines, then the metrics."""
    lines: list[bytes] = []
    sink = log._sink
    log.to(lines.append)
    try:
        yield from _answers(session["world"], session["reviews"], lines)
    finally:
        log.to(sink)


def _answers(world: Raw, reviews: Sequence[tuple[str, str]], lines: list[bytes]) -> Iterator[Seen]:
    try:
        snapshot = _snapshot(world)
    except SourcesError as error:
        errors = [re.sub(r"\S*/(policies|catalog)\.json", r"\1", str(one)) for one in error.errors]
        yield Seen("world", data_of(errors), errors)
        return
    metrics = Metrics("0")
    metrics.snapshot_swapped(snapshot, 0.0)
    admission = AdmissionState(limits=Limits(shed_after=10**9), metrics=metrics, snapshot=snapshot, shares=_Patient())
    app = starlette_of(App(admission))
    for path, body in reviews:
        answer = ask(app, path, body.encode())
        events = [json.loads(line) for line in lines]
        lines.clear()
        yield _answered(path, answer.status, {**answer.headers}, answer.body.decode(), events)
    yield _counted(metrics.exposition("")[0].decode())


def _snapshot(world: Raw) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        policies, catalog = Path(folder, "policies.json"), Path(folder, "catalog.json")
        policies.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": world["policies"]}))
        overlay = world.get("catalog")
        catalog.write_text(json.dumps(overlay[0] if overlay else None))
        sources = Sources(
            policies=(str(policies),),
            catalog=str(catalog) if overlay else None,
            platforms=tuple(world["platforms"]),
            mig_strategy=world["migStrategy"],
            queues=tuple(world["queues"]),
            max_mode=world["maxMode"],
            console_url=world["consoleUrl"],
        )
        return load_sources(sources, world["facts"], all_nodes=world["allNodes"]).snapshot


def _answered(path: str, status: int, headers: Mapping[str, str], body: str, events: list[Raw]) -> Seen:
    answer: Any = body
    if headers["content-type"] == "application/json":
        answer = json.loads(body)
        if patch := answer["response"].get("patch"):
            answer["response"]["patch"] = json.loads(base64.b64decode(patch))
    events = [{key: value for key, value in event.items() if key != "time"} for event in events]
    events = json.loads(json.dumps(events).replace(str(ROOT), "ROOT"))  # a trace names files of this checkout
    said = {"status": status, "headers": sorted(headers), "answer": answer, "log": events}
    return Seen(path, data_of(said), [*sentences_of(said)])


def _counted(exposition: str) -> Seen:
    """Return what was counted: names, labels and values, of durations their names and labels alone."""
    data, text = [], []
    for family in text_string_to_metric_families(exposition):
        text.append([family.name, family.type, family.documentation])
        for sample in family.samples:
            value = None if DURATION.search(sample.name) else sample.value
            if not sample.name.endswith(("_created", "_bucket")) and not sample.name.startswith(("process_", "python_")):
                data.append([sample.name, sample.labels, value])
    return Seen("metrics", data, text)


# --- commands ------------------------------------------------------------------------------------------------------------


def command(given: Raw) -> Iterator[Seen]:
    """Run ``berth`` with these words among these files, and with a cluster of these objects if there are any."""
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place), _stopped_clock(), _served(given.get("cluster")) as server:
        folder = Path(os.path.realpath(place))
        for name, text in given["files"].items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(text, encoding="utf-8")
        Path("kubeconfig").write_text(_kubeconfig(server))
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "KUBECONFIG": "kubeconfig" if server else "", "COLUMNS": "100"}
        with mock.patch.dict(os.environ, environment, clear=True), mock.patch.object(sys, "argv", ["berth"]):
            code, output, errors = _typed(given["words"])
        written = [(path, path.read_text()) for path in sorted(Path().rglob("*")) if path.is_file() and str(path) != "kubeconfig"]
        files = {str(path): text for path, text in written if given["files"].get(str(path)) != text}
    texts = [_placed(text, str(folder), server) for text in (output, errors, *files.values())]
    data = [code, *map(rendered_data, texts), sorted(files)]
    yield Seen(" ".join(given["words"]), data, texts)


def _typed(words: list[str]) -> tuple[int, str, str]:
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            code = main.main(words)
        except SystemExit as left:
            code = int(left.code or 0)
        except Exception as error:  # noqa: BLE001 - a crash is an answer too, until somebody mends it
            code = -1
            print(f"crashed: {type(error).__name__}: {error}", file=errors)
    return code, output.getvalue(), errors.getvalue()


def _placed(text: str, folder: str, server: str) -> str:
    """Return an output as it would be anywhere: in no folder, of no commit, on no machine and under no Python."""
    places = {folder: "FOLDER", server: "http://CLUSTER", sys.executable: "PYTHON", platform.python_version(): "VERSION"}
    places[f"{platform.system()} {platform.machine()}"] = "MACHINE"
    for found, name in places.items():
        text = text.replace(found, name) if found else text
    return re.sub(r"\b[0-9a-f]{40}\b", "COMMIT", text)


@contextlib.contextmanager
def _stopped_clock() -> Iterator[None]:
    """Every module of Berth that reads the time of day reads the same one."""
    for found in pkgutil.walk_packages(cli.__path__, "cli."):
        importlib.import_module(found.name)
    modules = [vars(module) for name, module in sys.modules.items() if name.partition(".")[0] in LAYERS]
    reading = [names for names in modules if names.get("datetime") is datetime.datetime]
    for names in reading:
        names["datetime"] = _Stopped
    try:
        yield
    finally:
        for names in reading:
            names["datetime"] = datetime.datetime


def rendering(variant: str) -> Seen | None:
    """Render a variant of the chart; None where Helm is not to be had."""
    from tests.deploy.variants import VARIANTS
    from tests.testcluster.programs import NoProgram

    try:
        objects = VARIANTS[variant].objects()
    except NoProgram:
        return None
    return Seen(variant, objects, [json.dumps(one) for one in objects])


def variants() -> list[str]:
    """Return the names of the variants of the chart."""
    from tests.deploy.variants import VARIANTS

    return sorted(VARIANTS)


# --- a cluster of recorded objects ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def _served(objects: Sequence[Raw] | None) -> Iterator[str]:
    """Yield the address of an API server that has these objects; "" if there are none."""
    if objects is None:
        yield ""
        return
    stored = [{**one, "metadata": {"resourceVersion": "1", **one["metadata"]}} for one in objects]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, value = _reply(urlsplit(self.path).path, stored)
            text = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Pass over callers that hang up."""

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def _reply(path: str, objects: Sequence[Raw]) -> tuple[int, Raw]:
    """Return the status and the body for a GET of a list or of an object."""
    parts = path.strip("/").split("/")
    if parts == ["version"]:
        return 200, {"major": "1", "minor": "36", "gitVersion": "v1.36.0"}
    group, version, *rest = parts[1:] if parts[0] == "apis" else ["", *parts[1:]]
    api_version, namespace = f"{group}/{version}".lstrip("/"), ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, *rest = rest[1:]
    plural, name = [*rest, ""][:2]
    kinds = {*SERVED.get(api_version, ()), *(one["kind"] for one in objects if one["apiVersion"] == api_version)}
    kind = next((kind for kind in kinds if _plural(kind) == plural), "")
    listed = [one for one in objects if (one["apiVersion"], one["kind"]) == (api_version, kind)]
    listed = [one for one in listed if not namespace or one["metadata"].get("namespace") == namespace]
    if name:
        listed = [one for one in listed if one["metadata"]["name"] == name]
    if not kind or (name and not listed):
        return 404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": f"no {path}"}
    return 200, listed[0] if name else {
        "kind": f"{kind}List",
        "apiVersion": api_version,
        "metadata": {"resourceVersion": "1"},
        "items": listed,
    }


def _plural(kind: str) -> str:
    lower = kind.lower()
    return f"{lower[:-1]}ies" if lower.endswith("y") else f"{lower}es" if lower.endswith("s") else f"{lower}s"


def _kubeconfig(server: str) -> str:
    cluster, user = f"{{name: c, cluster: {{server: '{server}'}}}}", "{name: u, user: {}}"
    context = "{name: x, context: {cluster: c, user: u, namespace: default}}"
    return f"{{apiVersion: v1, kind: Config, clusters: [{cluster}], users: [{user}], contexts: [{context}], current-context: x}}"
