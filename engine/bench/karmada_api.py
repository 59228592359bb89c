"""A minimal Kubernetes API with Karmada's kinds, in memory: generations, preconditions, lists and watches.

As a program (``python -m engine.bench.karmada_api``) it prints its URL; ``POST /bench/bind`` creates bindings,
``POST /bench/touch`` changes them as members' reports do, and ``GET /bench/figures`` has the times of the writes.
"""

import asyncio
import socket
import sys
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, cast

import msgspec
import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from engine.http import server as http_server
from engine.kubeapi.patching import patches

Json = dict[str, Any]
ObjectPath = tuple[str, str, str]
"""Plural, namespace and name of an object."""

CLUSTERS: Final = 10
SENT: Final = "bench.reballast.io/sent"
"""Annotation with the time of a change, in seconds since 1970."""

KINDS: Final = {
    "namespaces": ("v1", "Namespace", False),
    "deployments": ("apps/v1", "Deployment", True),
    "propagationpolicies": ("policy.karmada.io/v1alpha1", "PropagationPolicy", True),
    "clusters": ("cluster.karmada.io/v1alpha1", "Cluster", False),
    "resourcebindings": ("work.karmada.io/v1alpha2", "ResourceBinding", True),
    "clusterresourcebindings": ("work.karmada.io/v1alpha2", "ClusterResourceBinding", False),
    "leases": ("coordination.k8s.io/v1", "Lease", True),
    "events": ("v1", "Event", True),
}
_WATCHED: Final = ("clusters", "resourcebindings", "clusterresourcebindings")
_PAGE: Final = 500
_BATCH: Final = 50
_BINDINGS: Final = "resourcebindings"


