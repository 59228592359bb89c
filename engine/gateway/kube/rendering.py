"""Answers in the form that a client accepts: objects as they are, as tables, or their metadata alone."""

from collections.abc import Iterable, Sequence
from typing import Final, Literal

import msgspec
from msgspec import Struct
from starlette.responses import Response

from engine.kube import statuses, tables
from engine.kube.resources import Resource
from engine.kube.schemas import Json, as_object

Include = Literal["None", "Metadata", "Object"]

JSON: Final = "application/json"
_ACCEPTED: Final = (
    JSON,
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/*",
    "*/*",
)
"""What clients of a real server may ask for; they all get JSON, which all of them can read."""

_WARNINGS_CHARS_MAX: Final = 4 * 1024
_WARNING_CHARS_MAX: Final = 256
_VERSIONS: Final = ("v1", "v1beta1")
encode: Final = msgspec.json.Encoder(order="deterministic").encode


class Form(Struct, frozen=True, kw_only=True):
    """How objects are to be shown: plain, as a Table (``table`` is its version), or ``partial`` (the same)."""

    table: str = ""
    partial: str = ""
    include: Include = "Metadata"

    @property
    def is_brief(self) -> bool:
        """Whether little more of objects is shown than their metadata."""
        return bool(self.table) and self.include != "Object"


def form(accept: str, include: Include = "Metadata") -> Form:
    """The form that a client asks for first, of those that there are; raises StatusError where there is none."""
    is_known = not accept.strip()
    for wish in accept.split(","):
        media, *parameters = (part.strip() for part in wish.split(";"))
        if media not in _ACCEPTED:
            continue
        is_known = True
        wanted = {name: value for name, _equals, value in (part.partition("=") for part in parameters)}
        version = wanted.get("v", "v1")
        match wanted.get("as"):
            case None:
                return Form()
            case "Table" if version in _VERSIONS:
                return Form(table=version, include=include)
            case "PartialObjectMetadata" | "PartialObjectMetadataList" if version in _VERSIONS:
                return Form(partial=version)
            case _:
                continue
    if accept.strip():
        raise statuses.not_acceptable(known=is_known)
    return Form()


def one(resource: Resource, value: Json, form: Form, now_ms: int) -> Json:
    """One object."""
    if form.table:
        metadata = as_object(value.get("metadata")) or {}
        version: Json = {"resourceVersion": metadata.get("resourceVersion", "")}
        return tables.table(
            resource, [value], now_ms, metadata=version, version=form.table, include=form.include
        )
    return tables.partial(value, form.partial) if form.partial else value


def many(resource: Resource, values: Sequence[Json], form: Form, now_ms: int, metadata: Json) -> Json:
    """A list; ``metadata`` are its resourceVersion and where it goes on."""
    if form.table:
        return tables.table(
            resource, values, now_ms, metadata=metadata, version=form.table, include=form.include
        )
    if form.partial:
        return {
            "kind": "PartialObjectMetadataList",
            "apiVersion": f"meta.k8s.io/{form.partial}",
            "metadata": metadata,
            "items": [tables.partial(each, form.partial) for each in values],
        }
    return {
        "kind": f"{resource.kind}List",
        "apiVersion": resource.api_version,
        "metadata": metadata,
        "items": [_item(each) for each in values] if resource.is_kubernetes_own else values,
    }


def _item(value: Json) -> Json:
    """An object in a list of one of Kubernetes' own kinds, whose head says of which."""
    return {name: item for name, item in value.items() if name not in ("apiVersion", "kind")}


def _shown(warnings: Iterable[str]) -> list[str]:
    """Each warning once; as in Kubernetes, many are cut, and those over a total length are left out."""
    found: dict[str, None] = {}
    total, total_cut = 0, 0
    for warning in warnings:
        if warning not in found:
            total_cut += min(len(warning), _WARNING_CHARS_MAX)
            if total_cut > _WARNINGS_CHARS_MAX:
                break
            total += len(warning)
            found[warning] = None
    return [each[:_WARNING_CHARS_MAX] for each in found] if total > _WARNINGS_CHARS_MAX else list(found)


def answer(value: object, code: int = 200, warnings: Iterable[str] = ()) -> Response:
    """A JSON answer; ``warnings`` are printed by clients."""
    response = Response(encode(value), code, media_type=JSON)
    for warning in _shown(warnings):
        text = warning.replace("\\", "\\\\").replace('"', '\\"')
        response.raw_headers.append((b"warning", f'299 - "{text}"'.encode("latin-1", "replace")))
    return response
