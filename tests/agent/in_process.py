"""A control plane and a member in memory, for an agent in the test's process: the test decides what comes when."""

import asyncio
import copy
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from engine.agent import messages
from engine.agent.agent_metrics import ClusterCounters
from engine.agent.checkpoint import Checkpoint
from engine.agent.configuration import Configuration
from engine.agent.kubeconfigs import Access
from engine.agent.member import MemberAgent, Settings
from engine.bench import karmada_api
from engine.domain import marks
from events.shapes import WorkloadRef
from tests.waiting import until_async

Json = dict[str, Any]
NAME: Final = "one"
_ROOT: Final = f"/api/v1/agents/{NAME}"
_PATH: Final = "/apis/apps/v1/deployments"
_OBJECT: Final = "/apis/apps/v1/namespaces/default/deployments/{name}"
_MARKED: Final = ("labels", "annotations")
OWNED: Final[Json] = {
    "manager": "reballast",
    "operation": "Apply",
    "fieldsV1": {"f:spec": {"f:replicas": {}}},
}
"""The entry in ``managedFields`` of an object that an agent has applied."""


def key_of(name: str) -> str:
    return f"default/{name}-deployment"


class Gateway:
    """The control plane: sends works, and keeps the newest report of each workload."""

    def __init__(self) -> None:
        self.reports: dict[str, messages.WorkloadReport] = {}
        self.gone: list[messages.GoneReport] = []
        self.capacities: list[messages.CapacityReport] = []
        self.ready: list[bool] = []
        """The reported health of the member's API."""
        self.namespaces_read: list[int] = []
        """The statuses of the answers about namespaces."""
        self.calls_read: list[int] = []
        """The statuses of the answers to requests for the feed of users' requests: ``call_faults`` first."""
        self.call_faults: list[int] = []
        self.feed_breaks: list[float] = []
        """Seconds after which the next feeds of works end without their end marker."""
        self.feed_times: list[tuple[float, float]] = []
        """When the broken feeds of works began and ended."""
        self.newest: dict[str, messages.Work] = {}
        """The newest works of bindings that are not in the list of works."""
        self.work_faults: list[int] = []
        """The statuses of the next answers to requests for a newest work, before others."""
        self.overwrites = False
        """Whether works may overwrite objects that exist already."""
        self.metadata: Json = {}
        """Metadata of all manifests, besides name and namespace of the template, or in their place."""
        self.manifest_fault = ""
        """Why the next manifests cannot be rendered."""
        self.unreadable: set[str] = set()
        """Keys of bindings whose newest works the control plane fails to read."""
        self._lines = [messages.Line(is_listed=True, position=0)]
        self._changed = asyncio.Event()

    def add_to_list(self, name: str, step: int, replicas: int) -> None:
        """Add a work to the list of works; a Deployment with this number of replicas."""
        self._lines.insert(0, messages.Line(work=work(name, step, replicas)))

    def send(self, name: str, step: int, replicas: int | None) -> None:
        """Send a work: a Deployment with this number of replicas, or its removal (None)."""
        self._send(messages.Line(work=work(name, step, replicas), position=len(self._lines)))

    def change_namespaces(self, number: int) -> None:
        """Announce a change of a namespace."""
        self._send(messages.Line(namespaces=number, position=len(self._lines)))

    def _send(self, line: messages.Line) -> None:
        self._lines.append(line)
        self._changed.set()
        self._changed = asyncio.Event()

    def routes(self) -> list[Route]:
        return [
            Route(f"{_ROOT}/works", self._works),
            Route(f"{_ROOT}/calls", self._calls),
            Route(f"{_ROOT}/manifest", self._manifest),
            Route(f"{_ROOT}/work", self._work),
            Route(f"{_ROOT}/namespaces", self._namespaces),
            Route(f"{_ROOT}/reports", self._reports, methods=["POST"]),
        ]

    async def _works(self, _request: Request) -> Response:
        async def body() -> AsyncGenerator[bytes]:
            at = 0
            if self.feed_breaks:
                began_s, lasts_s = time.monotonic(), self.feed_breaks.pop(0)
                yield b"{}\n"
                await asyncio.sleep(lasts_s)
                self.feed_times.append((began_s, time.monotonic()))
                raise ConnectionAbortedError
            while True:
                changed = self._changed
                for line in self._lines[at:]:
                    at += 1
                    yield msgspec.json.encode(line) + b"\n"
                await changed.wait()

        return StreamingResponse(body())

    async def _calls(self, _request: Request) -> Response:
        self.calls_read.append(self.call_faults.pop(0) if self.call_faults else 200)
        if self.calls_read[-1] != 200:
            return karmada_api.status(self.calls_read[-1], "Fault")

        async def body() -> AsyncGenerator[bytes]:
            await asyncio.Event().wait()
            yield b""

        return StreamingResponse(body())

    async def _manifest(self, request: Request) -> Response:
        key, step = request.query_params["key"], int(request.query_params["step"])
        known = [*self.newest.values(), *(line.work for line in self._lines if line.work)]
        placed = next(placed for placed in known if (placed.key, placed.step) == (key, step))
        assert placed.template is not None
        manifest = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": placed.template.name, "namespace": "default", **self.metadata},
            "spec": {"replicas": placed.replicas},
        }
        return _json(
            messages.Manifest(
                manifest=msgspec.Raw(msgspec.json.encode(manifest)),
                fault=self.manifest_fault,
                conflict_resolution="Overwrite" if self.overwrites else "Abort",
            )
        )

    async def _work(self, request: Request) -> Response:
        if self.work_faults:
            return karmada_api.status(self.work_faults.pop(0), "Fault")
        key = request.query_params["key"]
        if key in self.unreadable:
            return karmada_api.status(500, "Fault")
        return _json(self.newest.get(key) or messages.Work(key=key, state="removed", term=0, step=0))

    async def _namespaces(self, _request: Request) -> Response:
        self.namespaces_read.append(200 if self.namespaces_read else 500)
        if self.namespaces_read[-1] != 200:
            return karmada_api.status(self.namespaces_read[-1], "Fault")
        return _json(messages.Namespaces())

    async def _reports(self, request: Request) -> Response:
        for report in msgspec.json.decode(await request.body(), type=messages.Reports).reports:
            if isinstance(report, messages.WorkloadReport):
                self.reports[report.key] = report
            elif isinstance(report, messages.GoneReport):
                self.gone.append(report)
            elif isinstance(report, messages.CapacityReport):
                self.capacities.append(report)
            elif isinstance(report, messages.HealthReport):
                self.ready.append(report.ready)
        return _json(messages.Cluster(is_member=True))


