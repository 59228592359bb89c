"""Search in members: objects of all clusters that ResourceRegistries name, at ``search/cache`` followed by an API path.

Nothing is cached, since the members are simulated in this process; clusters with agents are left out.
"""

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from engine.http.kube import paths, rendering, requests
from engine.http.kube.control_plane import ControlPlane
from engine.http.kube.list_filters import ObjectFilter
from engine.http.kube.members.apis import MemberApis
from engine.http.kube.members.registries import Registries
from engine.http.kube.paths import ApiPath
from engine.http.kube.routing import Guard
from engine.kubeapi.errors import status_objects
from engine.kubeapi.schema.resources import Resource
from events.json_values import Json


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
        registries = await self._plane.read(Registries)
        kind = await self._plane.resource(inner) or await registries.kind(self._members, inner)
        if kind is None:
            raise status_objects.no_such_path()
        query = requests.query(request)
        hits = await registries.found(self._members, inner, ObjectFilter(kind, query, inner.name))
        form = rendering.form(request.headers.get("accept", ""), query.include)
        metadata: Json = {"resourceVersion": str(self._plane.last_number())}
        items = [value for _, value in hits]
        return rendering.answer(rendering.many(kind, items, form, self._clock_ms(), metadata))
