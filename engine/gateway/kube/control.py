"""The control plane behind the API: its kinds, and its objects as the views have them.

Every read first waits for all that the log has, so that everybody reads their own writes. Namespaces that are always
there, and those of works, stand in no log; they are shown beside those that do.
"""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

import anyio.to_thread
import msgspec

from engine.gateway.door import GIVEN_NAMESPACES
from engine.gateway.kube.events import Events
from engine.gateway.kube.fitting import Fitting
from engine.gateway.kube.paths import Place
from engine.gateway.kube.requests import Query
from engine.gateway.services import Services
from engine.kube import custom_kinds
from engine.kube.resources import Catalogue, Resource, control_plane
from engine.kube.schemas import Json
from events import forms_kinds as kinds
from events import ids, times
from projections import query, shelves, work_documents
from projections.port import Rows

_Answer = TypeVar("_Answer")
_SIGNATURE: Final = """
SELECT count(*), coalesce(max(number), 0) FROM objects WHERE kind = 'CustomResourceDefinition'
"""
_DEFINITIONS: Final = "SELECT manifest FROM objects WHERE kind = 'CustomResourceDefinition' ORDER BY name"
_MEMBERS: Final = "SELECT key FROM clusters JOIN keys USING (id) ORDER BY key"
_EVENT: Final = "Event"
_NAMESPACE: Final = shelves.Kind("v1", "Namespace")


class Listed(msgspec.Struct, frozen=True):
    """A page of objects, where it goes on, and the number up to which the views knew the log."""

    items: list[Json]
    after: str
    number: int


