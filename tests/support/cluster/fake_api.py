"""An API server of one kind over a real socket, which misbehaves when it is told to: what a real one does once in a year."""

from __future__ import annotations

import asyncio
import copy
import json
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web

from cluster.client.api_client import Access, Client
from cluster.watch.kinds import Watched
from kube.tree import Raw

LIST_FAULTS = ("list 410", "list 410 in the middle", "list 500", "list 429", "list cut", "list html", "list of others", "list 404 once")
WATCH_FAULTS = (
    "watch 410", "watch 500", "watch html", "event 410", "event 500", "event cut", "event html", "event unknown", "event of others",
    "event without name", "event without version", "event without object", "event from before", "event of nothing",
    "event again", "bookmark", "bookmark from before", "end", "abort", "silence", "split", "swap", "long line", "empty lines",
)  # fmt: skip


class FakeApi:
    """Its store, and what it will do wrong: ``faults``, each once, in their order, as soon as there is an occasion."""

    def __init__(self, watched: Watched, served: str = "") -> None:
        self.watched = watched
        self.served = served or watched.versions[0]
        self.streams = False
        """Whether lists are streamed"""
        self.limits: list[int] = []
        """The page sizes that were asked for"""
        """the only version that it has"""
        self.version = 100
        self.store: dict[str, Raw] = {}
        self.history: list[tuple[int, str, Raw]] = []
        self.compacted = 0
        self.faults: deque[str] = deque()
        self.definition: Raw | None = {"metadata": {"name": watched.resource}}
        """our CustomResourceDefinition; None is gone"""
        self.counts: dict[str, int] = {}
        self.page = 3
        self.token: str | None = None
        """the one that is accepted; None accepts all"""
        self.forbidden = False
        self._changed = asyncio.Condition()

    @property
    def api_version(self) -> str:
        return self.watched.api_version(self.served)

    async def put(self, name: str, spec: Any) -> None:
        """Created, or changed."""
        self.version += 1
        change = "MODIFIED" if name in self.store else "ADDED"
        self.store[name] = self._object(name, spec)
        await self._happened(change, self.store[name])

    async def delete(self, name: str) -> None:
        """If it is there."""
        if (gone := self.store.pop(name, None)) is not None:
            self.version += 1
            last = copy.deepcopy(gone)
            last["metadata"]["resourceVersion"] = str(self.version)
            await self._happened("DELETED", last)

    async def put_many(self, count: int) -> None:
        """Objects m0, m1 ... at once."""
        for number in range(count):
            self.version += 1
            self.store[f"m{number}"] = self._object(f"m{number}", number)
            self.history.append((self.version, "ADDED", self.store[f"m{number}"]))
        async with self._changed:
            self._changed.notify_all()

    def compact(self) -> None:
        """Watches from before now are denied."""
        self.compacted = self.version

    async def wrong(self, fault: str) -> None:
        self.faults.append(fault)
        async with self._changed:
            self._changed.notify_all()

    def seen(self) -> dict[str, Raw]:
        """What whoever follows should have: as trimmed."""
        return {name: self.watched.trim(value, self.api_version, self.watched.kind) for name, value in self.store.items()}

    def _object(self, name: str, spec: Any) -> Raw:
        metadata: Raw = {"name": name, "uid": f"u-{name}", "resourceVersion": str(self.version), "labels": {"x": str(spec)}}
        if self.watched.namespaced:
            metadata["namespace"] = "ns"
        return {"apiVersion": self.api_version, "kind": self.watched.kind, "metadata": metadata, "spec": spec}

    async def _happened(self, change: str, value: Raw) -> None:
        self.history.append((self.version, change, copy.deepcopy(value)))
        async with self._changed:
            self._changed.notify_all()

    def _fault(self, prefix: str) -> str:
        """The next, if it is one of these."""
        return self.faults.popleft() if self.faults and self.faults[0].startswith(prefix) else ""

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if self.token is not None and request.headers.get("Authorization") != f"Bearer {self.token}":
            self._count("401")
            return status(401, "Unauthorized")
        if request.path == "/version":
            self._count("version")
            return web.json_response({"major": "1"})
        if request.path == self.watched.definition:
            self._count("definition")
            return web.json_response(self.definition) if self.definition is not None else status(404, "no such definition")
        if request.path != self.watched.path(self.served):
            return status(404, "the server could not find the requested resource")
        if self.forbidden:
            return status(403, f'{self.watched.resource} is forbidden: User "x" cannot list resource')
        if "sendInitialEvents" in request.query:
            return await self._stream(request)
        return await (self._watch(request) if "watch" in request.query else self._list(request))

    async def _list(self, request: web.Request) -> web.StreamResponse:
        self._count("list")
        more = request.query.get("continue", "")
        if (more or len(self.store) <= self.page) and self._fault("list 410 in the middle") and more:
            return status(410, "the continue has expired")  # a list of one page has no middle
        if self.faults and self.faults[0] != "list 410 in the middle" and (fault := self._fault("list ")):
            if fault == "list hangs":
                await asyncio.sleep(3600)
            return self._bad_list(fault)
        if self.definition is None:
            return status(404, "the server could not find the requested resource")
        at, start = (int(part) for part in more.split("-")) if more else (self.version, 0)
        names = sorted(self.store)
        if at != self.version:  # one state of the store for all pages, which this one does not keep
            return status(410, "the continue has expired")
        end = start + min(self.page, int(request.query["limit"]))
        self.limits.append(int(request.query["limit"]))
        metadata = {"resourceVersion": str(at), "continue": f"{at}-{end}" if names[end:] else ""}
        items = [self.store[name] for name in names[start:end]]
        return web.json_response({"kind": f"{self.watched.kind}List", "apiVersion": self.api_version, "metadata": metadata, "items": items})

    def _bad_list(self, fault: str) -> web.Response:
        whole = {"kind": f"{self.watched.kind}List", "metadata": {"resourceVersion": str(self.version)}, "items": []}
        if fault == "list 429":
            return status(429, "too many requests", {"Retry-After": "0"})
        if fault == "list cut":
            return web.Response(text=json.dumps(whole)[:-5], content_type="application/json")
        if fault == "list html":
            return web.Response(text="<html>Sign in</html>", content_type="text/html")
        if fault == "list of others":
            return web.json_response(whole | {"kind": "PodList"})
        return status({"list 410": 410, "list 404 once": 404}.get(fault, 500), fault)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        """The list as the beginning of a watch (KEP-3157)."""
        if not self.streams:
            return status(422, "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")
        self._count("stream")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        if (fault := self._fault("stream ")) == "stream hangs":
            await asyncio.sleep(3600)
        lines: list[Raw] = [{"type": "ADDED", "object": value} for value in self.store.values()]
        if fault == "stream with changes" and lines:
            old = copy.deepcopy(lines[0]["object"])
            old["spec"] = "old"
            lines = [{"type": "ADDED", "object": old}, *lines[1:], {"type": "MODIFIED", "object": lines[0]["object"]}]
            gone = self._object("gone", 0)
            lines += [{"type": "ADDED", "object": gone}, {"type": "DELETED", "object": gone}]
        annotations = {"k8s.io/initial-events-end": "true"} if fault != "stream without end" else {}
        mark: Raw = {"kind": self.watched.kind, "metadata": {"resourceVersion": str(self.version), "annotations": annotations}}
        for line in [*lines, {"type": "BOOKMARK", "object": mark}][: 1 if fault == "stream cut" else None]:
            await response.write(json.dumps(line).encode() + b"\n")
        return response

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        self._count("watch")
        at, deadline = int(request.query["resourceVersion"]), asyncio.get_running_loop().time() + int(request.query["timeoutSeconds"])
        fault = self._fault("watch ")
        if fault == "watch html":
            return web.Response(text="<html>Sign in</html>", content_type="text/html")
        if fault == "watch 500":
            return status(500, "etcdserver: leader changed")
        if fault or at < self.compacted or self.definition is None:
            return status(410 if self.definition is not None else 404, "too old resource version")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        await Stream(self, request, response, at, deadline).run()
        return response


