"""Reviews: who asks, and what they may do. There is one token so far, and its holder may do everything."""

from collections.abc import Awaitable, Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from engine.gateway.kube import rendering, requests
from engine.gateway.kube.paths import Place
from engine.kube.resources import Resource
from engine.kube.schemas import Json, as_object

_USER: Final = "reballast-admin"
_GROUPS: Final = ["system:masters", "system:authenticated"]
_WHO: Final[Json] = {"username": _USER, "groups": _GROUPS}


def answering(is_token: Callable[[str], bool]) -> Callable[[Request, Resource, Place], Awaitable[Response]]:
    """What answers reviews; ``is_token`` tells whether a token is good."""

    async def review(request: Request, resource: Resource, _place: Place) -> Response:
        body = await requests.body(request, resource)
        status: Json
        match resource.kind:
            case "SelfSubjectReview":
                status = {"userInfo": _WHO}
            case "SelfSubjectRulesReview":
                status = {
                    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                    "incomplete": False,
                }
            case "TokenReview":
                given = (as_object(body.get("spec")) or {}).get("token", "")
                good = isinstance(given, str) and is_token(given)
                status = {"authenticated": good, **({"user": _WHO} if good else {})}
            case _:
                status = {"allowed": True, "reason": "the holder of the token may do everything"}
        head: Json = {"apiVersion": resource.api_version, "kind": resource.kind}
        return rendering.answer({**body, **head, "status": status}, 201)

    return review
