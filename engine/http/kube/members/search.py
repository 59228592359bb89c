"""Search in members: objects of all clusters that ResourceRegistries name, at ``search/cache`` followed by an API path.

Nothing is cached, since the members are simulated in this process; clusters with agents are left out.
"""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from engine.http.kube import paths, rendering, requests
from engine.http.kube.control_plane import ControlPlane
from engine.http.kube.list_filters import Fitting
from engine.http.kube.members.apis import MemberApis
from engine.http.kube.paths import ApiPath
from engine.http.kube.routing import Guard
from engine.kubeapi.errors import status_objects
from engine.kubeapi.errors.status_objects import StatusError
from engine.kubeapi.schema.resources import Resource
from engine.objects import clusters, placements
from engine.placement import fleet
from events.json_values import Json, object_at
from events.validation.known_kinds import CLUSTER_GROUP, SEARCH_GROUP
from projections import object_tables
from projections.port import Rows

SOURCE: Final = "resource.karmada.io/cached-from-cluster"
"""Annotation that names the cluster of a found object."""

_REGISTRIES: Final = object_tables.Wanted(kind=object_tables.Kind(SEARCH_GROUP, "ResourceRegistry"))
_CLUSTERS: Final = object_tables.Wanted(kind=object_tables.Kind(CLUSTER_GROUP, "Cluster"))


class _Selector(Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    namespace: str = ""


class _Registry(Struct, frozen=True, rename="camel"):
    target_cluster: placements.ClusterAffinity
    resource_selectors: tuple[_Selector, ...]


class Search:
    """Handle requests for ``search/cache``; ``guard`` checks the rights to the objects that are searched for."""

    def __init__(
        self, plane: ControlPlane, members: MemberApis, guard: Guard, clock_ms: Callable[[], int]
    ) -> None:
        self._plane = plane
        self._members = members
        self._guard = guard
        self._clock_ms = clock_ms

    async def answer(self, request: Request, _resource: Resource, api_path: ApiPath) -> Response:
        """List the objects at the path after ``cache``; raises StatusError."""
        path = f"/{api_path.part}/{api_path.rest}"
        inner = paths.parse(path)
        if api_path.name != "cache" or inner is None or inner.part:
            raise status_objects.no_such_path()
        if request.method not in ("GET", "HEAD"):
            raise status_objects.method_not_allowed()
        await self._guard(request, inner, path)
        query = requests.query(request)
        registries, known = await self._plane.read(_read)
        kind = await self._plane.resource(inner)
        items: list[Json] = []
        for name in known.names():
            plane = self._members.plane(name)
            found = None if plane is None else await plane.resource(inner)
            if plane is None or found is None:
                continue
            kind = kind or found
            scopes = _scopes(registries, known, name, found)
            if not scopes:
                continue
            fits = Fitting(found, query, inner.name)
            try:
                listed = await plane.listed(found, inner.namespace, fits)
            except StatusError:
                continue  # this member does not answer; list the objects of the others
            items += (_from(name, each) for each in listed.items if _is_in(each, scopes))
        if kind is None:
            raise status_objects.no_such_path()
        form = rendering.form(request.headers.get("accept", ""), query.include)
        metadata: Json = {"resourceVersion": str(self._plane.last_number())}
        return rendering.answer(rendering.many(kind, items, form, self._clock_ms(), metadata))


def _read(rows: Rows) -> tuple[list[_Registry], fleet.Fleet]:
    """Return the registries, and all clusters."""
    specs = (each.get("spec") for each in object_tables.page(rows, _REGISTRIES).items)
    registries = [msgspec.convert(spec, _Registry) for spec in specs]
    known = fleet.Fleet()
    for cluster in object_tables.page(rows, _CLUSTERS).items if registries else ():
        known.put(msgspec.convert(cluster, clusters.ClusterManifest))
    return registries, known


def _scopes(
    registries: Iterable[_Registry], known: fleet.Fleet, cluster: str, resource: Resource
) -> set[str]:
    """Return the namespaces of a cluster in which objects of a kind are found; an empty text means all."""
    return {
        selector.namespace
        for registry in registries
        if known.matches(registry.target_cluster, cluster)
        for selector in registry.resource_selectors
        if (selector.api_version, selector.kind) == (resource.api_version, resource.kind)
    }


def _is_in(value: Json, scopes: set[str]) -> bool:
    return "" in scopes or object_at(value, "metadata").get("namespace", "") in scopes


def _from(cluster: str, value: Json) -> Json:
    metadata = object_at(value, "metadata")
    annotations = {**object_at(metadata, "annotations"), SOURCE: cluster}
    return {**value, "metadata": {**metadata, "annotations": annotations}}
