"""OpenAPI v2 for kubectl before 1.29: shows that the server validates fields and supports dry run.

Only the protobuf form (gnostic's messages) is served. kubectl looks for the PATCH operation of a kind and the
names of its query parameters, so the document has no field schemas.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import msgspec

from engine.kubeapi.schema.openapi import GROUP_VERSION_KIND, INFO, collection_path
from engine.kubeapi.schema.resources import Catalogue, Resource

MEDIA_TYPE: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""Content type of responses. Requests have ``@`` for the dot before ``v1.0``; clients cannot parse it in responses."""

_QUERY: Final = ("dryRun", "fieldManager", "fieldValidation", "force")

# Field numbers of gnostic's messages.
_DOCUMENT_SWAGGER: Final = 1
_DOCUMENT_INFO: Final = 2
_DOCUMENT_PATHS: Final = 8
_INFO_TITLE: Final = 1
_INFO_VERSION: Final = 2
_PATHS_PATH: Final = 2
_NAMED_NAME: Final = 1
_NAMED_VALUE: Final = 2
_ITEM_PATCH: Final = 8
_OPERATION_PARAMETERS: Final = 8
_OPERATION_EXTENSION: Final = 13
_EITHER_PARAMETER: Final = 1
_PARAMETER_NON_BODY: Final = 2
_NON_BODY_QUERY: Final = 3
_QUERY_IN: Final = 2
_QUERY_NAME: Final = 4
_ANY_YAML: Final = 2


@lru_cache(maxsize=2)
def document(catalogue: Catalogue) -> bytes:
    """Return the document of all kinds that can be patched."""
    info = _text(_INFO_TITLE, INFO["title"]) + _text(_INFO_VERSION, INFO["version"])
    paths = b"".join(_length_delimited(_PATHS_PATH, path) for path in _paths(catalogue))
    head = _text(_DOCUMENT_SWAGGER, "2.0") + _length_delimited(_DOCUMENT_INFO, info)
    return head + _length_delimited(_DOCUMENT_PATHS, paths)


def _paths(catalogue: Catalogue) -> Iterator[bytes]:
    parameters = b"".join(_length_delimited(_OPERATION_PARAMETERS, _parameter(name)) for name in _QUERY)
    for group in catalogue.groups:
        for _version, resources in group.versions:
            for resource in resources:
                if "patch" in resource.verbs:
                    operation = parameters + _length_delimited(_OPERATION_EXTENSION, _kind(resource))
                    item = _length_delimited(_ITEM_PATCH, operation)
                    path = f"{collection_path(resource)}/{{name}}"
                    yield _text(_NAMED_NAME, path) + _length_delimited(_NAMED_VALUE, item)


def _kind(resource: Resource) -> bytes:
    names = {"group": resource.group, "kind": resource.kind, "version": resource.version}
    # JSON is YAML too.
    return _text(_NAMED_NAME, GROUP_VERSION_KIND) + _length_delimited(
        _NAMED_VALUE, _text(_ANY_YAML, msgspec.json.encode(names).decode())
    )


def _parameter(name: str) -> bytes:
    query = _text(_QUERY_IN, "query") + _text(_QUERY_NAME, name)
    return _length_delimited(
        _EITHER_PARAMETER, _length_delimited(_PARAMETER_NON_BODY, _length_delimited(_NON_BODY_QUERY, query))
    )


def _text(number: int, text: str) -> bytes:
    return _length_delimited(number, text.encode())


def _length_delimited(number: int, content: bytes) -> bytes:
    """Return a length-delimited field: bytes, text or an embedded message."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:  # noqa: PLR2004  # seven bits a byte
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
