"""Review resources, such as SubjectAccessReview: questions about identity and access, answered but not stored."""

from typing import Final, TypedDict

from starlette.requests import Request
from starlette.responses import Response

from engine.http.kube import access, bodies, rendering
from engine.http.kube.access import Authorizer, Users
from engine.kubeapi.errors import causes, status_objects
from engine.kubeapi.errors.status_objects import Cause, StatusDetails, StatusError
from engine.kubeapi.rights import parsing
from engine.kubeapi.rights.rbac import Act, User, UserInfo
from engine.kubeapi.schema.resources import ApiPath, Resource
from events.json_values import Json, as_object, as_text, at, texts
from events.kube_objects import KubeObject

_GROUP: Final = "authorization.k8s.io"
_ASKED: Final = "spec.resourceAttributes"
_MASTERS: Final = "RBAC: members of system:masters have all rights"
_MEMBERS: Final = "the token of a member has all rights in it"
_ALL: Final[parsing.ShownRule] = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}


class _Self(TypedDict):
    userInfo: UserInfo


class _TokenStatus(TypedDict, total=False):
    authenticated: bool
    user: UserInfo
    audiences: list[str]
    error: str


class _AccessStatus(TypedDict, total=False):
    allowed: bool
    reason: str


class _RulesStatus(TypedDict):
    resourceRules: list[parsing.ShownRule]
    nonResourceRules: list[parsing.ShownRule]
    incomplete: bool


class Reviews:
    """Handle POST of reviews."""

    def __init__(self, known: Users, authorizer: Authorizer) -> None:
        self._users = known
        self._authorizer = authorizer

    async def answer(self, request: Request, resource: Resource, api_path: ApiPath) -> Response:
        """Answer a review: return the object in the body, with its status. Raises StatusError."""
        body = await bodies.read_object(request, resource)
        namespace = body.text_at("spec", "namespace")
        user = access.user_of(request)
        status: _Self | _TokenStatus | _AccessStatus | _RulesStatus
        match resource.kind:
            case "SelfSubjectReview":
                status = {"userInfo": user.info}
            case "SelfSubjectRulesReview" if not namespace:
                raise status_objects.bad_request("no namespace on request")
            case "SelfSubjectRulesReview":
                status = await self._rules(user, namespace)
            case "TokenReview":
                status = await self._token(body)
            case "SelfSubjectAccessReview":
                status = await self._access(user, body)
            case _:
                status = await self._access(_named(body), body, api_path.namespace)
        head: Json = {"apiVersion": resource.api_version, "kind": resource.kind}
        return rendering.answer({**body.document, **head, "status": status}, 201)

    async def _token(self, review: KubeObject) -> _TokenStatus:
        token = review.text_at("spec", "token")
        if not token:
            raise status_objects.bad_request("token is required for TokenReview in authentication")
        named = texts(review.list_at("spec", "audiences")) or access.AUDIENCES
        user = await self._users.user_of(token, named)
        if user is None:
            return {"authenticated": False, "error": "the token is unknown, expired or for another audience"}
        # Include the audiences: without them a client must assume that this server does not check audiences.
        audiences = self._users.audiences(token, named)
        return {"authenticated": True, "user": user.info, "audiences": audiences}

    async def _access(self, user: User, review: KubeObject, namespace: str = "") -> _AccessStatus:
        act = _act(review)
        if namespace and act.namespace != namespace:
            raise _refused(
                causes.invalid(f"{_ASKED}.namespace", act.namespace, "must match metadata.namespace")
            )
        if user.is_master:
            return {"allowed": True, "reason": _MASTERS}
        if user.may_all:
            return {"allowed": True, "reason": _MEMBERS}
        grant = (await self._authorizer.newest_rights_of(user)).allows(user, act)
        return {"allowed": False} if grant is None else {"allowed": True, "reason": grant.reason}

    async def _rules(self, user: User, namespace: str) -> _RulesStatus:
        if user.may_all:
            return {"resourceRules": [_ALL], "nonResourceRules": [], "incomplete": False}
        known = await self._authorizer.newest_rights_of(user)
        rules = dict.fromkeys(granted.rule for granted in known.grants(user, namespace))
        return {
            "resourceRules": [parsing.shown(rule) for rule in rules if not rule.paths],
            "nonResourceRules": [parsing.shown(rule) for rule in rules if rule.paths],
            "incomplete": False,
        }


def _act(review: KubeObject) -> Act:
    attributes = as_object(review.at("spec", "resourceAttributes"))
    path = as_object(review.at("spec", "nonResourceAttributes"))
    if attributes is None and path is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise _refused(causes.invalid(_ASKED, None, detail))
    if attributes is not None and path is not None:
        shown = {"Path": path.get("path", ""), "Verb": path.get("verb", "")}
        detail = "cannot be specified in combination with resourceAttributes"
        raise _refused(causes.invalid("spec.nonResourceAttributes", shown, detail))
    if attributes is None:
        verb, url = (as_text(at(path, name)) for name in ("verb", "path"))
        return Act(verb=verb, path=url or "/")
    return Act(
        verb=as_text(attributes.get("verb")),
        group=as_text(attributes.get("group")),
        resource=as_text(attributes.get("resource")),
        part=as_text(attributes.get("subresource")),
        namespace=as_text(attributes.get("namespace")),
        name=as_text(attributes.get("name")),
    )


def _named(review: KubeObject) -> User:
    """The user that a SubjectAccessReview names."""
    groups = tuple(group for group in review.list_at("spec", "groups") if isinstance(group, str))
    name = review.text_at("spec", "user")
    if not name and not groups:
        raise _refused(causes.invalid("spec.user", "", "at least one of user or group must be specified"))
    return User(name=name, groups=groups, uid=review.text_at("spec", "uid"))


def _refused(cause: Cause) -> StatusError:
    """The error for an invalid review; as in Kubernetes, it does not name the kind."""
    details: StatusDetails = {"group": _GROUP, "causes": [cause.plain()]}
    return StatusError(422, "Invalid", f'.{_GROUP} "" is invalid: {cause.text}', details)