class Member:
    """An API server with Deployments. ``before_answer`` runs after a write, before its response is sent."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.before_answer: Callable[[str, str], Awaitable[None]] = nothing
        self.writes: list[tuple[str, str]] = []
        self.forced: list[bool] = []
        """For each apply, whether it takes fields from other managers."""
        self.is_stale = False
        """Whether discovery omits the kinds of a group, as while the group's server does not respond."""
        self._version = 0
        self._watches = 0
        self._changes: list[bytes] = []
        self._changed = asyncio.Event()

    def run_all(self, name: str) -> None:
        """Set the status as controllers do once all pods are ready."""
        count = self.objects[name]["spec"]["replicas"]
        fields = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), count)
        self._store(name, {**self.objects[name], "status": fields})

    def create(self, value: Json) -> None:
        """Create an object as another client does, which then owns its fields."""
        self._store(value["metadata"]["name"], value, [{**OWNED, "manager": "another"}])

    def delete(self, name: str) -> None:
        """Delete an object as a client does."""
        self._version += 1
        stored = self.objects.pop(name)
        deleted = {**stored, "metadata": {**stored["metadata"], "resourceVersion": str(self._version)}}
        self._note("DELETED", deleted)

    def remove_marks(self, name: str) -> None:
        """Remove the agent's labels and annotations from an object as a client does."""
        stored = self.objects[name]
        marked = {field: text for field, text in stored["metadata"].items() if field not in _MARKED}
        unmarked = self._store(name, {**stored, "metadata": marked}, [{**OWNED, "manager": "another"}])
        # To a watch of the label, the object is gone.
        del self._changes[-1]
        self._note("DELETED", {**stored, "metadata": {**stored["metadata"], **_version(unmarked)}})

    def take_over(self, name: str, replicas: int) -> None:
        """Change the replicas of an object as another client does, which then owns them."""
        stored = self.objects[name]
        left: Json = {**OWNED, "fieldsV1": {"f:spec": {}}}
        self._store(name, {**stored, "spec": {"replicas": replicas}}, [left, {**OWNED, "manager": "another"}])

    def backup(self) -> Callable[[], None]:
        """Back up the state; return what restores it, as etcd would: versions continue from that of the backup."""
        objects, version = copy.deepcopy(self.objects), self._version

        def restore() -> None:
            self.objects, self._version, self._changes = objects, version, []
            self._watches += 1
            self._changed.set()
            self._changed = asyncio.Event()

        return restore

    def routes(self) -> list[Route]:
        return [
            Route("/readyz", _ok),
            Route("/version", _ok),
            Route("/api", _core),
            Route("/apis", self._groups),
            Route("/apis/apps/v1", _apps),
            Route(_PATH, self._list),
            Route("/api/v1/namespaces", _no_items),
            Route(_OBJECT, self._object, methods=["GET", "PATCH", "DELETE"]),
        ]

    def _store(self, name: str, value: Json, owned: Sequence[Json] = (OWNED,)) -> Json:
        self._version += 1
        before = self.objects.get(name, {})
        metadata: Json = {
            **value["metadata"],
            "uid": before.get("metadata", {}).get("uid", f"uid-{self._version}"),
            "resourceVersion": str(self._version),
            "managedFields": owned,
        }
        self.objects[name] = {**value, "metadata": metadata}
        self._note("MODIFIED" if before else "ADDED", self.objects[name])
        return self.objects[name]

    def _note(self, change: str, value: Json) -> None:
        self._changes.append(msgspec.json.encode({"type": change, "object": value}) + b"\n")
        self._changed.set()
        self._changed = asyncio.Event()

    async def _groups(self, _request: Request) -> Response:
        return discovery("apps", [] if self.is_stale else [("Deployment", "deployments", ["list", "watch"])])

    async def _object(self, request: Request) -> Response:
        name, method = request.path_params["name"], request.method
        stored = self.objects.get(name)
        if method == "PATCH":
            self.forced.append(request.query_params.get("force") == "true")
            body = msgspec.json.decode(await request.body(), type=Json)
            stored = self._store(name, {**body, "status": (stored or {}).get("status", {})})
        elif method == "DELETE" and stored is not None:
            self.delete(name)
        if stored is None:
            return karmada_api.status(404, "NotFound")
        if method != "GET":
            self.writes.append((method, name))
            await self.before_answer(method, name)
        return JSONResponse(stored)

    async def _list(self, request: Request) -> Response:
        if request.query_params.get("watch") != "true":
            metadata = {"resourceVersion": str(self._version)}
            is_labelled = "labelSelector" in request.query_params
            items = [item for item in self.objects.values() if not is_labelled or _is_marked(item)]
            return JSONResponse({"metadata": metadata, "items": items})
        return StreamingResponse(self._watch(len(self._changes)))

    async def _watch(self, at: int) -> AsyncGenerator[bytes]:
        began = self._watches
        while self._watches == began:
            changed = self._changed
            lines, at = self._changes[at:], len(self._changes)
            for line in lines:
                yield line
            await changed.wait()