class Stream:
    """One watch."""

    def __init__(self, api: FakeApi, request: web.Request, response: web.StreamResponse, at: int, deadline: float) -> None:
        self._api, self._request, self._response, self._at, self._deadline = api, request, response, at, deadline

    async def run(self) -> None:
        """Until its time is over, or a fault ends it."""
        loop = asyncio.get_running_loop()
        while (left := self._deadline - loop.time()) > 0:
            faults = self._api.faults
            if faults and not faults[0].startswith(("list ", "watch ")):
                if not await self._misbehave(faults.popleft()):
                    return
            elif faults and faults[0].startswith(("list ", "watch ")):
                return  # so that there is an occasion
            waiting = self._waiting()
            if waiting:
                await self._send(b"".join(line(change, value) for _, change, value in waiting))
                self._at = waiting[-1][0]
                continue
            async with self._api._changed:
                if not self._waiting() and not faults:
                    try:
                        await asyncio.wait_for(self._api._changed.wait(), left)
                    except TimeoutError:
                        return

    def _waiting(self) -> list[tuple[int, str, Raw]]:
        return [one for one in self._api.history if one[0] > self._at]

    async def _send(self, text: bytes) -> None:
        await self._response.write(text)

    async def _misbehave(self, fault: str) -> bool:
        """Whether the watch goes on."""
        if fault == "end":
            return False
        if fault == "abort":
            assert self._request.transport is not None
            self._request.transport.abort()
            return False
        if fault == "silence":
            await asyncio.sleep(5)
            return False
        if fault in ("split", "swap"):
            await self._odd_order(fault)
            return True
        await self._send(self._text(fault))
        return fault in ("event again", "bookmark", "empty lines", "event of nothing") or "cut" not in fault

    async def _odd_order(self, fault: str) -> None:
        """A character in two pieces; or two events the wrong way round."""
        before = self._api.version
        await self._api.put("swapped-a", "ä€😀" * 3)
        await self._api.put("swapped-b", "ä€😀" * 3)
        waiting = self._waiting()
        if fault == "swap":
            waiting[-2:] = waiting[:-3:-1]
        text = b"".join(json.dumps({"type": change, "object": value}, ensure_ascii=False).encode() + b"\n" for _, change, value in waiting)
        self._at = self._api.version
        assert self._at > before
        middle = text.index("€".encode()) + 1
        await self._send(text[:middle])
        await asyncio.sleep(0.01)
        await self._send(text[middle:])

    def _text(self, fault: str) -> bytes:
        api = self._api
        good = api._object("bad", "bad")
        metadata = good["metadata"]
        texts: dict[str, Callable[[], bytes]] = {
            "event 410": lambda: line("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}),
            "event 500": lambda: line("ERROR", {"kind": "Status", "code": 500, "message": "storage is (re)initializing"}),
            "event cut": lambda: line("ADDED", good)[:40],
            "event html": lambda: b"<html>\n<body>502</body>\n</html>\n",
            "event unknown": lambda: line("PATCHED", good),
            "event of others": lambda: line("ADDED", good | {"kind": "Pod"}),
            "event without name": lambda: line("ADDED", good | {"metadata": {**metadata, "name": ""}}),
            "event without version": lambda: line("ADDED", good | {"metadata": {**metadata, "resourceVersion": None}}),
            "event without object": lambda: b'{"type": "ADDED"}\n',
            "event from before": lambda: line("ADDED", good | {"metadata": {**metadata, "resourceVersion": "7"}}),
            "event of nothing": lambda: b"null\n",
            "event again": lambda: self._last(),
            "bookmark": lambda: line("BOOKMARK", {"kind": api.watched.kind, "metadata": {"resourceVersion": str(self._at)}}),
            "bookmark from before": lambda: line("BOOKMARK", {"kind": api.watched.kind, "metadata": {"resourceVersion": "7"}}),
            "long line": lambda: b'{"type": "ADDED", "object": "' + b"x" * (17 << 20) + b'"}\n',
            "empty lines": lambda: b"\n\n",
        }
        return texts[fault]()

    def _last(self) -> bytes:
        sent = [one for one in self._api.history if one[0] <= self._at]
        return line(sent[-1][1], sent[-1][2]) if sent else b"\n"


def line(change: str, value: Raw) -> bytes:
    return json.dumps({"type": change, "object": value}).encode() + b"\n"


def status(code: int, message: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.json_response({"kind": "Status", "code": code, "message": message}, status=code, headers=headers)


@asynccontextmanager
async def serving(api: FakeApi, folder: Path) -> AsyncIterator[Client]:
    """A client of it, with a kubeconfig in ``folder``."""
    runner = web.AppRunner(_application(api), shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    client = await Client.connect(Access(str(kubeconfig(folder, f"http://127.0.0.1:{port}", api.token))))
    try:
        yield client
    finally:
        await client.close()
        await runner.cleanup()


def _application(api: FakeApi) -> web.Application:
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", api.answer)
    return application


def kubeconfig(folder: Path, server: str, token: str | None = None, ca: Path | None = None) -> Path:
    """Written, of one user."""
    cluster = {"server": server} | ({"certificate-authority": str(ca)} if ca else {})
    text = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": token} if token else {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "here"}}],
        "current-context": "x",
    }
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(text))
    return file
