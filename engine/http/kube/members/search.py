"""The APIs of the group search.karmada.io: search in simulated members, and one API over all of them.

``search/cache`` followed by an API path lists the objects that ResourceRegistries select in simulated members. It
reads the members directly, without a cache. Real members, those with agents, are left out.

``proxying/karmada/proxy`` followed by an API path reads the same objects, each with its cluster in an annotation. A
write goes to the cluster of its object. Paths of other kinds are those of the control plane.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Final

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message

from engine.http.incoming_requests import READS
from engine.http.kube import bodies, list_responses, requests
from engine.http.kube.control_plane import ControlPlane
from engine.http.kube.members.plane import MemberPlane
from engine.http.kube.members.planes import MemberPlanes
from engine.http.kube.members.snapshots import Name, SnapshotPlane
from engine.http.kube.members.watches import MemberWatches
from engine.http.kube.requests import ObjectFilter
from engine.http.kube.routing import Guard, KubeApi, Verb
from engine.kubeapi.errors import status_objects
from engine.kubeapi.errors.status_objects import StatusError
from engine.kubeapi.schema.resources import ApiPath, Catalogue, Resource, parse_path
from engine.objects import clusters, placements
from engine.placement import fleet
from events.json_values import Json
from events.kube_fields import ListMeta
from events.kube_objects import KubeObject
from events.validation.known_kinds import CLUSTER_GROUP, SEARCH_GROUP
from projections import object_tables
from projections.port import Rows

SOURCE: Final = "resource.karmada.io/cached-from-cluster"
"""Annotation that names the cluster in which ``search`` found an object."""

_REGISTRIES: Final = object_tables.Selection(kind=object_tables.Kind(SEARCH_GROUP, "ResourceRegistry"))
_CLUSTERS: Final = object_tables.Selection(kind=object_tables.Kind(CLUSTER_GROUP, "Cluster"))


class _Selector(Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    namespace: str = ""


class _Registry(Struct, frozen=True, rename="camel"):
    target_cluster: placements.ClusterAffinity
    resource_selectors: tuple[_Selector, ...]


class Registries:
    """All ResourceRegistries, and the clusters that their selectors can match."""

    def __init__(self, rows: Rows) -> None:
        specs = (registry.at("spec") for registry in object_tables.page(rows, _REGISTRIES).items)
        self._registries = [msgspec.convert(spec, _Registry) for spec in specs]
        self._clusters = fleet.Fleet()
        for cluster in object_tables.page(rows, _CLUSTERS).items if self._registries else ():
            self._clusters.put(msgspec.convert(cluster.document, clusters.ClusterManifest))

    async def kind(self, members: MemberPlanes, api_path: ApiPath) -> Resource | None:
        """Return the kind at a path if a registry selects it in a simulated member that serves it; else None."""
        async for _cluster, _plane, resource, _scopes in self._selected(members, api_path):
            return resource
        return None

    async def selected_objects(
        self, members: MemberPlanes, api_path: ApiPath, fits: Callable[[KubeObject], bool]
    ) -> list[tuple[str, KubeObject]]:
        """Return the objects of a kind that registries and ``fits`` select, as (cluster, object) ordered by cluster.

        Members that do not respond are left out.
        """
        result: list[tuple[str, KubeObject]] = []
        async for cluster, plane, resource, scopes in self._selected(members, api_path):
            try:
                items = (await plane.listed(resource, api_path.namespace, fits)).items
            except StatusError:
                continue
            for item in items:
                if "" in scopes or item.namespace in scopes:
                    annotations = {**item.annotations, SOURCE: cluster}
                    result.append((cluster, item.with_metadata({"annotations": annotations})))
        return result

    async def _selected(
        self, members: MemberPlanes, api_path: ApiPath
    ) -> AsyncGenerator[tuple[str, MemberPlane, Resource, set[str]]]:
        """Yield each cluster in which registries select objects of a kind, with its plane, the kind, and namespaces.

        Objects in these namespaces are selected; an empty namespace means all namespaces.
        """
        for cluster in self._clusters.names():
            plane = members.plane(cluster)
            resource = None if plane is None else await plane.resource(api_path)
            if plane is None or resource is None:
                continue
            scopes = {
                selector.namespace
                for registry in self._registries
                if self._clusters.matches(registry.target_cluster, cluster)
                for selector in registry.resource_selectors
                if (selector.api_version, selector.kind) == (resource.api_version, resource.kind)
            }
            if scopes:
                yield cluster, plane, resource, scopes


class Search:
    """Handle requests for ``search/cache``; ``guard`` checks whether the user may list the objects at the path."""

    def __init__(
        self, plane: ControlPlane, members: MemberPlanes, guard: Guard, clock_ms: Callable[[], int]
    ) -> None:
        self._plane = plane
        self._members = members
        self._guard = guard
        self._clock_ms = clock_ms

    async def answer(self, request: Request, _resource: Resource, api_path: ApiPath) -> Response:
        """List the objects at the path after ``cache``; raises StatusError."""
        path = f"/{api_path.part}/{api_path.rest}"
        inner = parse_path(path)
        if api_path.name != "cache" or inner is None or inner.part:
            raise status_objects.no_such_path()
        if request.method not in READS:
            raise status_objects.method_not_allowed()
        await self._guard(request, inner, path)
        registries = await self._plane.reads.read(Registries)
        kind = await self._plane.resource(inner) or await registries.kind(self._members, inner)
        if kind is None:
            raise status_objects.no_such_path()
        query = requests.query(request)
        hits = await registries.selected_objects(self._members, inner, ObjectFilter(kind, query, inner.name))
        form = requests.form(request.headers.get("accept", ""), query.include)
        metadata: ListMeta = {"resourceVersion": str(self._plane.last_number())}
        items = [value for _, value in hits]
        return await list_responses.answer(kind, items, form, self._clock_ms(), metadata)


_NAME = "karmada"


class _SelectedObjects(SnapshotPlane):
    """The objects that ResourceRegistries select. Objects of different clusters may have the same name."""

    def __init__(self, plane: ControlPlane, members: MemberPlanes, began_ms: int) -> None:
        super().__init__(began_ms)
        self._plane = plane
        self._members = members
        self._versions: dict[str, dict[Name, str]] = {}

    async def catalogue(self) -> Catalogue:
        return await self._plane.catalogue()

    async def resource(self, api_path: ApiPath) -> Resource | None:
        """The kind at a path if a registry selects it in a simulated member that serves it; else None."""
        return await (await self._plane.reads.read(Registries)).kind(self._members, api_path)

    async def get(
        self, resource: Resource, namespace: str, name: str, *, is_fresh: bool = True
    ) -> KubeObject | None:
        """One object, None if there is none; if several clusters have it, the object of the first cluster by name."""
        del is_fresh
        _number, taken = await self.snapshot(resource)
        named = sorted(key for key in taken.items if key[:2] == (namespace, name))
        return taken.items[named[0]][1] if named else None

    async def _objects(self, resource: Resource) -> Iterable[KubeObject]:
        registries = await self._plane.reads.read(Registries)
        api_path = ApiPath(group=resource.group, version=resource.version, plural=resource.plural)
        values = [
            value for _, value in await registries.selected_objects(self._members, api_path, lambda _: True)
        ]
        self._versions[resource.qualified] = {self._key(value): value.resource_version for value in values}
        return [value.without_metadata("resourceVersion") for value in values]

    def version(self, resource: Resource, value: KubeObject) -> str:
        """The resourceVersion that an object of the newest snapshot has in its own cluster."""
        return self._versions[resource.qualified][self._key(value)]

    def _key(self, value: KubeObject) -> Name:
        return (*super()._key(value), cluster_of(value))


class Proxying:
    """Handle requests for ``proxying``; ``guard`` checks rights, ``member_api`` handles ``clusters/NAME/proxy``."""

    def __init__(
        self,
        plane: ControlPlane,
        members: MemberPlanes,
        member_api: Verb,
        guard: Guard,
        stopping: asyncio.Event,
        clock_ms: Callable[[], int],
    ) -> None:
        self._member_api = member_api
        self._guard = guard
        self._found = _SelectedObjects(plane, members, began_ms=clock_ms())
        watches = MemberWatches(self._found, clock_ms, stopping)
        self._api = KubeApi(self._found, watches.answer, None, clock_ms)

    async def answer(self, request: Request, resource: Resource, api_path: ApiPath) -> Response | str:
        """Handle the path after ``proxy``, or return it if the control plane must handle it; raises StatusError."""
        if api_path.name != _NAME:
            raise status_objects.not_found(resource, api_path.name)
        path = f"/{api_path.rest}"
        inner = parse_path(path)
        kind = None if inner is None else await self._found.resource(inner)
        if inner is None or kind is None:
            return path
        await self._guard(request, inner, path)
        if request.method in READS and not inner.part:
            return await self._api.answer(request, path)
        if not inner.name:
            raise status_objects.method_not_allowed()
        value = await self._found.get(kind, inner.namespace, inner.name)
        if value is None:
            raise status_objects.not_found(kind, inner.name)
        if request.method == "PUT" and not inner.part:
            request = await _replacement(request, kind, value, self._found.version(kind, value))
        target = msgspec.structs.replace(api_path, name=cluster_of(value))
        return await self._member_api(request, kind, target)


async def _replacement(request: Request, kind: Resource, current: KubeObject, version: str) -> Request:
    """Return the request to send to the object's cluster.

    The object loses the annotation ``SOURCE``; a resourceVersion is replaced by ``version``, the one in that
    cluster. Raises StatusError (409) if the client's resourceVersion is not that of ``current``.
    """
    value = await bodies.read_object(request, kind)
    if (seen := value.resource_version) and seen != current.resource_version:
        raise status_objects.conflict(kind, value.name)
    annotations = {name: text for name, text in value.annotations.items() if name != SOURCE}
    own: Json = {"annotations": annotations, **({"resourceVersion": version} if seen else {})}
    body = msgspec.json.encode(value.with_metadata(own).document)

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    replaced = (b"content-type", b"content-length", b"content-encoding")
    headers = [header for header in request.scope["headers"] if header[0] not in replaced]
    headers += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    return Request({**request.scope, "headers": headers}, receive)


def cluster_of(value: KubeObject) -> str:
    """Return the cluster in which an object was found."""
    return str(value.annotations.get(SOURCE, ""))
