"""Access to the Kubernetes API: the user of a request, and whether its roles permit the request.

A user is authenticated by a client certificate or a token, and may then impersonate another user. The server's own
token belongs to ``system:masters``. Bootstrap tokens are Secrets (``engine.kubeapi.rights``). Other tokens are signed
(``engine.kubeapi.rights.service_tokens``); they are valid as long as the service account, cluster or bound object for
which they were issued exists. Roles and bindings are read from the views, and read again when one has changed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import Final
from urllib.parse import unquote

from starlette.datastructures import Headers
from starlette.requests import Request

from engine.http.incoming_requests import bearer_token, is_same
from engine.http.kube.control_plane import ControlPlane
from engine.http.kube.requests import is_set, parameters_of
from engine.http.kube.routing import Plane
from engine.identity import client_certificates
from engine.identity.client_certificates import Client
from engine.kubeapi.errors import status_objects
from engine.kubeapi.requests import field_selectors
from engine.kubeapi.rights import bootstrap_roles, bootstrap_tokens, parsing, rbac, service_tokens
from engine.kubeapi.rights.rbac import Act, Rights, User
from engine.kubeapi.rights.service_tokens import Claims
from engine.kubeapi.schema.resources import ApiPath, Resource, control_plane
from engine.writing.read_side import ReadSide
from engine.writing.request_origins import CURRENT, Origin
from events import keys
from events.json_values import DECODING_ERRORS
from events.kube_objects import KubeObject
from events.validation import known_kinds
from projections import changes, objects
from projections.port import Rows

ADMIN: Final = User(name="reballast-admin", groups=(rbac.MASTERS, rbac.AUTHENTICATED))
ANONYMOUS: Final = User(name=rbac.ANONYMOUS, groups=(rbac.UNAUTHENTICATED,))
OPEN: Final = ("/healthz", "/livez", "/readyz", "/version")
"""Paths that need no credentials."""

AUDIENCES: Final = (service_tokens.ISSUER,)
_KEY: Final = "reballast.user"
_AUTHID_CHARS: Final = 512
"""Maximum length of a user's name in records, whose headers are limited."""

_IMPERSONATE: Final = b"impersonate-"
_EXTRA: Final = "impersonate-extra-"
_ACCOUNT: Final = "system:serviceaccount:"
_ACCOUNT_WORDS: Final = 4
_CLUSTER_GROUP: Final = keys.group_of(known_kinds.CLUSTER_GROUP)

_KINDS: Final = tuple(changes.kind_of(parsing.API_VERSION, kind) for kind in parsing.KINDS)


class Authorizer:
    """Authorize requests by the current roles and bindings.

    ``member_rights`` returns the rights that the roles and bindings of a simulated member grant.
    """

    def __init__(self, reads: ReadSide, member_rights: Callable[[str], Awaitable[Rights]]) -> None:
        self._reads = reads
        self._member_rights = member_rights
        self._rights = parsing.rights(bootstrap_roles.objects())
        self._number = -1
        self._lock = asyncio.Lock()

    async def rights(self) -> Rights:
        """The rights that all roles and bindings grant, up to the newest record that this server knows."""
        number = self._reads.log.last_number()
        if number > self._number:
            async with self._lock:
                await self._reads.views.wait_folded(number)
                # Check again: another request may have read the rights while this one waited for the lock.
                if number > self._number:
                    await self._reads.peek(self._refresh)
        return self._rights

    async def rights_of(self, user: User) -> Rights:
        """The rights of a user: a member's service account has rights granted in the member, others have ``rights``."""
        return await (self._member_rights(user.member) if user.is_account else self.rights())

    async def newest_rights_of(self, user: User) -> Rights:
        """The rights of a user, including the roles and bindings that other replicas have just stored."""
        await self._reads.catch_up()
        return await self.rights_of(user)

    async def check(self, user: User, act: Act) -> None:
        """Raise StatusError (403) if the user may not carry out this act."""
        if user.is_master or (await self.rights_of(user)).may(user, act):
            return
        # Another replica may have just stored a role or binding that permits it; catch up before refusing.
        if (await self.newest_rights_of(user)).may(user, act):
            return
        if act.path:
            raise status_objects.forbidden_path(user.name, act.verb, act.path)
        raise status_objects.forbidden_act(user.name, act)

    async def check_request(self, request: Request, api_path: ApiPath | None, path: str) -> None:
        """Raise StatusError (403) if the user may not send this request to the control plane.

        ``path`` is checked instead of the resource if ``api_path`` is None.
        """
        if path in OPEN:
            return
        user = user_of(request)
        if user.member:
            proxy = ("cluster.karmada.io", "clusters", user.member, "proxy")
            if api_path is not None and proxy != (
                api_path.group,
                api_path.plural,
                api_path.name,
                api_path.part,
            ):
                raise status_objects.forbidden_act(user.name, act_of(request, api_path))
        elif not user.is_master:
            await self.check(user, act_at(request, api_path, path))

    async def check_member_request(self, request: Request, api_path: ApiPath | None, path: str) -> None:
        """Raise StatusError (403) if the roles of the control plane do not permit this request to a member."""
        if path not in OPEN and not (user := user_of(request)).may_all:
            await self.check(user, act_at(request, api_path, path))

    def _refresh(self, rows: Rows) -> None:
        number = changes.checkpoint(rows)
        if changes.may_have_changed(rows, _KINDS, self._number, number):
            self._rights = _rights_in(rows)
        self._number = number


