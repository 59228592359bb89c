"""Authentication: certificates, the server's own token, service accounts, members' clients, and impersonation.

The server's token belongs to ``system:masters``. Bootstrap tokens are Secrets (``engine.kubeapi.rights``). Other
tokens are signed (``engine.kubeapi.rights.service_tokens``) and valid as long as the account, cluster or bound object
they were issued for exists.
"""

import hmac
from collections.abc import Callable, Iterator
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import Request

from engine.http.kube.authorizer import Authorizer
from engine.http.kube.control_plane import ControlPlane
from engine.http.kube.routing import Plane
from engine.identity import client_certificates
from engine.identity.client_certificates import Client
from engine.kubeapi.errors import status_objects
from engine.kubeapi.rights import bootstrap_tokens, rbac, service_tokens
from engine.kubeapi.rights.rbac import Act, User
from engine.kubeapi.rights.service_tokens import Claims
from engine.kubeapi.schema.resources import Resource, control_plane
from events.json_values import Json
from events.kube_objects import KubeObject
from events.validation import known_kinds

ADMIN: Final = User(name="reballast-admin", groups=(rbac.MASTERS, rbac.AUTHENTICATED))
ANONYMOUS: Final = User(name=rbac.ANONYMOUS, groups=(rbac.UNAUTHENTICATED,))
_KEY: Final = "reballast.user"
_IMPERSONATE: Final = b"impersonate-"
_EXTRA: Final = "impersonate-extra-"
_ACCOUNT: Final = "system:serviceaccount:"
_ACCOUNT_WORDS: Final = 4
_CLUSTER_GROUP: Final = known_kinds.CLUSTER_GROUP.partition("/")[0]


class Users:
    """Authenticate requests."""

    def __init__(
        self, plane: ControlPlane, authorizer: Authorizer, token: str, clock_ms: Callable[[], int]
    ) -> None:
        self._plane = plane
        self._authorizer = authorizer
        self._token = token.encode()
        self._key = service_tokens.key_of(token)
        self._clock_ms = clock_ms
        self.member_plane: Callable[[str], Plane | None] = _no_member
        """The objects of a simulated member; None for others."""

    async def authenticate(self, request: Request) -> User:
        """The user of a request, after impersonation; raises StatusError: 401 if unknown, 403 if not permitted.

        A certificate of the client counts before a token.
        """
        headers = request.headers
        scheme, _, token = headers.get("authorization", "").partition(" ")
        user = self._certified(request.scope.get(client_certificates.SCOPE_KEY))
        if user is None and scheme.lower() == "bearer":
            user = await self.known(token.strip())
        if user is None:
            raise status_objects.unauthorized()
        return await self._acting(user, headers)

    async def known(self, token: str) -> User | None:
        """The user that a token belongs to; None if it is invalid."""
        if hmac.compare_digest(token.encode("utf-8", "replace"), self._token):
            return ADMIN
        name, secret = bootstrap_tokens.split(token)
        if name:
            return await self._bootstrapper(name, secret)
        try:
            claims = service_tokens.read(token, self._key, self._clock_ms() // 1000)
        except service_tokens.TokenError:
            return None
        # Agents' tokens are signed with the same key but only valid for the agents' API.
        if claims.agent:
            return None
        if claims.member and not claims.account:
            return await self._member(claims)
        plane = self.member_plane(claims.member) if claims.member else self._plane
        return None if plane is None else await self._account(claims, plane)

    def _certified(self, client: Client | None) -> User | None:
        if client is None or not client.name or client.until_ms <= self._clock_ms():
            return None
        return User(name=client.name, groups=(*client.groups, rbac.AUTHENTICATED))

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
            if bound is None or bound.uid != claims.bound_uid or _is_older(bound, account):
                return None
        return User(
            name=rbac.service_account(claims.namespace, claims.account),
            uid=account.uid,
            groups=rbac.service_account_groups(claims.namespace),
            member=claims.member,
            is_account=bool(claims.member),
        )

    async def _acting(self, user: User, headers: Headers) -> User:
        """The impersonated user, if the headers name one; raises StatusError if that is not permitted."""
        # Nearly no request impersonates, so the names are searched once, before they are decoded.
        is_plain = not any(name.startswith(_IMPERSONATE) for name, _text in headers.raw)
        if is_plain or user.member:
            return user  # a member's token gives access to that member only, where nothing would change
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
        for act in _acts(name, uid, groups, extra):
            await self._authorizer.check(user, act)
        if not groups and name.startswith(_ACCOUNT) and name.count(":") == _ACCOUNT_WORDS - 1:
            groups = rbac.service_account_groups(name.split(":")[2])
        if rbac.AUTHENTICATED not in groups:
            groups = (*groups, rbac.AUTHENTICATED)
        return User(name=name, uid=uid, groups=groups, extra=extra)


async def _get(plane: Plane, resource: Resource, namespace: str, name: str) -> KubeObject | None:
    """An object that a token refers to; the log is only asked if this server does not know the object."""
    value = await plane.get(resource, namespace, name, is_fresh=False)
    return value or await plane.get(resource, namespace, name)


def _no_member(_name: str) -> None:
    return None


def keep(request: Request, user: User) -> None:
    """Store the user of a request."""
    request.scope[_KEY] = user


def of(request: Request) -> User:
    """The stored user of a request; raises StatusError (401) if there is none."""
    user = request.scope.get(_KEY)
    if not isinstance(user, User):
        raise status_objects.unauthorized()
    return user


def info(user: User) -> Json:
    """The user as UserInfo of reviews."""
    fields: Json = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        fields["uid"] = user.uid
    if user.extra:
        fields["extra"] = {name: list(texts) for name, texts in user.extra.items()}
    return fields


def _acts(name: str, uid: str, groups: tuple[str, ...], extra: dict[str, tuple[str, ...]]) -> Iterator[Act]:
    """The permissions needed to impersonate this user."""
    group = "authentication.k8s.io"
    if name.startswith(_ACCOUNT) and name.count(":") == _ACCOUNT_WORDS - 1:
        _system, _word, namespace, account = name.split(":")
        yield Act(verb="impersonate", resource="serviceaccounts", namespace=namespace, name=account)
    else:
        yield Act(verb="impersonate", resource="users", name=name)
    for group in groups:
        yield Act(verb="impersonate", resource="groups", name=group)
    if uid:
        yield Act(verb="impersonate", group=group, resource="uids", name=uid)
    for key, texts in extra.items():
        for text in texts:
            yield Act(verb="impersonate", group=group, resource="userextras", part=key, name=text)


def _extra(headers: Headers) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name in dict.fromkeys(headers.keys()):
        if name.startswith(_EXTRA):
            yield name.removeprefix(_EXTRA), tuple(headers.getlist(name))


def _resource(group: str, version: str, plural: str) -> Resource:
    resource = control_plane().resource(group, version, plural)
    if resource is None:
        raise status_objects.unauthorized()
    return resource


def _is_older(bound: KubeObject, account: KubeObject) -> bool:
    """Whether the bound object was created before the account, so for an earlier account of that name."""
    made, since = (value.text_at("metadata", "creationTimestamp") for value in (bound, account))
    return made < since
