"""Rendering of responses in the form that the client accepts: whole objects, tables, or only metadata."""

import re
from collections.abc import Iterable, Sequence
from typing import Final, TypedDict

import msgspec
from starlette.responses import Response

from engine.http.kube.requests import Form
from engine.kubeapi.errors.status_objects import Status, StatusError
from engine.kubeapi.schema.resources import Resource
from engine.kubeapi.tables import tables
from events import records
from events.json_values import Json
from events.kube_fields import ListMeta
from events.kube_objects import KubeObject

WARNING_CHARS_MAX: Final = 256
_WARNINGS_CHARS_MAX: Final = 4 * 1024
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")

_INITIAL_END: Final = "k8s.io/initial-events-end"
"""Annotation of the bookmark after the initial list of a watch with ``sendInitialEvents``."""

encode: Final = msgspec.json.Encoder(order="deterministic").encode


class ObjectList(TypedDict):
    """A list of the objects of one kind, or of their metadata."""

    kind: str
    apiVersion: str
    metadata: ListMeta
    items: list[Json] | list[tables.PartialObjectMetadata]


def render_object(
    resource: Resource, value: KubeObject, form: Form, now_ms: int
) -> tables.Table | tables.PartialObjectMetadata | Json:
    """Render one object as the body of a response."""
    if form.table:
        version: ListMeta = {"resourceVersion": value.resource_version}
        return tables.table(
            resource, [value], now_ms, metadata=version, version=form.table, include=form.include
        )
    return tables.partial(value.metadata, form.partial) if form.partial else value.document


def line(event_type: str, resource: Resource, value: KubeObject, form: Form, now_ms: int) -> bytes:
    """Return the line with which a watch reports an object."""
    return _line(event_type, render_object(resource, value, form, now_ms))


def bookmark(resource: Resource, form: Form, number: int, *, ends_list: bool = False) -> bytes:
    """Return a line with the number from which a watch can be resumed; ``ends_list``: it ends the initial list."""
    metadata: ListMeta = {"resourceVersion": str(number)}
    if ends_list:
        metadata["annotations"] = {_INITIAL_END: "true"}
    if not (form.table or form.partial):
        head: Json = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
        return _line("BOOKMARK", head)
    version = f"meta.k8s.io/{form.partial or 'v1'}"
    head = {"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": metadata}
    if form.table:
        head = {**many(resource, [], form, 0, metadata), "rows": [{"cells": [], "object": head}]}
    return _line("BOOKMARK", head)


def error_line(error: StatusError) -> bytes:
    """Return the line with which a watch reports why it ends; clients then list again, for example."""
    return _line("ERROR", error.body)


def _line(event_type: str, shown: object) -> bytes:
    return encode({"type": event_type, "object": shown}) + b"\n"


def many(
    resource: Resource, values: Sequence[KubeObject], form: Form, now_ms: int, metadata: ListMeta
) -> tables.Table | ObjectList:
    """Render a list as the body of a response; ``metadata`` has the list's resourceVersion and continue token."""
    if form.table:
        return tables.table(
            resource,
            values,
            now_ms,
            metadata=metadata,
            version=form.table,
            include=form.include,
        )
    if form.partial:
        return {
            "kind": "PartialObjectMetadataList",
            "apiVersion": f"meta.k8s.io/{form.partial}",
            "metadata": metadata,
            "items": [tables.partial(value.metadata, form.partial) for value in values],
        }
    return {
        "kind": f"{resource.kind}List",
        "apiVersion": resource.api_version,
        "metadata": metadata,
        "items": [_item(value) if resource.is_kubernetes_own else value.document for value in values],
    }


def _item(value: KubeObject) -> Json:
    """An item of a list of a built-in kind: without apiVersion and kind, as in Kubernetes."""
    return {name: item for name, item in value.document.items() if name not in ("apiVersion", "kind")}


def _shown(warnings: Iterable[str]) -> list[str]:
    """Deduplicate warnings.

    As in Kubernetes, if all warnings together are too long, each is truncated and those beyond the limit are dropped.
    """
    kept: dict[str, None] = {}
    total, total_cut = 0, 0
    for warning in warnings:
        if warning not in kept:
            total_cut += min(len(warning), WARNING_CHARS_MAX)
            if total_cut > _WARNINGS_CHARS_MAX:
                break
            total += len(warning)
            kept[warning] = None
    return [text[:WARNING_CHARS_MAX] for text in kept] if total > _WARNINGS_CHARS_MAX else list(kept)


def deletion(removed: Status | KubeObject, warning: str = "") -> Response:
    """The response to a deletion: the removed object, or a Status; ``warning`` is empty for none."""
    body = removed.document if isinstance(removed, KubeObject) else removed
    return answer(body, warnings=(warning,) if warning else ())


def answer(value: object, code: int = 200, warnings: Iterable[str] = ()) -> Response:
    """A JSON response; ``warnings`` become Warning headers, which kubectl prints."""
    response = Response(encode(value), code, media_type=records.JSON)
    for warning in _shown(warnings):
        add_warning(response, warning)
    return response


def add_warning(response: Response, warning: str) -> None:
    """Add a Warning header to a response."""
    # Warnings quote clients' values. A line break would begin another header; servers refuse to send it.
    text = _UNPRINTABLE.sub("?", warning).replace("\\", "\\\\").replace('"', '\\"')
    response.raw_headers.append((b"warning", f'299 - "{text}"'.encode("latin-1", "replace")))
