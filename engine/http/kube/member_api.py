"""The read-only API of a simulated member: list and watch what runs there.

A member has no log. Each read of a kind is kept as a numbered snapshot; a watch reports the differences
between snapshots.
"""

import asyncio
import itertools
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Final, Protocol

import anyio.to_thread
import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from engine.http.kube import rendering
from engine.http.kube.control_plane import Listed
from engine.http.kube.line_streams import SECONDS, SECONDS_MAX, Lines
from engine.http.kube.list_filters import Fitting
from engine.http.kube.paths import ApiPath
from engine.http.kube.requests import Query
from engine.http.kube.routing import Guard, KubeApi, Verb
from engine.http.services import Services
from engine.kubeapi.conversion import versions
from engine.kubeapi.errors import status_objects
from engine.kubeapi.schema.resources import Catalogue, Resource, built_in
from engine.simulation import api_objects, usage
from engine.simulation.state import MemberState, Workload
from engine.works import manifests
from events import codec, specs, topics
from events.json_values import Json, as_object
from events.validation.known_kinds import CLUSTER_GROUP
from projections import object_tables

_CLUSTER: Final = object_tables.Kind(CLUSTER_GROUP, "Cluster")
_LOOK_SECONDS: Final = 0.25
_LOOKS_KEPT: Final = 512
_MANIFESTS_KEPT: Final = 4_096
_WATCHERS_MAX: Final = 256

Name = tuple[str, str]


class Members(Protocol):
    """Access to the simulated members."""

    def state_of(self, name: str) -> MemberState:
        """The state of a member; raises LookupError if it is unknown."""
        ...

    def names(self) -> list[str]:
        """Names of all members, sorted."""
        ...


class _Snapshot(msgspec.Struct, frozen=True):
    """Snapshot of a kind's objects; each comes with the number of the snapshot in which it last changed."""

    items: dict[Name, tuple[int, Json]]


