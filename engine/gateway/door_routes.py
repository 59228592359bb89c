"""The door over HTTP: POST under ``/api/v1``, bodies bounded, every answer a list of results or one error."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine.gateway import bodies
from engine.gateway import door_commands as commands
from engine.gateway.door import CONTENT_BYTES_MAX, Door
from engine.gateway.door_appending import SOURCE
from engine.gateway.door_results import LATE, NOT_FOUND, REFUSED, UNKNOWN, Result
from engine.log import port
from events import limits

_PREFIX: Final = "/api/v1"
_BODY_BYTES_MAX: Final = 2 * limits.OBJECT_BYTES_MAX
_STATUS: Final = {REFUSED: 422, LATE: 409, NOT_FOUND: 404, UNKNOWN: 503}
_SOURCE_CHARS_MAX: Final = 120


_Run = Callable[[Door, commands.ContentQuery, bytes, str], Awaitable[list[Result]]]


class _Error(Struct, frozen=True):
    field: str
    reason: str
    remedy: str


def routes(door: Door) -> list[Route]:
    """The routes of all commands."""
    found = [_json_route(door, command) for command in commands.COMMANDS]

    async def apply(request: Request) -> Response:
        return await _content(door, request, commands.apply)

    async def delete(request: Request) -> Response:
        return await _content(door, request, commands.delete)

    found.append(Route(f"{_PREFIX}/apply", apply, methods=["POST"]))
    found.append(Route(f"{_PREFIX}/delete", delete, methods=["POST"]))
    return found


def answer(results: list[Result]) -> Response:
    """All results; the status is that of the first problem, whose reason stands beside them."""
    problem = next((result.problems[0] for result in results if result.problems), None)
    body: dict[str, object] = {"results": results}
    if problem is None:
        return _json(body, 200)
    body["error"] = _Error(problem.field, problem.reason, problem.remedy)
    return _json(body, _STATUS[problem.verdict])


def _json_route(door: Door, command: commands.Command) -> Route:
    async def run(request: Request) -> Response:
        try:
            body = await bodies.read(request, _BODY_BYTES_MAX)
            wanted = commands.read_request(command, body)
            cluster = str(request.path_params.get("name", ""))
            return answer([await command.run(door, wanted, cluster, _source(request))])
        except bodies.TooLargeError as error:
            return _refusal(413, "body", str(error), "send less at once")
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            return _refusal(400, "body", str(error) or "nested too deeply", "see /openapi.json")
        except port.LogError as error:
            return _refusal(503, "log", str(error), "try again")

    return Route(_PREFIX + command.path, run, methods=["POST"])


async def _content(door: Door, request: Request, run: _Run) -> Response:
    try:
        query = commands.read_query(dict(request.query_params))
        content = await bodies.read(request, CONTENT_BYTES_MAX)
        return answer(await run(door, query, content, _source(request)))
    except bodies.TooLargeError as error:
        return _refusal(413, "body", str(error), "split the file")
    except msgspec.ValidationError as error:
        return _refusal(400, "query", str(error), "see /openapi.json")
    except port.LogError as error:
        return _refusal(503, "log", str(error), "try again")


def _source(request: Request) -> str:
    """Who says it: what the client calls itself, as part of a URI."""
    agent = request.headers.get("x-reballast-source", "")
    kept = "".join(char for char in agent if char.isascii() and (char.isalnum() or char in "-_./"))
    return f"{SOURCE}/{kept[:_SOURCE_CHARS_MAX]}" if kept else SOURCE


def _refusal(status: int, field: str, reason: str, remedy: str) -> Response:
    return _json({"error": _Error(field, reason, remedy)}, status)


def _json(body: Mapping[str, object], status: int) -> Response:
    return Response(msgspec.json.encode(body), status, media_type="application/json")