class Users:
    """Authenticate requests; ``member_plane`` returns the objects of a simulated member, None for other names."""

    def __init__(
        self,
        plane: ControlPlane,
        member_plane: Callable[[str], Plane | None],
        authorizer: Authorizer,
        token: str,
        clock_ms: Callable[[], int],
    ) -> None:
        self._plane = plane
        self._member_plane = member_plane
        self._authorizer = authorizer
        self._token = token
        self._key = service_tokens.key_of(token)
        self._clock_ms = clock_ms

    async def authenticate(self, request: Request) -> User:
        """The user of a request. Raises StatusError: 401 if unknown, 403 if the user may not impersonate as requested.

        A valid client certificate takes precedence over a token.
        """
        headers = request.headers
        client: Client | None = request.scope.get(client_certificates.SCOPE_KEY)
        user = None
        if client is not None and client.name and client.until_ms > self._clock_ms():
            user = User(name=client.name, groups=(*client.groups, rbac.AUTHENTICATED))
        elif token := bearer_token(headers):
            user = await self.user_of(token)
        if user is None:
            raise status_objects.unauthorized()
        return await self._impersonated(user, headers)

    async def user_of(self, token: str, audiences: Collection[str] = AUDIENCES) -> User | None:
        """The user that a token belongs to; None if the token is invalid or was issued for other audiences only.

        A token without audiences is valid for this server.
        """
        is_here = service_tokens.ISSUER in audiences
        if is_same(token, self._token):
            return ADMIN if is_here else None
        name, secret = bootstrap_tokens.split(token)
        if name:
            return await self._bootstrapper(name, secret) if is_here else None
        try:
            claims = service_tokens.read(token, self._key, self._clock_ms() // 1000)
        except service_tokens.TokenError:
            return None
        # Agents' tokens are signed with this key too, but are valid only for the agents' API. A token issued for a
        # service (its audience) is refused: the service must not be able to act as the account.
        if claims.agent or not {*(claims.aud or AUDIENCES)} & {*audiences}:
            return None
        if claims.member and not claims.account:
            return await self._member(claims)
        plane = self._member_plane(claims.member) if claims.member else self._plane
        return None if plane is None else await self._account(claims, plane)

    def audiences(self, token: str, named: Collection[str]) -> list[str]:
        """Return the audiences in ``named`` for which a token is valid; the caller has authenticated the token."""
        try:
            claims = service_tokens.read(token, self._key, self._clock_ms() // 1000)
        except service_tokens.TokenError:  # the server's own token, or a bootstrap token
            return [audience for audience in named if audience in AUDIENCES]
        return [audience for audience in named if audience in (claims.aud or AUDIENCES)]

    async def _bootstrapper(self, name: str, secret: str) -> User | None:
        stored = await _get(
            self._plane,
            _resource("", "v1", "secrets"),
            bootstrap_tokens.NAMESPACE,
            f"{bootstrap_tokens.NAME_PREFIX}{name}",
        )
        return None if stored is None else bootstrap_tokens.user(stored, secret, self._clock_ms())

    async def _member(self, claims: Claims) -> User | None:
        cluster = await _get(
            self._plane, _resource(_CLUSTER_GROUP, "v1alpha1", "clusters"), "", claims.member
        )
        if cluster is None or cluster.uid != claims.uid:
            return None
        return User(name=claims.sub, groups=(rbac.AUTHENTICATED,), member=claims.member)

    async def _account(self, claims: Claims, plane: Plane) -> User | None:
        account = await _get(plane, _resource("", "v1", "serviceaccounts"), claims.namespace, claims.account)
        if account is None or (claims.uid and account.uid != claims.uid):
            return None
        if claims.bound_kind:
            plural = f"{claims.bound_kind.lower()}s"
            bound = await _get(plane, _resource("", "v1", plural), claims.namespace, claims.bound_name)
            if bound is None or bound.uid != claims.bound_uid:
                return None
            made, since = (value.text_at("metadata", "creationTimestamp") for value in (bound, account))
            if made < since:
                return None  # the bound object belonged to an earlier account of the same name
        return User(
            name=rbac.service_account(claims.namespace, claims.account),
            uid=account.uid,
            groups=rbac.service_account_groups(claims.namespace),
            member=claims.member,
            is_account=bool(claims.member),
        )

    async def _impersonated(self, user: User, headers: Headers) -> User:
        """The impersonated user, if the headers name one; raises StatusError if that is not permitted."""
        # Few requests impersonate, so search the raw header names first; decoding all headers costs more.
        is_plain = not any(name.startswith(_IMPERSONATE) for name, _text in headers.raw)
        if is_plain or user.member:
            return user  # a member's token is valid in that member only, whose API ignores impersonation
        name = headers.get("impersonate-user", "")
        groups = tuple(headers.getlist("impersonate-group"))
        extra = dict(_extra(headers))
        uid = headers.get("impersonate-uid", "")
        if not name:
            if groups or extra or uid:
                raise status_objects.bad_request(
                    "requested to impersonate groups or more, without naming a user"
                )
            return user
        for act in _impersonation_permissions(name, uid, groups, extra):
            await self._authorizer.check(user, act)
        if not groups and name.startswith(_ACCOUNT) and name.count(":") == _ACCOUNT_WORDS - 1:
            groups = rbac.service_account_groups(name.split(":")[2])
        own_group = rbac.UNAUTHENTICATED if name == rbac.ANONYMOUS else rbac.AUTHENTICATED
        if not {own_group, rbac.UNAUTHENTICATED} & {*groups}:
            groups = (*groups, own_group)
        return User(name=name, uid=uid, groups=groups, extra=extra)


async def _get(plane: Plane, resource: Resource, namespace: str, name: str) -> KubeObject | None:
    """Return an object that a token refers to; None if even views that have caught up with the log do not have it."""
    value = await plane.get(resource, namespace, name, is_fresh=False)
    return value or await plane.get(resource, namespace, name)


def keep_user(request: Request, user: User) -> None:
    """Store the user in the scope of a request, and in ``CURRENT``, the origin of the records that it writes."""
    request.scope[_KEY] = user
    CURRENT.set(Origin(CURRENT.get().trace, _authtype(user), user.name[:_AUTHID_CHARS]))


def _authtype(user: User) -> str:
    """Return the ``authtype`` of a user, an attribute of the CloudEvents extension *auth context*."""
    if user.name == rbac.ANONYMOUS:
        return "unauthenticated"
    return "service_account" if user.name.startswith(_ACCOUNT) else "user"


def user_of(request: Request) -> User:
    """The stored user of a request; raises StatusError (401) if there is none."""
    user = request.scope.get(_KEY)
    if not isinstance(user, User):
        raise status_objects.unauthorized()
    return user


def _impersonation_permissions(
    name: str, uid: str, groups: tuple[str, ...], extra: dict[str, tuple[str, ...]]
) -> Iterator[Act]:
    """The permissions needed to impersonate this user."""
    api_group = "authentication.k8s.io"
    if name.startswith(_ACCOUNT) and name.count(":") == _ACCOUNT_WORDS - 1:
        _system, _word, namespace, account = name.split(":")
        yield Act(verb="impersonate", resource="serviceaccounts", namespace=namespace, name=account)
    else:
        yield Act(verb="impersonate", resource="users", name=name)
    for group in groups:
        yield Act(verb="impersonate", resource="groups", name=group)
    if uid:
        yield Act(verb="impersonate", group=api_group, resource="uids", name=uid)
    for key, texts in extra.items():
        for text in texts:
            yield Act(verb="impersonate", group=api_group, resource="userextras", part=key, name=text)


def _extra(headers: Headers) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name in dict.fromkeys(headers.keys()):
        if name.startswith(_EXTRA):
            # Clients percent-encode keys: a header name cannot contain slashes, which keys often have.
            yield unquote(name.removeprefix(_EXTRA)), tuple(headers.getlist(name))


def _resource(group: str, version: str, plural: str) -> Resource:
    resource = control_plane().resource(group, version, plural)
    if resource is None:
        raise status_objects.unauthorized()
    return resource


def _rights_in(rows: Rows) -> Rights:
    values = bootstrap_roles.objects()
    for stored in objects.manifests(rows, parsing.API_VERSION, *parsing.KINDS):
        try:
            values.append(KubeObject.from_json(stored.manifest))
        except DECODING_ERRORS:
            continue  # a role that can't be read grants nothing
    return parsing.rights(values)


_VERBS: Final = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}


def act_at(request: Request, api_path: ApiPath | None, path: str) -> Act:
    """The verb and resource of a request, or its verb and path if ``api_path`` is None."""
    if api_path is None:
        return Act(verb=_VERBS.get(request.method, "get"), path=path)
    return act_of(request, api_path)


def act_of(request: Request, api_path: ApiPath) -> Act:
    """The verb and resource of a request, as RBAC rules name them."""
    verb = _VERBS.get(request.method, "get")
    name = api_path.name
    if not name:
        verb = {"get": "list", "delete": "deletecollection"}.get(verb, verb)
    if verb == "list" and request.scope["query_string"]:
        # Only a read of a collection can be a watch, or name one object by a field selector. Other requests ignore
        # these parameters, so their rights must not depend on them.
        parameters = parameters_of(request)
        verb = "watch" if is_set(parameters, "watch") else verb
        name = _named(parameters.get("fieldSelector", ""))
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
