"""The changes of a plan's requests so far, from which the next requests are computed. Pure."""

from typing import Final
from urllib.parse import quote

from engine.cli import kube_objects
from engine.cli.client import Reply
from engine.kubeapi.patching import patches
from engine.kubeapi.schema import custom_kinds
from engine.kubeapi.schema.resources import Resource
from events.json_values import Json, object_at, objects_at
from events.kube_objects import KubeObject

_NAMESPACES: Final = "api/v1/namespaces"
_DEFINITIONS: Final = "apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_DONE: Final = 200


class PlannedChanges:
    """The objects that the requests of a plan change, by path."""

    def __init__(self) -> None:
        self._objects: dict[str, KubeObject | None] = {}
        self._created: set[str] = set()

    def read(self, path: str) -> Reply | None:
        """Return the answer to a read of an object that the plan changes or whose kind it defines; None for others."""
        if path not in self._objects and not self._is_of_defined_kind(path):
            return None
        value = self._objects.get(path)
        return (
            Reply(kube_objects.NOT_FOUND_CODE, {}, []) if value is None else Reply(_DONE, value.document, [])
        )

    def with_kinds(self, path: str, reply: Reply) -> Reply:
        """Return the answer to a read of the kinds in an API group and version, with those that the plan defines."""
        kinds = [
            {"kind": kind.kind, "name": kind.plural, "namespaced": kind.namespaced}
            for kind in self._defined()
            if path == f"apis/{kind.api_version}"
        ]
        if not kinds:
            return reply
        known = [] if reply.is_refusal else objects_at(reply.body, "resources")
        return Reply(_DONE, {**reply.body, "resources": [*known, *kinds]}, [])

    def computed(self, method: str, path: str, body: Json | None) -> Reply | None:
        """Return the answer to a write that depends on an earlier request.

        None for others: the server answers them.
        """
        name = _object_path(method, path, KubeObject(body or {}))
        if name not in self._objects and not self._is_within_created(path):
            return None
        live = self._objects.get(name)
        value = (
            patches.merge_patched(live.document if live is not None else None, body)
            if method == "PATCH"
            else body
        )
        return Reply(_DONE, object_at(value), [])

    def take(self, method: str, path: str, value: KubeObject) -> None:
        """Store the state of an object after a request."""
        name = _object_path(method, path, value)
        self._objects[name] = None if method == "DELETE" else value
        if method == "POST":
            self._created.add(name)

    def _is_within_created(self, path: str) -> bool:
        """Whether the plan creates the namespace or defines the kind of an object."""
        namespaces = [each for each in self._created if each.startswith(f"{_NAMESPACES}/")]
        names = [each.removeprefix(_NAMESPACES) for each in namespaces]
        return any(f"/namespaces{name}/" in path for name in names) or self._is_of_defined_kind(path)

    def _is_of_defined_kind(self, path: str) -> bool:
        return any(
            path.startswith(f"apis/{kind.api_version}/") and kind.plural in path.split("/")
            for kind in self._defined()
        )

    def _defined(self) -> list[Resource]:
        created = [each for each in self._created if each.startswith(f"{_DEFINITIONS}/")]
        return [kind for each in created for kind in custom_kinds.read(self._objects[each] or KubeObject({}))]


def _object_path(method: str, path: str, value: KubeObject) -> str:
    """Return the path of the object of a write."""
    if method != "POST":
        return path
    return f"{path}/{quote(value.name, safe='')}"
