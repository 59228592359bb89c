"""Rights of a member's service accounts: Kubernetes' own roles, and the roles and bindings in the member."""

from collections.abc import Awaitable, Callable

from engine.http.kube.members.plane import MemberPlane
from engine.kubeapi.rights import bootstrap_roles, parsing
from engine.kubeapi.rights.rbac import Rights, User
from events.validation import known_kinds


async def rights_in(plane: MemberPlane) -> Rights:
    """Return the rights by the current roles and bindings of a member; raises StatusError if it does not respond."""
    values, catalogue = bootstrap_roles.objects(), await plane.catalogue()
    for kind in parsing.KINDS:
        plural = known_kinds.plural_of(parsing.API_VERSION, kind)
        resource = catalogue.resource(parsing.GROUP, "v1", plural)
        if resource is not None:
            _number, look = await plane.snapshot(resource)
            values.extend(value for _, value in look.items.values())
    return parsing.rights(values)


async def rights_of(
    user: User, plane: MemberPlane, control_plane: Callable[[], Awaitable[Rights]]
) -> Rights | None:
    """Return the rights that a user has in a member and can grant there; None if it may do everything.

    Users of the ``control_plane`` have its rights too.
    """
    if user.is_master or user.may_all:
        return None
    rights = await rights_in(plane)
    return rights if user.is_account else rights.with_grants_of(await control_plane())
