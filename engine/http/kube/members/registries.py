"""ResourceRegistries: they select the objects of members that ``search`` finds."""

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from engine.http.kube.members.planes import MemberPlanes
from engine.kubeapi.errors.status_objects import StatusError
from engine.kubeapi.schema.resources import ApiPath, Resource
from engine.objects import clusters, placements
from engine.placement import fleet
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
        for cluster in self._clusters.names():
            plane = members.plane(cluster)
            resource = None if plane is None else await plane.resource(api_path)
            if resource is not None and self._scopes(cluster, resource):
                return resource
        return None

    async def selected_objects(
        self, members: MemberPlanes, api_path: ApiPath, fits: Callable[[KubeObject], bool]
    ) -> list[tuple[str, KubeObject]]:
        """Return the objects of a kind that fit and that registries select, as (cluster, object) ordered by cluster.

        Members that do not respond are left out.
        """
        result: list[tuple[str, KubeObject]] = []
        for cluster in self._clusters.names():
            plane = members.plane(cluster)
            resource = None if plane is None else await plane.resource(api_path)
            scopes = set[str]() if resource is None else self._scopes(cluster, resource)
            if plane is None or resource is None or not scopes:
                continue
            try:
                items = (await plane.listed(resource, api_path.namespace, fits)).items
            except StatusError:
                continue
            result += [(cluster, _from(cluster, item)) for item in items if _is_in(item, scopes)]
        return result

    def _scopes(self, cluster: str, resource: Resource) -> set[str]:
        """Return the namespaces of a cluster in which registries select objects of a kind; an empty text means all."""
        return {
            selector.namespace
            for registry in self._registries
            if self._clusters.matches(registry.target_cluster, cluster)
            for selector in registry.resource_selectors
            if (selector.api_version, selector.kind) == (resource.api_version, resource.kind)
        }


def _is_in(value: KubeObject, scopes: set[str]) -> bool:
    return "" in scopes or value.namespace in scopes


def _from(cluster: str, value: KubeObject) -> KubeObject:
    return value.with_metadata({"annotations": {**value.annotations, SOURCE: cluster}})