def _version(value: Json) -> Json:
    return {"resourceVersion": value["metadata"]["resourceVersion"]}


def _is_marked(value: Json) -> bool:
    return value["metadata"].get("labels", {}).get(marks.MANAGED) == "true"


@asynccontextmanager
async def running(gateway: Gateway, member: Member, checkpoint: Path) -> AsyncGenerator[MemberAgent]:
    """Run an agent between a gateway and a member, until the block ends."""
    async with (
        karmada_api.serving(gateway.routes()) as gateway_url,
        karmada_api.serving(member.routes()) as member_url,
    ):
        kept = await asyncio.to_thread(Checkpoint, checkpoint)
        configuration = Configuration(cluster=NAME, server=gateway_url, token="t")  # noqa: S106  # a test's
        agent = MemberAgent(configuration, Access(server=member_url), kept, Settings(), ClusterCounters())
        task = asyncio.create_task(agent.run())
        try:
            yield agent
        finally:
            task.cancel()
            (result,) = await asyncio.gather(task, return_exceptions=True)
            await asyncio.to_thread(kept.close)
        assert isinstance(result, asyncio.CancelledError), result


async def apply(
    gateway: Gateway, member: Member, checkpoint: Path, *names: str, continues_s: float = 0.0
) -> None:
    """Run an agent until it has applied new works of these workloads, and ``continues_s`` seconds longer."""
    async with running(gateway, member, checkpoint):
        for name in names:
            gateway.send(name, 1, 2)
            await until_async(lambda name=name: key_of(name) in gateway.reports)
        await asyncio.sleep(continues_s)


def work(name: str, step: int, replicas: int | None) -> messages.Work:
    ref = WorkloadRef(api_version="apps/v1", kind="Deployment", name=name, namespace="default")
    return messages.Work(
        key=key_of(name),
        state="removed" if replicas is None else "applied",
        term=1,
        step=step,
        template=None if replicas is None else ref,
        replicas=replicas,
    )


async def nothing(_method: str, _name: str) -> None:
    pass


async def _ok(_request: Request) -> Response:
    return JSONResponse({"gitVersion": "v1.31.0"})


async def _no_items(_request: Request) -> Response:
    return JSONResponse({"metadata": {"resourceVersion": "1"}, "items": []})


async def _core(_request: Request) -> Response:
    return discovery("", [("Namespace", "namespaces", ["list"])])


async def _apps(_request: Request) -> Response:
    kind = {"kind": "Deployment", "name": "deployments", "namespaced": True, "verbs": ["list", "watch"]}
    return JSONResponse({"kind": "APIResourceList", "groupVersion": "apps/v1", "resources": [kind]})


def discovery(group: str, kinds: list[tuple[str, str, list[str]]]) -> Response:
    """Return a response of aggregated discovery with the kinds of one group: kind, plural and verbs."""
    return groups({group: kinds})


def groups(kinds: dict[str, list[tuple[str, str, list[str]]]]) -> Response:
    """Return a response of aggregated discovery with the kinds of several groups, each in the version v1."""
    items: list[Json] = []
    for group, group_kinds in kinds.items():
        scope = "Namespaced" if group else "Cluster"
        resources = [
            {"resource": plural, "responseKind": {"kind": kind}, "scope": scope, "verbs": verbs}
            for kind, plural, verbs in group_kinds
        ]
        versions = [{"version": "v1", "resources": resources}]
        items.append({"metadata": {"name": group}, "versions": versions})
    return JSONResponse({"kind": "APIGroupDiscoveryList", "items": items})


def _json(value: messages.Shape) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")
