"""A Kubernetes API in memory with Karmada's kinds: preconditions, generations, watches, and faults on demand."""

import asyncio
import json
import socket
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final, cast

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from engine.agent.kubeconfigs import Access

Json = dict[str, Any]
Place = tuple[str, str, str]
"""Plural, namespace and name of an object."""

KINDS: Final = {
    "clusters": ("cluster.karmada.io/v1alpha1", "Cluster", False),
    "resourcebindings": ("work.karmada.io/v1alpha2", "ResourceBinding", True),
    "clusterresourcebindings": ("work.karmada.io/v1alpha2", "ClusterResourceBinding", False),
    "leases": ("coordination.k8s.io/v1", "Lease", True),
    "events": ("v1", "Event", True),
}
_WATCHED: Final = ("clusters", "resourcebindings", "clusterresourcebindings")


class Api:
    """The objects, and the writes that were answered with success: (plural, namespace, name, subresource)."""

    def __init__(self) -> None:
        self.objects: dict[Place, Json] = {}
        self.writes: list[tuple[str, str, str, str]] = []
        self.statuses: Counter[int] = Counter()
        self.faults: list[str] = []
        """What happens to the next writes: ``cut`` ends the connection, ``lost`` after it, a code is answered."""
        self._changes: list[tuple[int, str, str, Json]] = []
        self._changed = asyncio.Event()
        self._version = 0
        self._uids = 0

    def put(self, plural: str, manifest: Json) -> Json:
        """Create or replace an object as its other writers do; return it."""
        metadata = dict(manifest["metadata"])
        place = (plural, metadata.get("namespace", ""), metadata["name"])
        before = self.objects.get(place)
        if before is None:
            self._uids += 1
            metadata |= {"uid": f"uid-{self._uids}", "generation": 1}
        else:
            kept = before["metadata"]
            is_changed = before.get("spec") != manifest.get("spec")
            metadata |= {"uid": kept["uid"], "generation": kept["generation"] + is_changed}
        api_version, kind, _ = KINDS[plural]
        return self._store(
            place,
            {"apiVersion": api_version, "kind": kind, **manifest, "metadata": metadata},
            "ADDED" if before is None else "MODIFIED",
        )

    def change(self, plural: str, namespace: str, name: str, **spec: object) -> Json:
        """Change fields of an object's spec as its other writers do; return it."""
        found = self.objects[plural, namespace, name]
        return self.put(plural, {**found, "spec": {**found["spec"], **spec}})

    def delete(self, plural: str, namespace: str, name: str) -> None:
        found = self.objects.pop((plural, namespace, name))
        self._version += 1
        gone = {**found, "metadata": {**found["metadata"], "resourceVersion": str(self._version)}}
        self._note("DELETED", plural, gone)

    def of_kind(self, plural: str) -> list[Json]:
        return [found for (each, _, _), found in self.objects.items() if each == plural]

    def application(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/api", self._core),
                Route("/apis", self._groups),
                Route("/{path:path}", self._answer, methods=["GET", "POST", "PATCH"]),
            ]
        )

    def _store(self, place: Place, manifest: Json, change: str) -> Json:
        self._version += 1
        manifest["metadata"]["resourceVersion"] = str(self._version)
        self.objects[place] = manifest
        self._note(change, place[0], manifest)
        return manifest

    def _note(self, change: str, plural: str, manifest: Json) -> None:
        if plural in _WATCHED:
            self._changes.append((self._version, change, plural, manifest))
            self._changed.set()
            self._changed = asyncio.Event()

    async def _core(self, _request: Request) -> Response:
        return JSONResponse(self._discovery(core=True))

    async def _groups(self, _request: Request) -> Response:
        return JSONResponse(self._discovery(core=False))

    def _discovery(self, *, core: bool) -> Json:
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

    async def _answer(self, request: Request) -> Response:
        words = request.path_params["path"].split("/")[1:]
        words = words[1:] if words[0].startswith("v1") else words[2:]
        namespace = words[1] if words[0] == "namespaces" else ""
        plural, name, subresource = [*(words[2:] if namespace else words), "", ""][:3]
        if request.method == "GET":
            return self._read(request, plural, namespace, name)
        body = json.loads(await request.body())
        fault = self.faults.pop(0) if self.faults and plural != "leases" else ""
        if fault.isdecimal():
            response: Response = _status(int(fault), "Fault")
        elif fault == "cut":
            response = StreamingResponse(_nothing())
        else:
            response = self._write(
                request.method, plural, namespace, name or body["metadata"].get("name"), body, subresource
            )
            response = StreamingResponse(_nothing()) if fault == "lost" else response
        self.statuses[response.status_code] += 1
        return response

    def _read(self, request: Request, plural: str, namespace: str, name: str) -> Response:
        if name:
            found = self.objects.get((plural, namespace, name))
            return _status(404, "NotFound") if found is None else JSONResponse(found)
        if request.query_params.get("watch") == "true":
            return StreamingResponse(self._watch(plural, int(request.query_params["resourceVersion"])))
        return JSONResponse(
            {
                "kind": "List",
                "metadata": {"resourceVersion": str(self._version)},
                "items": self.of_kind(plural),
            }
        )

    async def _watch(self, plural: str, start: int) -> AsyncGenerator[bytes]:
        at = 0
        while True:
            changed = self._changed
            while at < len(self._changes):
                version, change, kind, manifest = self._changes[at]
                at += 1
                if kind == plural and version > start:
                    yield json.dumps({"type": change, "object": manifest}).encode() + b"\n"
            await changed.wait()

    def _write(
        self, method: str, plural: str, namespace: str, name: str, body: Json, subresource: str
    ) -> Response:
        place = (plural, namespace, name)
        found = self.objects.get(place)
        if method == "POST":
            if found is not None:
                return _status(409, "AlreadyExists")
            self.writes.append((*place, ""))
            return JSONResponse(self.put(plural, body), status_code=201)
        if found is None:
            return _status(404, "NotFound")
        if (
            body["metadata"].get("resourceVersion", found["metadata"]["resourceVersion"])
            != found["metadata"]["resourceVersion"]
        ):
            return _status(409, "Conflict")
        merged = _merged(found, body)
        metadata = {**merged["metadata"], "generation": found["metadata"]["generation"]}
        if subresource:
            merged = {**found, "status": merged.get("status"), "metadata": metadata}
        else:
            metadata["generation"] += found.get("spec") != merged.get("spec")
            merged = {**merged, "status": found.get("status", {}), "metadata": metadata}
        self.writes.append((*place, subresource))
        return JSONResponse(self._store(place, merged, "MODIFIED"))


async def _nothing() -> AsyncGenerator[bytes]:
    raise ConnectionAbortedError
    yield b""


@asynccontextmanager
async def serving(api: Api) -> AsyncGenerator[Access]:
    """Serve the API until the block ends."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(128)
        config = uvicorn.Config(
            api.application(), log_level="critical", timeout_graceful_shutdown=0, lifespan="off"
        )
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield Access(server=f"http://127.0.0.1:{listening.getsockname()[1]}")
        finally:
            server.should_exit = True
            server.force_exit = True
            await asyncio.wait_for(task, 10)


def _merged(value: Json, patch: Json) -> Json:
    """A merge patch (RFC 7386)."""
    result = dict(value)
    for name, change in patch.items():
        if change is None:
            result.pop(name, None)
        elif isinstance(change, dict):
            result[name] = _merged(result.get(name) or {}, cast("Json", change))
        else:
            result[name] = change
    return result


def _status(code: int, reason: str) -> Response:
    content = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code}
    return JSONResponse(content, status_code=code)