class Api:
    """The API with its objects; ``writes`` are the successful writes: (plural, namespace, name, subresource)."""

    def __init__(self) -> None:
        self.objects: dict[ObjectPath, Json] = {}
        self.writes: list[tuple[str, str, str, str]] = []
        self._changes: list[tuple[int, str, bytes]] = []
        self._changed = asyncio.Event()
        self._version = 0
        self._uids = 0

    def put(self, plural: str, manifest: Json) -> Json:
        """Create or replace an object on behalf of a client other than the tested command; return it."""
        metadata = dict(manifest["metadata"])
        key = (plural, metadata.get("namespace", ""), metadata["name"])
        before = self.objects.get(key)
        if before is None:
            self._uids += 1
            metadata |= {"uid": f"uid-{self._uids}", "generation": 1}
        else:
            kept = before["metadata"]
            is_changed = before.get("spec") != manifest.get("spec")
            metadata |= {"uid": kept["uid"], "generation": kept["generation"] + is_changed}
        api_version, kind, _ = KINDS[plural]
        whole = {"apiVersion": api_version, "kind": kind, **manifest, "metadata": metadata}
        return self._store(key, whole, "ADDED" if before is None else "MODIFIED")

    def change(self, plural: str, namespace: str, name: str, **spec: object) -> Json:
        """Change fields of an object's spec on behalf of a client other than the tested command; return it."""
        stored = self.objects[plural, namespace, name]
        return self.put(plural, {**stored, "spec": {**stored["spec"], **spec}})

    def delete(self, plural: str, namespace: str, name: str) -> None:
        """Delete an object."""
        removed = self.objects.pop((plural, namespace, name))
        self._version += 1
        deleted = {**removed, "metadata": {**removed["metadata"], "resourceVersion": str(self._version)}}
        self._note("DELETED", plural, deleted)

    def of_kind(self, plural: str) -> list[Json]:
        """All objects of a kind."""
        return [result for (stored_plural, _, _), result in self.objects.items() if stored_plural == plural]

    def routes(self) -> list[Route]:
        return [
            Route("/api", self._core),
            Route("/apis", self._groups),
            Route("/{path:path}", self._answer, methods=["GET", "POST", "PATCH"]),
        ]

    def _store(self, path: ObjectPath, manifest: Json, change: str) -> Json:
        self._version += 1
        manifest["metadata"]["resourceVersion"] = str(self._version)
        self.objects[path] = manifest
        self._note(change, path[0], manifest)
        return manifest

    def _note(self, change: str, plural: str, manifest: Json) -> None:
        if plural in _WATCHED:
            line = msgspec.json.encode({"type": change, "object": manifest}) + b"\n"
            self._changes.append((self._version, plural, line))
            self._changed.set()
            self._changed = asyncio.Event()

    async def _core(self, _request: Request) -> Response:
        return JSONResponse(_discovery(core=True))

    async def _groups(self, _request: Request) -> Response:
        return JSONResponse(_discovery(core=False))

    async def _answer(self, request: Request) -> Response:
        segments = request.path_params["path"].split("/")[1:]
        segments = segments[1:] if segments[0].startswith("v1") else segments[2:]
        namespace = segments[1] if segments[0] == "namespaces" and segments[2:] else ""
        plural, name, subresource = [*(segments[2:] if namespace else segments), "", ""][:3]
        if request.method == "GET":
            return self._read(request, plural, namespace, name)
        body = msgspec.json.decode(await request.body(), type=Json)
        key = (plural, namespace, name or body["metadata"].get("name"))
        return self.answered(plural, lambda: self._write(request.method, key, subresource, body))

    def answered(self, _plural: str, write: Callable[[], Response]) -> Response:
        """Carry out a write and return the response; tests override this to inject faults."""
        return write()

    def _read(self, request: Request, plural: str, namespace: str, name: str) -> Response:
        if name:
            stored = self.objects.get((plural, namespace, name))
            return status(404, "NotFound") if stored is None else _json(stored)
        if request.query_params.get("watch") == "true":
            return StreamingResponse(self._watch(plural, int(request.query_params["resourceVersion"])))
        begin, items = int(request.query_params.get("continue", "0")), self.of_kind(plural)
        metadata = {"resourceVersion": str(self._version)}
        end = begin + min(_PAGE, int(request.query_params.get("limit", _PAGE)))
        if end < len(items):
            metadata["continue"] = str(end)
        return _json({"kind": "List", "metadata": metadata, "items": items[begin:end]})

    async def _watch(self, plural: str, start: int) -> AsyncGenerator[bytes]:
        at = 0
        while True:
            changed = self._changed
            while at < len(self._changes):
                batch = self._changes[at : at + _BATCH]
                at += len(batch)
                lines = [line for version, kind, line in batch if kind == plural and version > start]
                if lines:
                    yield b"".join(lines)
            await changed.wait()

    def _write(self, method: str, path: ObjectPath, subresource: str, body: Json) -> Response:
        stored = self.objects.get(path)
        if method == "POST":
            if stored is not None:
                return status(409, "AlreadyExists")
            self.writes.append((*path, ""))
            return _json(self.put(path[0], body), 201)
        if stored is None:
            return status(404, "NotFound")
        version = stored["metadata"]["resourceVersion"]
        if body["metadata"].get("resourceVersion", version) != version:
            return status(409, "Conflict")
        changed = cast("Json", patches.merge_patched(stored, body))
        metadata = {**changed["metadata"], "generation": stored["metadata"]["generation"]}
        if subresource:
            changed = {**stored, "status": changed.get("status"), "metadata": metadata}
        else:
            metadata["generation"] += stored.get("spec") != changed.get("spec")
            changed = {**changed, "status": stored.get("status", {}), "metadata": metadata}
        self.writes.append((*path, subresource))
        return _json(self._store(path, changed, "MODIFIED"))


