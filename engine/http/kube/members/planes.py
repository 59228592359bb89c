"""The simulated members: access to the objects of one member, and reads and deletions in all members."""

from collections.abc import Callable

from engine.domain import namespaces
from engine.http.kube.derived_fields import DerivedFields
from engine.http.kube.members.plane import MemberPlane
from engine.http.kube.requests import ObjectFilter
from engine.kubeapi.errors import status_objects
from engine.kubeapi.rights import bootstrap_roles, parsing
from engine.kubeapi.rights.rbac import Rights
from engine.kubeapi.schema.resources import Resource
from engine.simulation import unmanaged
from engine.simulation.member_fleet import Members
from engine.writing.read_side import ReadSide
from events import clusters, shapes
from events.kube_objects import KubeObject
from events.validation import known_kinds


class MemberPlanes:
    """The objects of the simulated members; ``members`` is None if this process simulates none."""

    def __init__(
        self,
        members: Members | None,
        reads: ReadSide,
        clock_ms: Callable[[], int],
        derived_fields: DerivedFields,
    ) -> None:
        self._members = members
        self._reads = reads
        self._clock_ms = clock_ms
        self._derived_fields = derived_fields
        self._planes: dict[str, MemberPlane] = {}

    def plane(self, name: str) -> MemberPlane | None:
        """The objects of a simulated member; None for others."""
        if self._members is None:
            return None
        try:
            self._members.state_of(name)
        except LookupError:
            return None
        if name not in self._planes:
            self._planes[name] = MemberPlane(
                self._members, name, self._reads, self._clock_ms, self._derived_fields
            )
        return self._planes[name]

    async def rights(self, name: str) -> Rights:
        """The rights of a member's service accounts; raises StatusError if it is not simulated or does not respond."""
        plane = self.plane(name)
        if plane is None:
            raise status_objects.unauthorized()
        return await rights_in(plane)

    async def delete_namespace(self, name: str) -> None:
        """Delete a propagated namespace from the members in which clients edited it or wrote objects to it.

        All objects in it are deleted too.
        """
        if self._members is None:
            return
        api_version, kind = namespaces.KIND
        ref = shapes.WorkloadRef(api_version=api_version, kind=kind, name=name)
        for member in self._members.names():
            if unmanaged.keeps_namespace(self._members.state_of(member), ref):
                await self._members.write(member, clusters.MemberObjectDeleted(name=member, object=ref))

    async def figures(self, resource: Resource, namespace: str, fits: ObjectFilter) -> list[KubeObject]:
        """Resource metrics of nodes or pods, from joined simulated members that respond."""
        result: list[KubeObject] = []
        for name in () if self._members is None else self._members.names():
            plane = self.plane(name)
            if plane is None or not plane.is_joined():
                continue
            try:
                await plane.apply_faults()
                result.extend((await plane.listed(resource, namespace, fits)).items)
            except status_objects.StatusError:
                continue  # this member does not respond; report the others
        return result


async def rights_in(plane: MemberPlane) -> Rights:
    """Return the rights that a member's current roles and bindings grant; raises StatusError if it does not respond."""
    values, catalogue = bootstrap_roles.objects(), await plane.catalogue()
    for kind in parsing.KINDS:
        plural = known_kinds.plural_of(parsing.API_VERSION, kind)
        resource = catalogue.resource(parsing.GROUP, "v1", plural)
        if resource is not None:
            _number, look = await plane.snapshot(resource)
            values.extend(value for _, value in look.items.values())
    return parsing.rights(values)
