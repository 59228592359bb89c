"""RBAC authorization: roles and bindings from the views, read again when one of them has changed."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import anyio.to_thread
import msgspec
from starlette.requests import Request

from engine.http.kube.paths import ApiPath
from engine.http.services import Services
from engine.kubeapi.errors import status_objects
from engine.kubeapi.requests import field_selectors
from engine.kubeapi.rights import bootstrap_roles, parsing
from engine.kubeapi.rights.rbac import Act, Rights, User
from events.kube_objects import KubeObject
from projections import changes, query
from projections.port import Rows

_OBJECTS: Final = """
SELECT api_version, manifest FROM objects WHERE kind IN ('ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding')
ORDER BY id
"""
_KINDS: Final = tuple(changes.kind_of(parsing.API_VERSION, kind) for kind in parsing.KINDS)
_CHANGED: Final = """
SELECT 1 FROM changes WHERE place >= ? AND place < ? AND kind IN (?, ?, ?, ?) LIMIT 1
"""
_VERBS: Final = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}


class Authorizer:
    """Authorize requests by the current roles and bindings."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._rights = parsing.rights(bootstrap_roles.objects())
        self._number = -1
        self._lock = asyncio.Lock()
        self.member_rights: Callable[[str], Awaitable[Rights]] | None = None
        """The rights by the roles and bindings of a simulated member."""

    async def rights(self) -> Rights:
        """The rights by all roles and bindings up to the newest record that this server knows."""
        number = self._services.log.last_number()
        if number > self._number:
            async with self._lock:
                await self._services.views.wait_folded(number)
                # Check again: another request may have read the rights while this one waited for the lock.
                if number > self._number:
                    await anyio.to_thread.run_sync(self._refresh)
        return self._rights

    async def rights_of(self, user: User) -> Rights:
        """The rights that apply to a user: for a service account of a member, those in that member."""
        if user.is_account and self.member_rights is not None:
            return await self.member_rights(user.member)
        return await self.rights()

    async def check(self, user: User, act: Act) -> None:
        """Raise StatusError (403) if the user may not do this."""
        if user.is_master or (await self.rights_of(user)).may(user, act):
            return
        # Another replica may have answered the write that grants it; catch up before refusing.
        await self._services.catch_up()
        if (await self.rights_of(user)).may(user, act):
            return
        if act.path:
            raise status_objects.forbidden_path(user.name, act.verb, act.path)
        raise status_objects.forbidden_act(user.name, act)

    async def check_request(self, request: Request, user: User, api_path: ApiPath | None, path: str) -> None:
        """Raise StatusError (403) if the user may not send this request; ``path`` counts if ``api_path`` is None."""
        if user.member:
            if not _is_members(user, api_path) and api_path is not None:
                raise status_objects.forbidden_act(user.name, act_of(request, api_path))
            return
        if user.is_master:
            return
        await self.check(user, act_at(request, api_path, path))

    def _refresh(self) -> None:
        with self._services.views.store.reading() as rows:
            number = query.checkpoint(rows)
            if not self._is_known(rows, number):
                self._rights = _read(rows)
        self._number = number

    def _is_known(self, rows: Rows, number: int) -> bool:
        """Whether no role or binding changed since the last read; False if the log no longer shows that."""
        if self._number < 0 or not changes.is_kept(self._number, number):
            return False
        bounds = ((self._number + 1) * changes.PLACES, (number + 1) * changes.PLACES)
        return not rows.select(_CHANGED, (*bounds, *_KINDS))


def act_at(request: Request, api_path: ApiPath | None, path: str) -> Act:
    """The act of a request for a resource, or for another path."""
    if api_path is None:
        return Act(verb=_VERBS.get(request.method, "get"), path=path)
    return act_of(request, api_path)


def act_of(request: Request, api_path: ApiPath) -> Act:
    """The verb and resource of a request, as RBAC rules name them."""
    verb = _VERBS.get(request.method, "get")
    name = api_path.name
    if not api_path.name:
        verb = {"get": "list", "delete": "deletecollection"}.get(verb, verb)
    if verb in ("get", "list") and not api_path.part:
        verb = "watch" if request.query_params.get("watch") in ("1", "true") else verb
    if not name and (chosen := request.query_params.get("fieldSelector")):
        name = _named(chosen)
    namespace = api_path.namespace
    if (api_path.group, api_path.plural) == ("", "namespaces"):
        namespace = api_path.name
    return Act(
        verb=verb,
        group=api_path.group,
        resource=api_path.plural,
        part=api_path.part,
        namespace=namespace,
        name=name,
    )


def _named(chosen: str) -> str:
    """The name that a field selector requires; empty if it requires none."""
    for term in chosen[: field_selectors.TEXT_CHARS_MAX].split(","):
        field, equals, value = term.partition("=")
        if field.strip() == "metadata.name" and equals:
            return value.removeprefix("=").strip()
    return ""


def _is_members(user: User, api_path: ApiPath | None) -> bool:
    return (
        api_path is not None
        and (api_path.group, api_path.plural, api_path.part) == ("cluster.karmada.io", "clusters", "proxy")
        and api_path.name == user.member
    )


def _read(rows: Rows) -> Rights:
    values = bootstrap_roles.objects()
    for api_version, manifest in rows.select(_OBJECTS):
        if api_version == parsing.API_VERSION:
            try:
                values.append(KubeObject(msgspec.json.decode(manifest, type=dict[str, object])))
            except (msgspec.MsgspecError, ValueError, RecursionError):
                continue  # a role that can't be read grants nothing
    return parsing.rights(values)