class _Server(http_server.Server):
    """A server that stops at once when ``end`` is set, with its connections and requests.

    It installs no signal handlers: with several servers in one thread, the handlers of a stopped one would remain.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.end = asyncio.Event()

    async def main_loop(self) -> None:
        await self.end.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002  # as uvicorn's
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        tasks = list(self.server_state.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def serving(routes: Sequence[BaseRoute]) -> AsyncGenerator[str]:
    """Serve routes until the block ends; yields the URL."""
    with http_server.listen("127.0.0.1", 0) as listening:
        config = uvicorn.Config(
            Starlette(routes=routes), log_level="critical", timeout_graceful_shutdown=0, lifespan="off"
        )
        server = _Server(config)
        task = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.end.set()
            await asyncio.wait_for(task, 10)


def status(code: int, reason: str) -> Response:
    """A failure response with a Status object, as in Kubernetes."""
    content = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code}
    return JSONResponse(content, status_code=code)


def _json(content: Json, code: int = 200) -> Response:
    return Response(msgspec.json.encode(content), code, media_type="application/json")


def _discovery(*, core: bool) -> Json:
    items: list[Json] = []
    for plural, (api_version, kind, namespaced) in KINDS.items():
        group, slash, version = api_version.rpartition("/")
        if bool(slash) == core:
            continue
        entry = {
            "resource": plural,
            "responseKind": {"group": group, "version": version, "kind": kind},
            "scope": "Namespaced" if namespaced else "Cluster",
            "verbs": ["get", "list", "watch"] if plural in _WATCHED else ["get", "create"],
        }
        versions = [{"version": version, "resources": [entry], "freshness": "Current"}]
        items.append({"metadata": {"name": group}, "versions": versions})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items}


def cluster(name: str, cpu: str = "10", **labels: str) -> Json:
    """A cluster that serves Deployments."""
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"syncMode": "Push"},
        "status": {
            "apiEnablements": [{"groupVersion": "apps/v1", "resources": [{"kind": "Deployment"}]}],
            "resourceSummary": {"allocatable": {"cpu": cpu, "memory": "100Gi", "pods": "1000"}},
        },
    }


def divided(*clusters: str) -> Json:
    """A placement that divides replicas evenly."""
    return {
        "clusterAffinity": {"clusterNames": list(clusters)},
        "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"},
    }


def binding(name: str, replicas: int, placement: Json, scheduler: str = "reballast", **spec: object) -> Json:
    """A binding of a Deployment in the namespace ``default``."""
    resource = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": name}
    return {
        "metadata": {
            "name": f"{name}-deployment",
            "namespace": "default",
            "labels": {"propagationpolicy.karmada.io/permanent-id": "an-id"},
        },
        "spec": {
            "resource": {**resource, "uid": f"uid-of-{name}"},
            "replicas": replicas,
            "replicaRequirements": {"resourceRequest": {"cpu": "100m"}},
            "placement": placement,
            "schedulerName": scheduler,
            **spec,
        },
    }


class _Measured(Api):
    """The API with the benchmark's routes; it records each binding's creation and its first write by a client."""

    def __init__(self) -> None:
        super().__init__()
        self._created: dict[str, float] = {}
        self._placed: dict[str, float] = {}
        self._made = 0
        self._count = 0

    def routes(self) -> list[Route]:
        return [
            Route("/bench/bind", self._bind, methods=["POST"]),
            Route("/bench/touch", self._touch, methods=["POST"]),
            Route("/bench/written", self._written),
            Route("/bench/figures", self._figures),
            *super().routes(),
        ]

    async def _bind(self, request: Request) -> Response:
        names = [f"member{number}" for number in range(CLUSTERS)]
        scheduler = request.query_params["scheduler"]

        def make(_: int) -> None:
            self._made += 1
            self._created[f"web{self._made}-deployment"] = time.perf_counter()
            self.put(_BINDINGS, _sent(binding(f"web{self._made}", 10, divided(*names), scheduler)))

        await _paced(request, make)
        return JSONResponse({})

    async def _touch(self, request: Request) -> Response:
        bound = self.of_kind(_BINDINGS)

        def touch(number: int) -> None:
            before = self.objects[_BINDINGS, "default", bound[number % len(bound)]["metadata"]["name"]]
            reported = {**before.get("status", {}), "aggregatedStatus": [{"clusterName": f"c{number}"}]}
            self.put(_BINDINGS, _sent({**before, "status": reported}))

        await _paced(request, touch)
        return JSONResponse({})

    async def _written(self, _request: Request) -> Response:
        return JSONResponse(self._count)

    async def _figures(self, _request: Request) -> Response:
        spans_s = [placed - self._created[name] for name, placed in self._placed.items()]
        return JSONResponse({"placed_s": spans_s, "writes": self._count})

    def answered(self, _plural: str, write: Callable[[], Response]) -> Response:
        before = len(self.writes)
        response = write()
        for plural, _, name, _ in self.writes[before:]:
            if plural == _BINDINGS:
                self._count += 1
                self._placed.setdefault(name, time.perf_counter())
        return response


async def _paced(request: Request, act: Callable[[int], None]) -> None:
    """Call ``act`` as often as the request's ``count``, at its rate ``per_second``; without pauses if the rate is 0."""
    count, per_second = int(request.query_params["count"]), float(request.query_params["per_second"])
    start_s = time.perf_counter()
    for number in range(count):
        act(number)
        ahead_s = start_s + number / per_second - time.perf_counter() if per_second else 0.0
        if ahead_s > 0 or number % _BATCH == 0:
            await asyncio.sleep(max(ahead_s, 0))


def _sent(manifest: Json) -> Json:
    metadata = manifest["metadata"]
    annotations = {**metadata.get("annotations", {}), SENT: str(time.time())}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


async def _main() -> None:
    api = _Measured()
    for number in range(CLUSTERS):
        api.put("clusters", cluster(f"member{number}", cpu="1000000"))
    async with serving(api.routes()) as url:
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    uvloop.run(_main())
