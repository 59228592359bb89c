"""Token requests of service accounts (``serviceaccounts/NAME/token``)."""

from collections.abc import Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from engine.http.kube import bodies, rendering
from engine.http.kube.routing import Plane
from engine.kubeapi.errors import causes, status_objects
from engine.kubeapi.rights import rbac, service_tokens
from engine.kubeapi.schema.resources import ApiPath, Resource, control_plane
from engine.kubeapi.schema.schemas import Named
from events import times
from events.json_values import Json, as_object, list_at

_SECONDS: Final = 3_600
_SECONDS_MIN: Final = 600
_SECONDS_MAX: Final = 1 << 32
_REQUEST: Final = Resource(
    group="authentication.k8s.io",
    version="v1",
    kind="TokenRequest",
    plural="tokenrequests",
    singular="tokenrequest",
    schema=Named(name="authentication.TokenRequest"),
)
_BOUND: Final = {"Secret": "secrets", "Pod": "pods"}


class AccountTokens:
    """Issue signed tokens for service accounts.

    The accounts belong to the simulated member ``member``, or to the control plane if ``member`` is empty.
    """

    def __init__(self, plane: Plane, key: bytes, clock_ms: Callable[[], int], member: str = "") -> None:
        self._plane = plane
        self._key = key
        self._member = member
        self._clock_ms = clock_ms

    async def answer(self, request: Request, resource: Resource, api_path: ApiPath) -> Response:
        """Handle POST of a TokenRequest; raises StatusError."""
        if request.method != "POST":
            raise status_objects.method_not_allowed()
        body = await bodies.read_object(request, _REQUEST)
        if body.kind != _REQUEST.kind:
            raise status_objects.bad_request(f"the object provided is a {body.kind}, not a TokenRequest")
        spec = body.object_at("spec")
        account = await self._plane.get(resource, api_path.namespace, api_path.name)
        if account is None:
            raise status_objects.not_found(resource, api_path.name)
        now_ms = self._clock_ms()
        seconds = _seconds(spec)
        audiences = [str(audience) for audience in list_at(spec, "audiences")] or [service_tokens.ISSUER]
        claims = service_tokens.Claims(
            sub=rbac.service_account(api_path.namespace, api_path.name),
            aud=tuple(audiences),
            iat=now_ms // 1000,
            exp=now_ms // 1000 + seconds,
            namespace=api_path.namespace,
            account=api_path.name,
            uid=account.uid,
            member=self._member,
            **await self._bound(api_path, as_object(spec.get("boundObjectRef"))),
        )
        status: Json = {
            "token": service_tokens.signed(claims, self._key),
            "expirationTimestamp": times.to_seconds_text(claims.exp * 1000),
        }
        shown: Json = {**spec, "audiences": audiences, "expirationSeconds": seconds}
        metadata: Json = {
            "name": api_path.name,
            "namespace": api_path.namespace,
            "creationTimestamp": times.to_seconds_text(now_ms),
        }
        head: Json = {"apiVersion": _REQUEST.api_version, "kind": _REQUEST.kind, "metadata": metadata}
        return rendering.answer({**head, "spec": shown, "status": status}, 201)

    async def _bound(self, api_path: ApiPath, reference: Json | None) -> dict[str, str]:
        """Return claims that bind a token to the life of a Pod or Secret; empty if ``reference`` is None."""
        if reference is None:
            return {}
        kind, name = str(reference.get("kind", "")), str(reference.get("name", ""))
        resource = control_plane().resource("", "v1", _BOUND.get(kind, ""))
        if resource is None:
            raise status_objects.bad_request("spec.boundObjectRef.kind: must be Pod or Secret")
        target = await self._plane.get(resource, api_path.namespace, name)
        if target is None:
            raise status_objects.not_found(resource, name)
        if reference.get("uid") not in (None, "", target.uid):
            raise status_objects.conflict(
                resource, name, "the UID in the bound object reference differs from the object's UID"
            )
        return {"bound_kind": kind, "bound_name": name, "bound_uid": target.uid}


def _seconds(spec: Json) -> int:
    seconds = spec.get("expirationSeconds")
    if seconds is None:
        return _SECONDS
    if not isinstance(seconds, int) or not _SECONDS_MIN <= seconds <= _SECONDS_MAX:
        is_long = isinstance(seconds, int) and seconds > _SECONDS_MAX
        bound = "larger than 2^32 seconds" if is_long else "less than 10 minutes"
        detail = f"may not specify a duration {bound}"
        cause = causes.invalid("spec.expirationSeconds", seconds, detail)
        raise status_objects.invalid(_REQUEST, "", [cause])
    return seconds
