"""The OpenAPI 3.1 document, generated from the table of queries and the structs."""

import re
from typing import Final, TypeAlias, TypedDict

import msgspec

from engine.http.agents import routes as agent_routes
from engine.http.errors import Refused
from engine.http.plans import routes as plan_routes
from engine.http.query import member_routes, parameters
from engine.http.query.api_routes import PREFIX, ApiRoute
from engine.http.query.queries import QUERIES
from engine.plans.predictions import Prediction
from events import records, schemas
from events.json_values import Json
from events.release import RELEASE


class MediaType(TypedDict, total=False):
    """The schema of a body in one media type."""

    schema: Json


class Response(TypedDict, total=False):
    """A response; ``content`` describes its body by media type."""

    description: str
    content: dict[str, MediaType]


class RequestBody(TypedDict):
    """The body of a request; ``content`` describes it by media type."""

    required: bool
    content: dict[str, MediaType]


Parameter = TypedDict("Parameter", {"name": str, "in": str, "required": bool, "schema": Json})


class Operation(TypedDict, total=False):
    """An operation: one HTTP method of one path."""

    summary: str
    operationId: str
    security: list[dict[str, list[str]]]
    parameters: list[Parameter]
    responses: dict[str, Response]
    requestBody: RequestBody


Paths: TypeAlias = dict[str, dict[str, Operation]]
"""Operations by path and method."""

_TEXT: Final = "text/plain"
_ROUTES: Final[tuple[ApiRoute, ...]] = (
    *QUERIES,
    *member_routes.ROUTES,
    *agent_routes.ROUTES,
    *plan_routes.ROUTES,
)
_PARAMETER: Final = re.compile(r"\{(\w+)(?::\w+)?\}")


def document() -> Json:
    bodies = {body: None for route in _ROUTES for body in (route.gives, route.request) if body is not None}
    _, components = msgspec.json.schema_components(
        [Refused, *bodies, Prediction], schema_hook=_anything, ref_template=schemas.REF
    )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Reballast",
            "version": RELEASE,
            "description": "Queries. Clients write objects through the Kubernetes API, here below /kubernetes. "
            "A client that reads after a write sees the write.",
        },
        "security": [{"token": []}],
        "paths": {
            **_route_paths(),
            **_other_paths(),
        },
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _anything(kind: type) -> Json:
    """Return the schema of ``object``: any JSON value.

    Raises NotImplementedError for other types, as msgspec requires of a schema hook.
    """
    if kind is object:
        return {"description": "any JSON value"}
    raise NotImplementedError(kind)


def _route_paths() -> Paths:
    paths: Paths = {}
    for route in _ROUTES:
        operation: Operation = {
            "summary": route.summary,
            "operationId": route.operation_id,
            "parameters": [*_path_parameters(route.path), *_parameters(route.query)],
            "responses": _responses(_success(route), *route.refusals, status=route.status),
        }
        if route.request is not None:
            schema: Json = {"$ref": schemas.REF.format(name=route.request.__name__)}
            operation["requestBody"] = {"required": True, "content": {records.JSON: {"schema": schema}}}
        path = PREFIX + _PARAMETER.sub(r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = operation
    return paths


def _success(route: ApiRoute) -> Response:
    if route.gives is None:
        return {"description": "Done."}
    if route.is_list:
        return _items(route.gives.__name__)
    if route.is_feed:
        return _content(route.gives.__name__, "The stream, one JSON object per line.", agent_routes.NDJSON)
    return _content(route.gives.__name__)


def _items(name: str) -> Response:
    """Return the response whose body has a list of the type ``name`` in its field ``items``."""
    items: Json = {"type": "array", "items": {"$ref": schemas.REF.format(name=name)}}
    truncated: Json = {"type": "boolean", "description": "More items match than the limit of the query."}
    properties: Json = {"items": items, "truncated": truncated}
    schema: Json = {"type": "object", "properties": properties, "required": ["items", "truncated"]}
    return {"description": "The response.", "content": {records.JSON: {"schema": schema}}}


def _other_paths() -> Paths:
    feed: Response = {"description": "The feed.", "content": {"text/event-stream": {}}}
    content: dict[str, MediaType] = {_TEXT: {"schema": {"type": "string"}}}
    ready: Response = {"description": "Ready.", "content": content}
    not_ready: Response = {"description": "Not ready yet.", "content": content}
    figures: Response = {"description": "Metrics.", "content": content}
    return {
        f"{PREFIX}/live": {
            "get": {
                "summary": "Stream records as they are appended, as server-sent events.",
                "operationId": "live",
                "parameters": _parameters(parameters.LiveQuery),
                "responses": _responses(feed, 400, 429),
            }
        },
        "/healthz": {"get": {"operationId": "healthz", "security": [], "responses": {"200": ready}}},
        "/readyz": {
            "get": {"operationId": "readyz", "security": [], "responses": {"200": ready, "503": not_ready}}
        },
        "/metrics": {"get": {"operationId": "metrics", "responses": _responses(figures)}},
    }


def _path_parameters(path: str) -> list[Parameter]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PARAMETER.findall(path)
    ]


def _parameters(query: type[msgspec.Struct]) -> list[Parameter]:
    """The query parameters: one for each field of the struct."""
    (root,), components = msgspec.json.schema_components([query], ref_template="{name}")
    schema = components[str(root["$ref"])]
    properties: dict[str, Json] = schema.get("properties", {})
    required: list[str] = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": described}
        for name, described in properties.items()
    ]


def _content(name: str, description: str = "The response.", media_type: str = records.JSON) -> Response:
    schema: Json = {"$ref": schemas.REF.format(name=name)}
    return {"description": description, "content": {media_type: {"schema": schema}}}


def _responses(success: Response, *refusals: int, status: int = 200) -> dict[str, Response]:
    refused = _content("Refused", "The request was refused; the body contains the reason.")
    return {str(status): success, **{str(code): refused for code in (*refusals, 401, 414)}}