class ControlPlane:
    """Reads for the API."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.events = Events(services)
        self._catalogue = control_plane()
        self._signature = (0, 0)
        self._looked_at = -1
        self._began = ""

    async def catalogue(self) -> Catalogue:
        """The kinds that are served now, custom ones included."""
        number = self._services.log.last_number()
        if number != self._looked_at:
            await self.read(self._look)
            self._looked_at = number
        return self._catalogue

    async def resource(self, place: Place) -> Resource | None:
        """The kind that a path is about; only for custom ones the views are asked."""
        known = control_plane().resource(place.group, place.version, place.plural)
        return known or (await self.catalogue()).resource(place.group, place.version, place.plural)

    async def read(self, ask: Callable[[Rows], _Answer]) -> _Answer:
        """The answer from views that know all that the log has."""
        await self._services.views.wait_folded(self._services.log.last_number())
        return await self.peek(ask)

    async def peek(self, ask: Callable[[Rows], _Answer]) -> _Answer:
        """The answer from the views as they are."""
        return await anyio.to_thread.run_sync(self._within, ask)

    async def get(self, resource: Resource, namespace: str, name: str) -> Json | None:
        """One object."""
        if resource.kind == _EVENT:
            found, _number = await self.events.listed(resource, namespace, Fitting(resource, Query(), name))
            return found[0] if found else None
        if is_empty(resource):
            return None
        await self._services.views.wait_folded(self._services.log.last_number())
        return await self.standing(resource, namespace, name)

    async def standing(self, resource: Resource, namespace: str, name: str) -> Json | None:
        """One object as the views have it now: enough for who has just written it."""
        kind = shelves.Kind(resource.api_version, resource.kind)
        found = await self.peek(lambda rows: shelves.get(rows, kind, namespace, name))
        if found is None and kind == _NAMESPACE:
            found = await self.given_namespace(name)
        return found if found is None else shown(resource, found)

    async def listed(
        self,
        resource: Resource,
        namespace: str,
        fits: Fitting,
        *,
        limit: int = 0,
        after: str = "",
    ) -> Listed:
        """Objects of a kind; raises ValueError where ``after`` is no end of a page."""
        if resource.kind == _EVENT:
            found, number = await self.events.listed(resource, namespace, fits)
            return Listed(found, "", number)
        kind = shelves.Kind(resource.api_version, resource.kind)
        given = await self._given_namespaces() if kind == _NAMESPACE else []
        wanted = shelves.Wanted(kind=kind, namespace=namespace, fits=lambda item: fits(shown(resource, item)))

        def ask(rows: Rows) -> Listed:
            number = query.checkpoint(rows)
            if is_empty(resource):
                return Listed([], "", number)
            # Namespaces are few, and those that are given have to be put among them.
            page = shelves.page(rows, wanted, limit=0 if given else limit, after=after)
            items = [shown(resource, item) for item in page.items]
            return Listed(_with_given(items, given, fits), page.after, number)

        return await self.read(ask)

    async def given_namespace(self, name: str) -> Json | None:
        """A namespace that is there without having been made."""
        if name in GIVEN_NAMESPACES or name in await self.peek(_works_namespaces):
            return await self._given(name)
        return None

    async def _given_namespaces(self) -> list[Json]:
        names = {*GIVEN_NAMESPACES, *await self.peek(_works_namespaces)}
        return [await self._given(name) for name in sorted(names)]

    async def _given(self, name: str) -> Json:
        """It is as old as the log."""
        if not self._began:
            first = await self._services.log.read_all(0, 1)
            self._began = first[0].headers.get("ce_time", "") if first else ""
        metadata: Json = {
            "name": name,
            "uid": ids.object_uid("/reballast/given", name, name),
            "resourceVersion": "1",
            "generation": 1,
            "labels": {"kubernetes.io/metadata.name": name},
        }
        if self._began:
            metadata["creationTimestamp"] = times.to_seconds_text(times.from_text(self._began))
        return {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": metadata,
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }

    def _look(self, rows: Rows) -> None:
        (signature,) = rows.select(_SIGNATURE)
        if signature != self._signature:
            found: list[Resource] = []
            for (manifest,) in rows.select(_DEFINITIONS):
                found.extend(_custom(manifest))
            self._catalogue = control_plane().with_custom(found)
            self._signature = signature

    def _within(self, ask: Callable[[Rows], _Answer]) -> _Answer:
        with self._services.views.store.reading() as rows:
            return ask(rows)


def is_empty(resource: Resource) -> bool:
    """Whether nothing of this kind can be here: nothing holds it yet."""
    if any((each.kind, each.group) == (resource.kind, resource.group) for each in kinds.DERIVED):
        return False
    return bool(kinds.refused(resource.api_version, resource.kind))


def shown(resource: Resource, value: Json) -> Json:
    """The object with what is known of every object of its kind."""
    if resource.kind == "CustomResourceDefinition":
        return {**value, "status": _established(value)}
    return value


def _established(definition: Json) -> Json:
    """The status of a definition: it holds as soon as it is there."""
    spec = definition.get("spec")
    metadata = definition.get("metadata")
    held = msgspec.convert(spec, dict[str, object]) if isinstance(spec, dict) else {}
    head = msgspec.convert(metadata, dict[str, object]) if isinstance(metadata, dict) else {}
    since = head.get("creationTimestamp")
    conditions = [
        {
            "type": kind,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastTransitionTime": since,
        }
        for kind, reason, message in (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    ]
    versions = msgspec.convert(held.get("versions") or [], list[dict[str, object]])
    stored = [each["name"] for each in versions if each.get("storage") is True]
    return {"acceptedNames": held.get("names", {}), "conditions": conditions, "storedVersions": stored}


def _custom(manifest: bytes) -> Iterable[Resource]:
    """The kinds of a definition; none where it makes no sense, which its writer was told."""
    try:
        return custom_kinds.read(msgspec.json.decode(manifest, type=dict[str, object]))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return ()


def _works_namespaces(rows: Rows) -> set[str]:
    names = (str(key).rpartition(":")[2] for (key,) in rows.select(_MEMBERS))
    return {work_documents.namespace_of(name) for name in names}


def _with_given(items: list[Json], given: list[Json], fits: Callable[[Json], bool]) -> list[Json]:
    if not given:
        return items
    named = {_name(item): item for item in [*filter(fits, given), *items]}
    return [named[name] for name in sorted(named)]


def _name(value: Json) -> str:
    metadata = value.get("metadata")
    return str(msgspec.convert(metadata, dict[str, object]).get("name", ""))
