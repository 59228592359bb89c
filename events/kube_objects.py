"""A whole Kubernetes object: its decoded document with readers of the fields that every object has.

Documents are decoded into one where they enter the process and encoded where they leave it. An encoder refuses a
``KubeObject``, so that only its document can be written.
"""

from collections.abc import Mapping
from typing import Final

from events.json_values import Json, as_text, at, list_at, object_at, objects_at


class KubeObject:
    """A Kubernetes object of any kind.

    It never changes, nor does anything in its document: the methods ``with_…`` return another one. Readers return an
    empty value if a field is missing or of another type.
    """

    __slots__ = ("document", "metadata")

    def __init__(self, document: Json) -> None:
        self.document: Final = document
        self.metadata: Final = object_at(document, "metadata")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KubeObject) and self.document == other.document

    def __hash__(self) -> int:
        return hash((self.kind, self.key))

    def __repr__(self) -> str:
        return f"KubeObject({self.document!r})"

    @property
    def api_version(self) -> str:
        return as_text(self.document.get("apiVersion"))

    @property
    def kind(self) -> str:
        return as_text(self.document.get("kind"))

    @property
    def type_meta(self) -> tuple[str, str]:
        """The fields apiVersion and kind, which Kubernetes calls TypeMeta."""
        api_version, kind = self.document.get("apiVersion"), self.document.get("kind")
        return api_version if isinstance(api_version, str) else "", kind if isinstance(kind, str) else ""

    @property
    def name(self) -> str:
        return as_text(self.metadata.get("name"))

    @property
    def namespace(self) -> str:
        """The namespace; empty for an object without one."""
        return as_text(self.metadata.get("namespace"))

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name: the order of a list, and the identity among objects of one kind."""
        return self.namespace, self.name

    @property
    def uid(self) -> str:
        return as_text(self.metadata.get("uid"))

    @property
    def resource_version(self) -> str:
        return as_text(self.metadata.get("resourceVersion"))

    @property
    def labels(self) -> Json:
        return object_at(self.metadata, "labels")

    @property
    def annotations(self) -> Json:
        return object_at(self.metadata, "annotations")

    @property
    def is_ending(self) -> bool:
        """Whether the object has a deletionTimestamp."""
        return bool(self.metadata.get("deletionTimestamp"))

    def at(self, *path: str) -> object:
        """Return the value at a path of field names; None if there is none."""
        return at(self.document, *path)

    def text_at(self, *path: str) -> str:
        """Return the text at a path of field names."""
        return as_text(at(self.document, *path))

    def object_at(self, *path: str) -> Json:
        """Return the JSON object at a path of field names."""
        return object_at(self.document, *path)

    def list_at(self, *path: str) -> list[object]:
        """Return the list at a path of field names."""
        return list_at(self.document, *path)

    def objects_at(self, *path: str) -> list[Json]:
        """Return the items of the list at a path; items that are not objects become empty objects."""
        return objects_at(self.document, *path)

    def with_fields(self, fields: Mapping[str, object]) -> "KubeObject":
        """Return the object with other values of some top-level fields."""
        return KubeObject({**self.document, **fields})

    def with_metadata(self, fields: Mapping[str, object]) -> "KubeObject":
        """Return the object with other values of some fields of its metadata."""
        return KubeObject({**self.document, "metadata": {**self.metadata, **fields}})