class MemberPlane:
    """The objects of one member."""

    def __init__(self, members: Members, name: str, services: Services, clock_ms: Callable[[], int]) -> None:
        self._members = members
        self._clock_ms = clock_ms
        self._name = name
        self._services = services
        self._numbers = itertools.count(1)
        self._manifests: OrderedDict[tuple[int, int], bytes] = OrderedDict()
        self._maker = manifests.Renderer(services.log)
        self._last: dict[str, _Snapshot] = {}
        self._snapshots: OrderedDict[tuple[str, int], _Snapshot] = OrderedDict()

    async def catalogue(self) -> Catalogue:
        """The kinds that every cluster serves."""
        self._state()
        return built_in()

    async def resource(self, api_path: ApiPath) -> Resource | None:
        """The kind that a path names; None if it is unknown."""
        return (await self.catalogue()).resource(api_path.group, api_path.version, api_path.plural)

    async def get(
        self, resource: Resource, namespace: str, name: str, *, is_fresh: bool = True
    ) -> Json | None:
        del is_fresh  # members run in this process, so every read is fresh
        _number, look = await self.snapshot(resource)
        entry = look.items.get((namespace, name))
        return None if entry is None else entry[1]

    async def listed(
        self,
        resource: Resource,
        namespace: str,
        fits: Fitting,
        *,
        limit: int = 0,
        after: str = "",
        brief: bool = False,
        is_fresh: bool = True,
    ) -> Listed:
        """A page of the objects that fit; raises ValueError if ``after`` is not a continue token."""
        del brief, is_fresh  # all data are in memory
        number, look = await self.snapshot(resource)
        names = [name for name in sorted(look.items) if not namespace or name[0] == namespace]
        if after:
            behind = msgspec.json.decode(after, type=tuple[str, str])
            names = [name for name in names if name > behind]
        items: list[Json] = []
        for name in names:
            value = look.items[name][1]
            if not fits(value):
                continue
            if limit and len(items) == limit:
                last = as_object(items[-1].get("metadata")) or {}
                mark = msgspec.json.encode((last.get("namespace", ""), last["name"])).decode()
                return Listed(items, mark, number)
            items.append(value)
        return Listed(items, "", number)

    async def snapshot(self, resource: Resource) -> tuple[int, _Snapshot]:
        """Take a snapshot of a kind under a new number."""
        number = next(self._numbers)
        kind = f"{resource.qualified} {resource.version}"
        before = self._last.get(kind, _Snapshot({}))
        items: dict[Name, tuple[int, Json]] = {}
        for value in await self._objects(resource):
            metadata = as_object(value.get("metadata")) or {}
            name = (str(metadata.get("namespace", "")), str(metadata.get("name", "")))
            old = before.items.get(name)
            changed = number if old is None or _without_version(old[1]) != value else old[0]
            items[name] = (changed, {**value, "metadata": {**metadata, "resourceVersion": str(changed)}})
        look = _Snapshot(items)
        self._last[kind] = look
        self._snapshots[kind, number] = look
        while len(self._snapshots) > _LOOKS_KEPT:
            self._snapshots.popitem(last=False)
        return number, look

    def remembered(self, resource: Resource, number: int) -> _Snapshot | None:
        """The snapshot of a kind under a number; None if it has been dropped."""
        return self._snapshots.get((f"{resource.qualified} {resource.version}", number))

    async def _objects(self, resource: Resource) -> Iterable[Json]:
        state = self._state()
        began_ms = min((workload.created_ms for workload in state.workloads.values()), default=0)
        match resource.qualified:
            case "nodes":
                return api_objects.nodes(state, began_ms)
            case "namespaces":
                return api_objects.namespaces(state, began_ms)
            case "pods":
                return await self._pods(state)
            case "replicasets.apps":
                return [*await self._workloads(state, resource), *await self._replica_sets(state)]
            case "nodes.metrics.k8s.io":
                return usage.node_usage(state, self._clock_ms())
            case "pods.metrics.k8s.io":
                return await self._pod_figures(state)
            case _:
                return await self._workloads(state, resource)

    async def _workloads(self, state: MemberState, resource: Resource) -> list[Json]:
        kept = versions.stored(resource)
        workloads = [
            workload
            for workload in list(state.workloads.values())
            if (workload.ref.api_version, workload.ref.kind) == (kept.api_version, kept.kind)
        ]
        values = [
            api_objects.workload_object(state, workload, await self._manifest(workload))
            for workload in workloads
        ]
        return [versions.shown(resource, value) for value in values]

    async def _replica_sets(self, state: MemberState) -> list[Json]:
        return [
            api_objects.replica_set(state, workload, await self._manifest(workload))
            for workload in list(state.workloads.values())
            if workload.ref.kind == "Deployment" and workload.replicas is not None
        ]

    async def _pod_figures(self, state: MemberState) -> list[Json]:
        figures: list[Json] = []
        for workload in list(state.workloads.values()):
            if workload.replicas is not None:
                figures.extend(
                    usage.pod_usage(state, workload, await self._manifest(workload), self._clock_ms())
                )
        return figures

    async def _pods(self, state: MemberState) -> list[Json]:
        pods: list[Json] = []
        for workload in list(state.workloads.values()):
            if workload.replicas is not None:
                pods.extend(api_objects.pods(state, workload, await self._manifest(workload)))
        return pods

    async def _manifest(self, workload: Workload) -> bytes:
        """The manifest that a workload was created from; may be older than the current template."""
        if workload.overrides or workload.labels:
            source = manifests.RenderInput(
                workload.shard,
                workload.offset,
                workload.replicas,
                workload.overrides,
                workload.labels,
                manifests.declared_replicas_path(workload.reading),
            )
            return (await self._maker.render(source)).manifest
        position = (workload.shard, workload.offset)
        kept = self._manifests.get(position)
        if kept is not None:
            self._manifests.move_to_end(position)
            return kept
        manifest = b"{}"
        for record in await self._services.log.read(topics.SPECS, workload.shard, workload.offset, 1):
            decoded = codec.decode(record)
            if isinstance(decoded, codec.Decoded) and isinstance(decoded.data, specs.TemplateApplied):
                manifest = bytes(decoded.data.manifest)
        self._manifests[position] = manifest
        while len(self._manifests) > _MANIFESTS_KEPT:
            self._manifests.popitem(last=False)
        return manifest

    def _state(self) -> MemberState:
        try:
            state = self._members.state_of(self._name)
        except LookupError as error:
            raise status_objects.unavailable(str(error)) from None
        if state.faults.down:
            raise status_objects.unavailable(f"cluster {self._name} does not answer")
        return state


class MemberWatches:
    """Serve watches of a member's objects by taking snapshots repeatedly."""

    def __init__(self, plane: MemberPlane, clock_ms: Callable[[], int], services: Services) -> None:
        self._plane = plane
        self._clock_ms = clock_ms
        self._services = services
        self._open = 0

    async def answer(
        self, resource: Resource, api_path: ApiPath, query: Query, form: rendering.Form, fits: Fitting
    ) -> Response:
        """The response to a watch; raises StatusError."""
        if self._open >= _WATCHERS_MAX:
            raise status_objects.too_many_requests(1, f"{_WATCHERS_MAX} watches are open")
        seen: _Snapshot | None = _Snapshot({})
        if query.resource_version not in ("", "0") and not query.initial_events:
            if not query.resource_version.isdecimal():
                raise status_objects.bad_request("resourceVersion: Invalid value")
            seen = self._plane.remembered(resource, int(query.resource_version[:18]))
        if seen is None:
            raise status_objects.expired()

        def is_selected(value: Json) -> bool:
            metadata = as_object(value.get("metadata")) or {}
            return api_path.namespace in ("", metadata.get("namespace", "")) and fits(value)

        def line(event_type: str, value: Json) -> bytes:
            shown = rendering.one(resource, value, form, self._clock_ms())
            return rendering.encode({"type": event_type, "object": shown}) + b"\n"

        lines = self._lines(resource, seen, is_selected, line, query)
        return Lines(lines, min(query.timeout_s or SECONDS, SECONDS_MAX))

    async def _lines(
        self,
        resource: Resource,
        seen: _Snapshot,
        is_selected: Callable[[Json], bool],
        line: Callable[[str, Json], bytes],
        query: Query,
    ) -> AsyncGenerator[bytes]:
        self._open += 1
        known = {name: entry for name, entry in seen.items.items() if is_selected(entry[1])}
        try:
            while not self._services.stopping.is_set():
                number, look = await self._plane.snapshot(resource)
                now = {name: entry for name, entry in look.items.items() if is_selected(entry[1])}
                for name, (changed, value) in now.items():
                    if name not in known:
                        yield line("ADDED", value)
                    elif known[name][0] != changed:
                        yield line("MODIFIED", value)
                for name in known.keys() - now.keys():
                    yield line("DELETED", known[name][1])
                known = now
                if query.initial_events:
                    yield line("BOOKMARK", _bookmark(resource, number))
                    query = msgspec.structs.replace(query, initial_events=False)
                await asyncio.sleep(_LOOK_SECONDS)
        except status_objects.StatusError as error:
            yield rendering.encode({"type": "ERROR", "object": error.body}) + b"\n"
        finally:
            self._open -= 1


