"""The OpenAPI 3.1 document, generated from the table of queries and the structs."""

import re
from typing import Final, TypeAlias, TypedDict

import msgspec

from engine.agent import messages
from engine.http.agents import routes
from engine.http.errors import Refused
from engine.http.plans import jobs
from engine.http.plans import routes as plan_routes
from engine.http.query import member_routes, parameters, response_types
from engine.http.query.queries import QUESTIONS, Question
from engine.http.query.routes import PREFIX
from engine.plans.predictions import Prediction
from engine.simulation.listed_statuses import MemberStatus, Pod, WorkloadStatus
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
_PARAMETER: Final = re.compile(r"\{(\w+)(?::\w+)?\}")


def document() -> Json:
    structs: list[type] = [
        Refused,
        response_types.Entries,
        response_types.Listing,
        response_types.Lag,
        response_types.Counts,
        response_types.Moment,
        response_types.Anything,
        MemberStatus,
        Pod,
        WorkloadStatus,
        member_routes.FaultRequest,
        messages.Cluster,
        messages.Token,
        messages.Manifest,
        messages.Namespaces,
        messages.Line,
        messages.Reports,
        plan_routes.PlanRequest,
        plan_routes.PlanList,
        jobs.Plan,
        Prediction,
    ]
    _, components = msgspec.json.schema_components(structs, schema_hook=_anything, ref_template=schemas.REF)
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
            **_question_paths(),
            **_member_paths(),
            **_agent_paths(),
            **_plan_paths(),
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


def _question_paths() -> Paths:
    paths: Paths = {}
    for question in QUESTIONS:
        paths[PREFIX + _plain(question.path)] = {"get": _question(question)}
    live: Operation = {
        "summary": "Stream records as they are appended, as server-sent events.",
        "operationId": "live",
        "parameters": _parameters(parameters.LiveQuery),
        "responses": _responses({"description": "The feed.", "content": {"text/event-stream": {}}}, 400, 429),
    }
    paths[f"{PREFIX}/live"] = {"get": live}
    return paths


def _question(question: Question) -> Operation:
    named = _PARAMETER.findall(question.path)
    refusals = (400, 404) if named else (400,)
    return {
        "summary": question.summary,
        "operationId": "get" + "".join(part.capitalize() for part in re.findall(r"\w+", question.path)),
        "parameters": [*_path_parameters(question.path), *_parameters(question.query)],
        "responses": _responses(_content(question.gives.__name__), *refusals),
    }


def _member_paths() -> Paths:
    """The paths of the routes of simulated members."""
    paths: Paths = {}
    for route in member_routes.ROUTES:
        operation: Operation = {
            "summary": route.summary,
            "operationId": route.operation,
            "parameters": [*_path_parameters(route.path), *(_parameters(route.query) if route.query else [])],
            "responses": _responses(_items(route.gives), 400, 404, 413),
        }
        if route.request is not None:
            operation["requestBody"] = _body(route.request)
        paths[PREFIX + route.path] = {route.method.lower(): operation}
    return paths


def _agent_paths() -> Paths:
    """The paths of the routes of agents."""
    paths: Paths = {}
    for route in routes.ROUTES:
        content = _content(route.gives)
        if route.is_feed:
            content = _content(route.gives, "The stream, one JSON object per line.", routes.NDJSON)
        operation: Operation = {
            "summary": route.summary,
            "operationId": route.operation,
            "parameters": [*_path_parameters(route.path), *(_parameters(route.query) if route.query else [])],
            "responses": _responses(content, 400, 401, 403, 404, 413, 422, 429, 503),
        }
        if route.request is not None:
            operation["requestBody"] = _body(route.request)
        paths.setdefault(PREFIX + route.path, {route.method.lower(): operation})
    return paths


def _plan_paths() -> Paths:
    """The paths of the routes of plans."""
    paths: Paths = {}
    for route in plan_routes.ROUTES:
        success: Response = {"description": "Done."} if route.gives == "Nothing" else _content(route.gives)
        answers = _responses(success, *((400, 413, 422, 429) if route.method == "POST" else (404,)))
        operation: Operation = {
            "summary": route.summary,
            "operationId": route.operation,
            "parameters": _path_parameters(route.path),
            "responses": {
                str(route.status) if code == "200" else code: schema for code, schema in answers.items()
            },
        }
        if route.method == "POST":
            operation["requestBody"] = _body(plan_routes.PlanRequest)
        paths.setdefault(PREFIX + route.path, {})[route.method.lower()] = operation
    return paths


def _items(name: str) -> Response:
    """Return the response whose body has a list of the type ``name`` in its field ``items``."""
    items: Json = {"type": "array", "items": {"$ref": schemas.REF.format(name=name)}}
    truncated: Json = {"type": "boolean", "description": "More items match than the limit of the query."}
    properties: Json = {"items": items, "truncated": truncated}
    schema: Json = {"type": "object", "properties": properties, "required": ["items", "truncated"]}
    return {"description": "The response.", "content": {records.JSON: {"schema": schema}}}


def _other_paths() -> Paths:
    ready, not_ready, figures = (
        _text(description) for description in ("Ready.", "Not ready yet.", "Metrics.")
    )
    return {
        "/healthz": {"get": {"operationId": "healthz", "security": [], "responses": {"200": ready}}},
        "/readyz": {
            "get": {"operationId": "readyz", "security": [], "responses": {"200": ready, "503": not_ready}}
        },
        "/metrics": {"get": {"operationId": "metrics", "responses": _responses(figures)}},
    }


def _text(description: str) -> Response:
    return {"description": description, "content": {_TEXT: {"schema": {"type": "string"}}}}


def _plain(path: str) -> str:
    return _PARAMETER.sub(r"{\1}", path)


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
    return [
        {"name": name, "in": "query", "required": False, "schema": described}
        for name, described in properties.items()
    ]


def _content(name: str, description: str = "The response.", media_type: str = records.JSON) -> Response:
    schema: Json = {"$ref": schemas.REF.format(name=name)}
    return {"description": description, "content": {media_type: {"schema": schema}}}


def _body(request: type[msgspec.Struct]) -> RequestBody:
    schema: Json = {"$ref": schemas.REF.format(name=request.__name__)}
    return {"required": True, "content": {records.JSON: {"schema": schema}}}


def _responses(success: Response, *refusals: int) -> dict[str, Response]:
    refused = _content("Refused", "The request was refused; the body contains the reason.")
    return {"200": success, **{str(status): refused for status in (*refusals, 401, 414)}}
