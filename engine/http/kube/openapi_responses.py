"""Responses with OpenAPI documents: content negotiation, ETags, and URLs that clients may cache."""

import re
from collections.abc import Mapping
from typing import Final

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response

from engine.http.kube import rendering
from engine.kubeapi.errors import status_objects
from engine.kubeapi.schema import openapi, openapi_v2
from engine.kubeapi.schema.resources import Catalogue
from events import records

_UNCACHED: Final = "no-cache, private"
_QUALITY: Final = re.compile(r"[01](?:\.[0-9]{0,3})?")
_JSON: Final = {records.JSON: records.JSON}
_V2: Final = {
    **_JSON,
    openapi_v2.PROTOBUF.replace(".v1.0", "@v1.0"): openapi_v2.PROTOBUF,
    openapi_v2.PROTOBUF: openapi_v2.PROTOBUF,
}


async def answer(request: Request, below: list[str], catalogue: Catalogue) -> Response:
    """The response to a path below ``/openapi``; raises StatusError if there is no such path."""
    match below:
        case ["v2"]:
            document = await anyio.to_thread.run_sync(openapi_v2.document, catalogue)
            media_type = _negotiated(request, _V2)
            content = document.json if media_type == records.JSON else document.protobuf
            return _response(request, content, media_type)
        case ["v3"]:
            return rendering.answer(await anyio.to_thread.run_sync(openapi.index, catalogue))
        case ["v3", "api", version]:
            return await _of_version(request, catalogue, "", version)
        case ["v3", "apis", group, version]:
            return await _of_version(request, catalogue, group, version)
        case _:
            raise status_objects.no_such_path()


async def _of_version(request: Request, catalogue: Catalogue, group: str, version: str) -> Response:
    document = await anyio.to_thread.run_sync(openapi.document, catalogue, group, version)
    if document is None:
        raise status_objects.no_such_path()
    content = rendering.encode(document)
    url_digest = request.query_params.get("hash", "")
    if url_digest not in ("", openapi.digest(content)):
        return Response(status_code=301, headers={"location": openapi.url(request.url.path, content)})
    # Clients may cache a URL with a hash forever: a changed document has another hash and URL.
    caching = "public, max-age=31536000, immutable" if url_digest else _UNCACHED
    return _response(request, content, _negotiated(request, _JSON), caching)


def _response(request: Request, content: bytes, media_type: str, caching: str = _UNCACHED) -> Response:
    """The document; 304 if the client has it already, 406 if it accepts no form of it."""
    etag = f'"{openapi.digest(content)}"'
    if not media_type:
        return Response(status_code=406, headers={"vary": "Accept"})
    headers = {"cache-control": caching, "etag": etag, "vary": "Accept"}
    known = request.headers.get("if-none-match", "").split(",")
    if any(tag.strip().removeprefix("W/") in (etag, "*") for tag in known):
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=media_type, headers=headers)


def _negotiated(request: Request, offers: Mapping[str, str]) -> str:
    """Return the content type of the media type that the client prefers; empty if it accepts none of the offers."""
    ranges: list[tuple[float, bool, str]] = []
    for media_range in (request.headers.get("accept") or "*/*").split(","):
        media, *parameters = (part.strip() for part in media_range.split(";"))
        quality = next((text[2:] for text in parameters if text.startswith("q=")), "1")
        ranges.append((-float(quality) if _QUALITY.fullmatch(quality) else -1, "*" in media, media))
    for _quality, _is_pattern, media in sorted(ranges, key=lambda media_range: media_range[:2]):
        for offer, content_type in offers.items():
            if media in (offer, "application/*", "*/*"):
                return content_type
    return ""