class MemberApis:
    """The APIs of all members; ``answer`` handles the subresource ``clusters/NAME/proxy``.

    Without a ``guard``, every authenticated request may read everything.
    """

    def __init__(
        self,
        members: Members | None,
        services: Services,
        clock_ms: Callable[[], int],
        guard: Guard | None = None,
        reviews: Verb | None = None,
    ) -> None:
        self._members = members
        self._services = services
        self._clock_ms = clock_ms
        self._guard = guard
        self._reviews = reviews
        self._apis: dict[str, KubeApi] = {}
        self._planes: dict[str, MemberPlane] = {}

    async def answer(self, request: Request, resource: Resource, api_path: ApiPath) -> Response:
        """Forward a request to the member's API, for the path after ``proxy``; raises StatusError."""
        if api_path.name not in self._apis and not await anyio.to_thread.run_sync(
            self._is_known, api_path.name
        ):
            raise status_objects.not_found(resource, api_path.name)
        return await self._api(api_path.name).answer(request, "/" + api_path.rest)

    def _is_known(self, name: str) -> bool:
        """Whether a Cluster of this name exists, simulated or not."""
        with self._services.views.store.reading() as rows:
            return object_tables.get(rows, _CLUSTER, "", name) is not None

    def _api(self, name: str) -> KubeApi:
        if self._members is None:
            raise status_objects.unavailable(
                f"cluster {name} is not simulated here, and its agent serves no API"
            )
        api = self._apis.get(name)
        if api is None:
            try:
                self._members.state_of(name)
            except LookupError as error:
                raise status_objects.unavailable(str(error)) from None
            plane = MemberPlane(self._members, name, self._services, self._clock_ms)
            watches = MemberWatches(plane, self._clock_ms, self._services)

            async def log(_request: Request, resource: Resource, api_path: ApiPath) -> Response:
                if await plane.get(resource, api_path.namespace, api_path.name) is None:
                    raise status_objects.not_found(resource, api_path.name)
                return PlainTextResponse(f"{api_path.name} is simulated in {name}\n")

            async def enter(_request: Request, resource: Resource, api_path: ApiPath) -> Response:
                if await plane.get(resource, api_path.namespace, api_path.name) is None:
                    raise status_objects.not_found(resource, api_path.name)
                raise status_objects.bad_request(
                    f"{api_path.name} is simulated in {name}: there is nothing to run in it"
                )

            parts: dict[tuple[str, str], Verb] = {("pods", "log"): log, ("pods", "exec"): enter}
            api = KubeApi(
                plane,
                watches,
                None,
                self._clock_ms,
                parts=parts,
                reviews=self._reviews,
                guard=self._guard,
            )
            self._apis[name] = api
            self._planes[name] = plane
        return api

    async def figures(self, resource: Resource, namespace: str, fits: Fitting) -> list[Json]:
        """Resource use in all members of this process that respond."""
        found: list[Json] = []
        for name in self._members.names() if self._members is not None else ():
            try:
                self._api(name)
                found.extend((await self._planes[name].listed(resource, namespace, fits)).items)
            except status_objects.StatusError:
                continue  # this member is down; report the others
        return found


async def elsewhere(_request: Request, _resource: Resource, api_path: ApiPath) -> Response:
    """Refuse logs and exec of pods in the control plane, naming the way to the member."""
    raise status_objects.bad_request(
        f"{api_path.name} runs in member clusters, not here: ask one of them (kubectl --context MEMBER)"
    )


def _without_version(value: Json) -> Json:
    metadata = as_object(value.get("metadata")) or {}
    return {
        **value,
        "metadata": {name: item for name, item in metadata.items() if name != "resourceVersion"},
    }


def _bookmark(resource: Resource, number: int) -> Json:
    metadata: Json = {
        "resourceVersion": str(number),
        "annotations": {"k8s.io/initial-events-end": "true"},
    }
    return {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
